/* SPDX-License-Identifier: BSD-3-Clause
 * Move the atoms, from the sums of an update.
 *
 * Floor: find; included by src/find only. */
#ifndef FIND_MOVE_H
#define FIND_MOVE_H

#include "find/find_impl.h"

/* Sort the atoms by falling frequency, and move the atoms and the offset.  Collective. */
int atoms_move(struct finder *f);

#endif
