/* SPDX-License-Identifier: BSD-3-Clause
 * What names the inputs of a job: a hash of the content of each.
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * A hash is a sum modulo 2^64 of a term for each value, by its bits and its place in the whole
 * (base/fingerprint.h), and of one for the shape.  So ranks add the terms of the parts that they
 * read, and neither their number nor the layout or type of a file matters: values are taken as jobs
 * use them, rows as f32 before they are centred, atoms as f32 before they are scaled.
 *
 * It is meant against accident: a single value that changes always changes the sum, and other
 * contents have the same one once in 2^64.  Who wants two contents of one hash can make them. */
#ifndef MODEL_IDENTITY_H
#define MODEL_IDENTITY_H

#include "base/types.h"

struct identity { /* 0: not known */
  uint64_t rows, dictionary;
  uint64_t supports; /* which atoms each row has, in order */
  uint64_t codes;    /* their scores and codes */
  uint64_t classes;  /* class of each atom */
  uint64_t encoder;  /* an imported encoder, where codes are its own (model/encoder.h) */
};
enum { IDENTITY_HASHES = 6 };

/* The terms of items first .. first + n - 1 of width values each: rows of p, atoms of d times p.
 * Values go by fours where four divide the width, which takes a quarter of the time. */
uint64_t items_terms(const float *values, gidx n, gidx width, gidx first);

/* The terms of n consecutive rows with s atoms each.  Places are counted inside a row, so that the
 * lengths of rows matter. */
uint64_t support_terms(const idx *atoms, gidx n, idx s, gidx first_row);

/* The terms of entries first .. first + count - 1: score[count], codes[count][d]. */
uint64_t codes_terms(const float *score, const float *codes, gidx count, idx d, gidx first);

/* The hash of a whole, from the sum of all its terms and its shape; never 0. */
uint64_t content_hash(uint64_t sum, gidx n, gidx width, gidx depth);

/* The hash of a mean[p] that rows are less; 0: there is none. */
uint64_t mean_hash(const real *mean, idx p);

/* Codes name the rows, or the dictionary, that they are of; was this hash found of those at hand?
 * named = 0: they do not say.  ERR_INPUT. */
int identity_rows_check(const char *codes, uint64_t named, const char *rows, uint64_t found);
int identity_dictionary_check(const char *codes, uint64_t named, const char *dictionary,
                              uint64_t found);

/* The hash of the classes color[k] (model/classes.h). */
uint64_t classes_hash(const idx *color, idx k);

#endif
