/* SPDX-License-Identifier: BSD-3-Clause
 * The group /encoder of a dictionary.h5: the autoencoder that it was imported from, so that its own
 * encoder can be used, and the autoencoder written again.
 *
 * Floor: io.  Not collective. */
#ifndef IO_ENCODER_H
#define IO_ENCODER_H

#include "base/memory.h"
#include "io/dictionary.h"
#include "io/matrix.h"
#include "io/schema.h"
#include "model/encoder.h"

extern const struct object_table encoder_objects;

struct stored_encoder {
  const char *program, *architecture,
      *settings;                       /* whose it was, and its settings, a text in JSON */
  const char *dtype, *threshold_dtype; /* F32, F16, BF16; the second "" without any */
  int has_encoder;                     /* else the next has only k, p and top */
  int solved; /* it gives the supports, and codes are solved on them (N.24k): atoms were refitted */
  struct encoder encoder;
  const float *decoder; /* [k][p]; NULL: the atoms have its bits */
};

/* *is <- whether a dictionary that is open has one of ENCODER_ACTIVE. */
int encoder_is_active(const struct dictionary_input *dictionary, int *is);

/* One of this program; e has all that it needs. */
struct stored_encoder encoder_own(const struct encoder *e);
/* Add it to a dictionary that is being written. */
int encoder_write(struct matrix_output *f, const struct stored_encoder *e);

/* Detectors (N.36), as an encoder of our own: weights[k][p], and a row fires above threshold[k], a
 * code above firing[k]. */
struct detectors {
  idx k, p;
  const float *weights, *threshold, *firing;
};
int detectors_write(struct matrix_output *f, const struct detectors *d);
/* *there <- whether a dictionary that is open has them. */
int detectors_there(const struct dictionary_input *dictionary, int *there);

/* *there <- whether a dictionary has one; and then *e <- it, into the arena.  ERR_INPUT. */
int encoder_read(const struct h5_file *f, struct arena *arena, struct stored_encoder *e,
                 int *there);

/* Check the values, where there are any. */
int encoder_check(struct verify *v);

/* The encoder of a dictionary, to encode with: its matrix is read piece by piece. */
struct encoder_input {
  struct stored_encoder stored; /* its weights and decoder are NULL */
  struct atom_source weights;   /* [k][p] */
  struct h5_array array;        /* owned, as is the next */
  struct arena arena;
};
/* Open that of a dictionary, which stays open for longer.  ERR_INPUT: it has none, with what to do;
 * its numbers are damaged.  Call encoder_input_close() also after a failure. */
int encoder_input_open(struct encoder_input *e, const struct dictionary_input *dictionary);
/* The dictionary of an encoder that is named: a message says what to do with an autoencoder's own
 * folder. */
int encoder_dictionary_open(struct dictionary_input *d, const char *name);
void encoder_input_close(struct encoder_input *e);

/* The encoder's kind of which this is the name, -1 where there is none (model/encoder.h). */
int encoder_kind_find(const char *name);

#endif
