/* SPDX-License-Identifier: BSD-3-Clause
 * The firing thresholds of a dictionary.h5, /threshold: an atom fires in a row if its code is above
 * its threshold (N.37f).
 *
 * Floor: io.  Not collective. */
#ifndef IO_FIRING_H
#define IO_FIRING_H

#include "base/memory.h"
#include "io/matrix.h"
#include "io/schema.h"

extern const struct object_table firing_objects;

/* Add threshold[k] to a dictionary that is being written. */
int firing_write(struct matrix_output *f, idx k, const float *threshold);
/* *threshold <- [k] of an open dictionary of k atoms, in the arena; NULL: it has none.  ERR_INPUT:
 * their number is not k, or a threshold is negative or not finite. */
int firing_read(const struct h5_file *f, idx k, struct arena *arena, float **threshold);

/* Check /threshold, as part of the check of a dictionary. */
struct verify;
int firing_check(struct verify *v);

#endif
