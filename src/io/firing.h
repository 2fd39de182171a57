/* SPDX-License-Identifier: BSD-3-Clause
 * The firing thresholds of a dictionary.h5, /threshold: above which code each atom fires (N.37f).
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
/* *threshold <- that of a dictionary of k atoms that is open, in the arena; NULL: it has none.
 * ERR_INPUT: another number of them, or one that is not finite or below 0. */
int firing_read(const struct h5_file *f, idx k, struct arena *arena, float **threshold);

/* The check of dictionaries. */
struct verify;
int firing_check(struct verify *v);

#endif
