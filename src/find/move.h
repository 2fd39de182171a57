/* SPDX-License-Identifier: BSD-3-Clause
 * Sums become atoms.
 *
 * Floor: find; included by src/find only. */
#ifndef FIND_MOVE_H
#define FIND_MOVE_H

#include "find/find_impl.h"

/* Atoms by falling frequency, moved by the sums; and the offset.  Collective. */
int atoms_move(struct finder *f);

#endif
