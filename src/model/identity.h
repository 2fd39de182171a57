/* SPDX-License-Identifier: BSD-3-Clause
 * Hashes of the contents of a job's inputs; they identify the inputs.
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * A hash is a sum modulo 2^64 of terms: one for each value or group of four, from its bits and its
 * position in the whole (base/fingerprint.h), and one for the shape.  So ranks add up the terms of
 * the parts that they read, and the hash does not depend on their number, or on the layout or type
 * of a file.  Values are hashed as jobs use them: rows as f32 before centring, atoms as f32 before
 * scaling.
 *
 * A hash protects against accidents, not attacks.  A change of a single value always changes the
 * sum.  Other different contents have equal sums with probability 2^-64, but such contents can be
 * constructed. */
#ifndef MODEL_IDENTITY_H
#define MODEL_IDENTITY_H

#include "base/types.h"

struct identity { /* 0: not known */
  uint64_t rows, dictionary;
  uint64_t supports; /* which atoms each row has, in order */
  uint64_t codes;    /* their scores and codes */
  uint64_t classes;  /* class of each atom */
  uint64_t encoder;  /* the imported encoder, if it computed the codes (model/encoder.h) */
};
enum { IDENTITY_HASHES = 6 };

/* The sum of the terms of items first .. first + n - 1, of width values each.  Items are rows of p
 * values, or atoms of d p values.  If width is divisible by four, values are hashed four at a time,
 * which takes a quarter of the time. */
uint64_t items_terms(const float *values, gidx n, gidx width, gidx first);

/* The sum of the terms of the supports of n consecutive rows, with s atoms each.  The position of
 * an atom is counted in its row, so that the hash depends on the lengths of rows. */
uint64_t support_terms(const idx *atoms, gidx n, idx s, gidx first_row);

/* The sum of the terms of entries first .. first + count - 1, with score[count] and
 * codes[count][d]. */
uint64_t codes_terms(const float *score, const float *codes, gidx count, idx d, gidx first);

/* The hash of a whole, from the sum of all its terms and its shape; never 0. */
uint64_t content_hash(uint64_t sum, gidx n, gidx width, gidx depth);

/* The hash of the mean[p] that was subtracted from rows; 0: there is none. */
uint64_t mean_hash(const real *mean, idx p);

/* ERR_INPUT if the codes were computed from other rows, or from another dictionary.  named: the
 * hash of rows or dictionary in the file of codes, 0 if it has none; found: the hash of the
 * input. */
int identity_rows_check(const char *codes, uint64_t named, const char *rows, uint64_t found);
int identity_dictionary_check(const char *codes, uint64_t named, const char *dictionary,
                              uint64_t found);

/* The hash of the classes color[k] (model/classes.h). */
uint64_t classes_hash(const idx *color, idx k);

#endif
