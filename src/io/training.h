/* SPDX-License-Identifier: BSD-3-Clause
 * The group /train of a dictionary.h5: how its encoder was trained; in state.h5 it also has the
 * data that a resumed training needs.
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

/* Add the group to a dictionary that is being written. */
int training_write(struct matrix_output *f, const struct train_point *point);
/* Add the other data of a state.h5: the training state except the decoder and the encoder's matrix,
 * which every dictionary with an encoder has.  If learns_offset is 1, add the offset too, and the
 * mean that training steps subtract. */
int training_state_write(struct matrix_output *f, const struct train_point *point, idx k, idx p,
                         int learns_offset);
/* Read the group from the dictionary at path, into the arena.  If state is not NULL, read the
 * training state too, and the point's mean.  ERR_INPUT: train did not write the dictionary, or an
 * object for k atoms of p columns is missing or has another shape. */
int training_read(const char *path, struct arena *arena, idx k, idx p, struct train_point *point,
                  struct train_state *state);

/* *is <- is an open dictionary the state of an unfinished training? */
int training_is_state(const struct h5_file *f, int *is);

#endif
