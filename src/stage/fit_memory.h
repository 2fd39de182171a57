/* SPDX-License-Identifier: BSD-3-Clause
 * What a fit holds: known from the shapes of its files alone, before anything is read.
 *
 * Floor: stage.  Not collective. */
#ifndef STAGE_FIT_MEMORY_H
#define STAGE_FIT_MEMORY_H

#include "stage/fit.h"

/* Bytes of the most loaded rank. */
struct fit_memory {
  gidx rows, supports, frames; /* held all the time; fit_load refuses more than there is */
  gidx load;                   /* beside them, one after another: supports as they were read, */
  gidx classes;                /* all supports where classes are found, */
  gidx batch;                  /* a batch of systems, about, */
  gidx round;                  /* the end of a sweep */
  gidx total;                  /* what is held, the largest of these, and the program itself */
};
void fit_memory(const struct fit_task *task, const struct comm *c, idx q, struct fit_memory *m);

/* ERR_MEMORY, with the numbers: this rank's rows, supports and frames are more than its share of
 * what the machine has left. */
int fit_memory_check(const struct fit_task *task, const struct comm *c);

/* Bytes that fit_load() takes at most on this rank, of a fit that has its sizes. */
gidx fit_bytes(const struct fit *f);

/* Atoms a row of supports that have as many in each row. */
idx fit_support(const struct fit_task *task);

#endif
