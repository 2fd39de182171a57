/* SPDX-License-Identifier: BSD-3-Clause
 * How well the atoms describe held-out rows; or some fitted rows, if none are held out.
 *
 * Floor: find; included by src/find only. */
#ifndef FIND_JUDGE_H
#define FIND_JUDGE_H

#include "find/find_impl.h"

int validation_alloc(struct finder *f);
void validation_close(struct finder *f);

/* Read the rows, subtract mean and offset, and compute their hash.  Collective, as are the
 * functions below. */
int validation_read(struct finder *f);
/* Warn if a few of the held-out rows are massive (model/norms.h). */
int validation_advise(struct finder *f);
/* f->judge.explained and f->judge.l0 <- the figures of the present atoms and thresholds. */
int validation_run(struct finder *f);

#endif
