/* SPDX-License-Identifier: BSD-3-Clause
 * Sums over the rows of an update.
 *
 * Floor: find; included by src/find only. */
#ifndef FIND_SUMS_H
#define FIND_SUMS_H

#include "find/find_impl.h"

/* Nothing here is collective.  sums_close() is safe on a zeroed struct. */
int sums_open(struct finder *f);
void sums_close(struct finder *f);

/* sums_clear() sets the sums to 0.  sums_add() adds the rows of the batch. */
int sums_clear(struct finder *f);
int sums_add(struct finder *f);

#endif
