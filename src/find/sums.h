/* SPDX-License-Identifier: BSD-3-Clause
 * Sums over the rows of an update.
 *
 * Floor: find; included by src/find only. */
#ifndef FIND_SUMS_H
#define FIND_SUMS_H

#include "find/find_impl.h"

/* sums_close() is safe on a zeroed struct.  Nothing here is collective. */
int sums_open(struct finder *f);
void sums_close(struct finder *f);

/* Of no rows; of the rows of the batch at hand, too. */
int sums_clear(struct finder *f);
int sums_add(struct finder *f);

#endif
