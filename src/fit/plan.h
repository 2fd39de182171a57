/* SPDX-License-Identifier: BSD-3-Clause
 * Check whether a fit fits into the memory of its ranks and GPUs.
 *
 * Floor: fit; included by src/fit only. */
#ifndef FIT_PLAN_H
#define FIT_PLAN_H

#include "fit/fit.h"
#include "refit/atom_batch.h"

struct fit;

/* f->c <- a communicator of this rank alone if every rank is to have all rows; otherwise it does
 * not change.  Collective. */
int fit_ranks_plan(struct fit *f);

/* f->refit_task <- the shapes of the state, and the bytes of data beside it; f->gpu is set, too.
 * Not collective.  fit_batch_bytes() returns the function that counts the bytes of a batch. */
int fit_task_plan(struct fit *f);
batch_bytes_of *fit_batch_bytes(const struct fit *f);

/* Call this after fit_task_plan(), for parts of `rows` rows.  f->refit_task.shares_gram <- 1: all
 * atoms move at once, and the ranks of a node share the lists of all rows and the Gram rows in
 * transit.  ERR_MEMORY: sharing was asked for, and is not possible.  Collective. */
int fit_gram_plan(struct fit *f, gidx rows);
gidx fit_shared_bytes(const struct fit *f, gidx rows); /* bytes that the ranks of a node share */

/* Plan the memory before anything is read, then begin to create the context of the GPU.
 * ERR_MEMORY: the message says what is short, and what would fit.  Collective. */
int fit_state_plan(struct fit *f);

#endif
