/* SPDX-License-Identifier: BSD-3-Clause
 * The group /find of a dictionary.h5: how its features were found.  In state.h5 the group also has
 * the data that a resumed run needs.
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

/* Add the group to a dictionary that is being written and has the atoms found so far; wanted: how
 * many atoms the whole run is to find. */
int finding_write(struct matrix_output *f, const struct find_point *point, gidx wanted, idx p);
/* Read the group and the atoms of the dictionary at path into the arena; the encoder is not read.
 * ERR_INPUT: `fit --find features` did not write that dictionary. */
int finding_read(const char *path, struct arena *arena, idx p, struct find_point *point);

#endif
