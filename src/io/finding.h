/* SPDX-License-Identifier: BSD-3-Clause
 * The group /find of a dictionary.h5: how its features were found, and in state.h5 what that goes
 * on from.
 *
 * Floor: io.  Not collective. */
#ifndef IO_FINDING_H
#define IO_FINDING_H

#include "base/memory.h"
#include "io/identity.h"
#include "io/matrix.h"
#include "io/schema.h"
#include "model/points.h"

extern const struct object_table find_objects;

/* Add what was reached to a dictionary of its k atoms that is being written; wanted: how many there
 * are to be at the end. */
int finding_write(struct matrix_output *f, const struct find_point *point, gidx wanted, idx p);
/* Read it, but for its encoder, from the dictionary at path, into the arena.  ERR_INPUT when `fit
 * --find features` did not write it. */
int finding_read(const char *path, struct arena *arena, idx p, struct find_point *point);

#endif
