/* SPDX-License-Identifier: BSD-3-Clause
 * The group /train of a dictionary.h5: how its encoder was trained, and in state.h5 what training
 * goes on from.
 *
 * Floor: io.  Not collective. */
#ifndef IO_TRAINING_H
#define IO_TRAINING_H

#include "base/memory.h"
#include "io/identity.h"
#include "io/matrix.h"
#include "io/schema.h"
#include "model/points.h"

extern const struct object_table train_objects;

/* Add what was reached to a dictionary that is being written. */
int training_write(struct matrix_output *f, const struct train_point *point);
/* What else a state has: all but the decoder and the encoder's matrix, which are datasets of any
 * dictionary; with a learned offset that, and the mean that steps subtract. */
int training_state_write(struct matrix_output *f, const struct train_point *point, idx k, idx p,
                         int learns_offset);
/* Read it from the dictionary at path, into the arena; state: NULL, or where it goes, and then the
 * point has the mean, too.  ERR_INPUT: train did not write it, or something of k atoms of p columns
 * is missing or has another shape. */
int training_read(const char *path, struct arena *arena, idx k, idx p, struct train_point *point,
                  struct train_state *state);

/* *is <- whether an open dictionary is the state of a training that has not ended. */
int training_is_state(const struct h5_file *f, int *is);

#endif
