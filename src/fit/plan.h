/* SPDX-License-Identifier: BSD-3-Clause
 * Does a fit have room in the memory of its ranks and GPUs?
 *
 * Floor: fit; included by src/fit only. */
#ifndef FIT_PLAN_H
#define FIT_PLAN_H

#include "fit/fit.h"
#include "refit/atom_batch.h"

struct fit;

/* f->c <- this rank alone where all ranks are to have all rows, else it stays.  Collective. */
int fit_ranks_plan(struct fit *f);

/* f->refit_task <- the shapes of the state, with what is held beside it; f->gpu.  Not collective.
 * fit_batch_bytes() says how its batches are counted. */
int fit_task_plan(struct fit *f);
batch_bytes_of *fit_batch_bytes(const struct fit *f);

/* Behind it, for parts of so many rows: f->refit_task.shares_gram <- are the Gram matrix and the
 * lists of all rows once a node, where atoms are updated together?  ERR_MEMORY: they are to be, and
 * cannot.  Collective. */
int fit_gram_plan(struct fit *f, gidx rows);
gidx fit_shared_bytes(const struct fit *f, gidx rows); /* of these lists and Gram rows */

/* Nothing is read before that is known; then the GPU's context is made meanwhile.  ERR_MEMORY says
 * what is short, and what would fit.  Collective. */
int fit_state_plan(struct fit *f);

#endif
