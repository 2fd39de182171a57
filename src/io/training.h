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
#include "model/train.h"

extern const struct object_table train_objects;

/* One line of /train/history; an attribute names the columns. */
enum { TRAINING_COLUMNS = 4 };
struct training_line {
  real step, fitted, held, dead;
};

struct training_record {
  gidx step, count;     /* steps done, lines */
  gidx scale;           /* rows are multiplied by 2^scale */
  uint64_t unit;        /* of the matrix units that made the scores; 0: none did */
  struct identity rows; /* .rows: the fitted rows */
  struct identity held; /* .rows: the held-out ones */
};

/* Add it to a dictionary that is being written, with lines[record->count]. */
int training_record_write(struct matrix_output *f, const struct training_record *record,
                          const struct training_line *lines);
/* Read it from the dictionary at path, and the lines into the arena.  ERR_INPUT when train did not
 * write it. */
int training_record_read(const char *path, struct arena *arena, struct training_record *record,
                         struct training_line **lines);

/* *is <- whether an open dictionary is the state of a training that has not ended. */
int training_is_state(const struct h5_file *f, int *is);

/* What else a state has: all but the decoder and the encoder's matrix, which are datasets of any
 * dictionary. */
int training_state_write(struct matrix_output *f, const struct train_state *s, idx k, idx p);
/* What a state with a learned offset has beside: that, and the mean[p] that steps subtract, or
 * NULL. */
int training_offset_write(struct matrix_output *f, const struct train_state *s, const real *mean,
                          idx p);
/* All of it, into arrays that are allocated; mean[p] too, where *has_mean.  ERR_INPUT: something is
 * missing, or has another shape. */
int training_state_read(const char *path, struct train_state *s, idx k, idx p, real *mean,
                        int *has_mean);

#endif
