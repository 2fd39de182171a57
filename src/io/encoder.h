/* SPDX-License-Identifier: BSD-3-Clause
 * The group /encoder of a dictionary.h5: a trained or imported encoder.  Rows can be encoded with
 * it, and an imported autoencoder can be exported again.
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
      *settings;                       /* program and architecture by name, settings as JSON text */
  const char *dtype, *threshold_dtype; /* F32, F16, BF16; the second may be "": none */
  int has_encoder;                     /* 0: of `encoder` only k, p, top and norm are set */
  int solved; /* 1: it gives only supports, and codes are solved on them (N.24k) */
  struct encoder encoder;
  const float *decoder; /* [k][p]; NULL: equal to the atoms */
};

/* *is <- does an open dictionary have an encoder of kind ENCODER_ACTIVE? */
int encoder_is_active(const struct dictionary_input *dictionary, int *is);

/* Returns e as a stored encoder whose program is Sagitta. */
struct stored_encoder encoder_own(const struct encoder *e);
/* Add an encoder to a dictionary that is being written. */
int encoder_write(struct matrix_output *f, const struct stored_encoder *e);

/* Detectors (N.36), stored as an encoder that Sagitta made: weights[k][p].  An atom has a code if
 * its score is above threshold[k], and fires if its code is above firing[k]. */
struct detectors {
  idx k, p;
  const float *weights, *threshold, *firing;
};
int detectors_write(struct matrix_output *f, const struct detectors *d);
/* *there <- does an open dictionary have detectors? */
int detectors_there(const struct dictionary_input *dictionary, int *there);

/* *there <- does a dictionary have an encoder?  If so, *e <- the encoder; its arrays are in the
 * arena.  ERR_INPUT. */
int encoder_read(const struct h5_file *f, struct arena *arena, struct stored_encoder *e,
                 int *there);

/* Check the encoder of a file, if it has one. */
int encoder_check(struct verify *v);

/* The encoder of a dictionary, for encoding rows.  Its matrix is read piece by piece. */
struct encoder_input {
  struct stored_encoder stored; /* its weights and decoder are NULL */
  struct atom_source weights;   /* [k][p] */
  struct h5_array array;        /* array and arena are owned */
  struct arena arena;
};
/* Open the encoder of a dictionary, which must stay open until encoder_input_close().  ERR_INPUT:
 * there is none (the message says what to do), or its numbers are damaged.  Call
 * encoder_input_close() also after a failure. */
int encoder_input_open(struct encoder_input *e, const struct dictionary_input *dictionary);
/* Open the dictionary that --encoder names.  If it is the folder of an autoencoder of another
 * program, the message says how to import it. */
int encoder_dictionary_open(struct dictionary_input *d, const char *name);
void encoder_input_close(struct encoder_input *e);

/* The kind of encoder with this name (model/encoder.h); -1: there is none. */
int encoder_kind_find(const char *name);

#endif
