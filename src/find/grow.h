/* SPDX-License-Identifier: BSD-3-Clause
 * The dictionary grows by directions in which the residuals of the batch's rows are skewed.
 *
 * Floor: find; included by src/find only. */
#ifndef FIND_GROW_H
#define FIND_GROW_H

#include "find/find_impl.h"

/* Arrays are sized for the largest stage.  grow_close() is safe on a zeroed struct. */
int grow_open(struct finder *f);
void grow_close(struct finder *f);

/* Add atoms until there are k; if there are already k, nothing happens.  Collective. */
int atoms_grow(struct finder *f, idx k);

#endif
