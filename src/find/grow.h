/* SPDX-License-Identifier: BSD-3-Clause
 * The dictionary grows by directions in which what is left of the rows of the batch at hand is
 * skew.
 *
 * Floor: find; included by src/find only. */
#ifndef FIND_GROW_H
#define FIND_GROW_H

#include "find/find_impl.h"

/* grow_close() is safe on a zeroed struct; sizes are those of the widest stage. */
int grow_open(struct finder *f);
void grow_close(struct finder *f);

/* There are k atoms from now on.  Collective. */
int atoms_grow(struct finder *f, idx k);

#endif
