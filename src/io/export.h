/* SPDX-License-Identifier: BSD-3-Clause
 * Write a dictionary as the files of another program.
 *
 * Floor: io.  Used by rank 0 alone; not collective. */
#ifndef IO_EXPORT_H
#define IO_EXPORT_H

#include "io/encoder.h"
#include "io/place.h"

enum export_form { EXPORT_SAFETENSORS, EXPORT_NPY, EXPORT_SAELENS, EXPORT_SPARSIFY };
#define EXPORT_FORMS "safetensors|npy|saelens|sparsify" /* in this order */

/* The dictionary and the encoder that are written. */
struct export_model {
  enum export_form form;
  idx k, d, p;
  idx top;                             /* atoms per row; 0: not known */
  const float *atoms;                  /* [k][d][p] */
  const real *mean;                    /* [p]; NULL: none */
  const struct stored_encoder *stored; /* the encoder of an imported dictionary; NULL: none */
  /* Filled in by export_plan(): */
  int as_it_was;                 /* 1: it is exported to the program that it was imported from */
  int pursues;                   /* 1: SAELens encodes by matching pursuit */
  int stops;                     /* 1: matching pursuit ends when it selects an atom again */
  struct encoder encoder;        /* if it does not pursue */
  const float *decoder, *mean32; /* [k][p], [p] */
  const char *dtype, *threshold_dtype;
  gidx rounded; /* entries of the mean that had to be rounded to float32 */
};
/* Choose an encoder that the other program supports, and fill in the members above; the arena owns
 * the arrays.  ERR_INPUT: the program has no such encoder. */
int export_plan(struct export_model *m, struct arena *arena);

/* The names of the files in a folder: `values` has the tensors, `rest` the settings or the mean;
 * rest NULL: there is only one file. */
struct export_files {
  const char *values, *rest;
};
struct export_files export_files_of(enum export_form form);

/* Write the files, whose paths are claimed (place.h).  Without a mean, mean.npy is not written. */
int export_write(const struct export_model *m, const char *values, const char *rest);

#endif
