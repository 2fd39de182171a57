/* SPDX-License-Identifier: BSD-3-Clause
 * How well the atoms describe rows that were not fitted.
 *
 * Floor: find; included by src/find only. */
#ifndef FIND_JUDGE_H
#define FIND_JUDGE_H

#include "find/find_impl.h"

int validation_alloc(struct finder *f);
void validation_close(struct finder *f);

/* The rows, less what rows lose by now, and their hash.  Collective, as is the next. */
int validation_read(struct finder *f);
/* Warn where a few of the held-out rows are massive (model/norms.h), once they are read. */
int validation_advise(struct finder *f);
/* explained and l0 of f->judge <- by the atoms and thresholds at hand. */
int validation_run(struct finder *f);

#endif
