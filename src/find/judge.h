/* SPDX-License-Identifier: BSD-3-Clause
 * How well the atoms describe rows that were not fitted.
 *
 * Floor: find; included by src/find only. */
#ifndef FIND_JUDGE_H
#define FIND_JUDGE_H

#include "find/find_impl.h"

int judge_alloc(struct finder *f);
void judge_close(struct finder *f);

/* The rows, less what rows lose by now, and their hash.  Collective, as is the next. */
int judge_read(struct finder *f);
/* explained and l0 of f->judge <- by the atoms and thresholds at hand. */
int judge_run(struct finder *f);

#endif
