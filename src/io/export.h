/* SPDX-License-Identifier: BSD-3-Clause
 * A dictionary as the files of another program: what they say, and writing them.
 *
 * Floor: io.  Used by rank 0 alone; not collective. */
#ifndef IO_EXPORT_H
#define IO_EXPORT_H

#include "io/encoder.h"
#include "io/place.h"

enum export_form { EXPORT_SAFETENSORS, EXPORT_NPY, EXPORT_SAELENS, EXPORT_SPARSIFY };
#define EXPORT_FORMS "safetensors|npy|saelens|sparsify" /* in this order */

/* What is written. */
struct export_model {
  enum export_form form;
  idx k, d, p;
  idx top;                             /* atoms a row; 0: not known */
  const float *atoms;                  /* [k][d][p] */
  const real *mean;                    /* [p]; NULL: none */
  const struct stored_encoder *stored; /* of an imported dictionary; NULL: none */
  /* Filled in by export_plan(): */
  int as_it_was;                 /* the program is the one it was imported from */
  int pursues;                   /* SAELens: matching pursuit */
  int stops;                     /* which ends where it takes an atom again */
  struct encoder encoder;        /* of the others */
  const float *decoder, *mean32; /* [k][p], [p] */
  const char *dtype, *threshold_dtype;
  gidx rounded; /* entries of the mean that are not float32 */
};
/* Choose how the other program is to compute; arrays that are needed live in the arena.  ERR_INPUT
 * when it cannot. */
int export_plan(struct export_model *m, struct arena *arena);

/* The names of the files, in a folder: the one with the values, and one with the rest. */
struct export_files {
  const char *values, *rest;
};
struct export_files export_files_of(enum export_form form);

/* Write both; place.file is that of the values, rest the other, claimed. */
int export_write(const struct export_model *m, const char *values, const char *rest);

#endif
