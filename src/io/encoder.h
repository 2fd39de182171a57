/* SPDX-License-Identifier: BSD-3-Clause
 * The group /encoder of a dictionary.h5: the autoencoder that it was imported from, so that its own
 * encoder can be used, and the autoencoder written again.
 *
 * Floor: io.  Not collective. */
#ifndef IO_ENCODER_H
#define IO_ENCODER_H

#include "base/memory.h"
#include "io/matrix.h"
#include "io/schema.h"
#include "model/encoder.h"

extern const struct object_table encoder_objects;

struct stored_encoder {
  const char *program, *architecture,
      *settings;                       /* whose it was, and its settings, a text in JSON */
  const char *dtype, *threshold_dtype; /* F32, F16, BF16; the second "" without any */
  int has_encoder;                     /* else the next has only k, p and top */
  struct encoder encoder;
  const float *decoder; /* [k][p]; NULL: the atoms have its bits */
};

/* Add it to a dictionary that is being written. */
int encoder_write(struct matrix_output *f, const struct stored_encoder *e);

/* *there <- whether a dictionary has one; and then *e <- it, into the arena.  ERR_INPUT. */
int encoder_read(const struct h5_file *f, struct arena *arena, struct stored_encoder *e,
                 int *there);

/* Check the values, where there are any. */
int encoder_check(struct verify *v);

#endif
