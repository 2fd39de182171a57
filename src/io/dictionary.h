/* SPDX-License-Identifier: BSD-3-Clause
 * Dictionaries: read from any input, and dictionary.h5.
 *
 * Floor: io.  Reading is not collective: every rank opens the file itself and reads its own part.
 * Rank 0 alone writes. */
#ifndef IO_DICTIONARY_H
#define IO_DICTIONARY_H

#include "io/inputs.h"
#include "io/matrix.h"
#include "io/schema.h"
#include "model/dictionary.h"

extern const struct file_kind dictionary_kind;

struct dictionary_input {
  struct atom_source source;
  const char *file;          /* borrowed: the name without /path */
  real *mean;                /* [p]; NULL: rows are not centred; owned */
  int nonnegative;           /* the file says that its atoms are for nonnegative codes */
  idx rounds, top_s;         /* routing rounds and atoms per row of its fit; 0: the file does not
                              * give them */
  real norm;                 /* norm of the median row of the fit after the mean is subtracted; 0:
                              * the file does not give it */
  struct input_array *input; /* owned */
};
/* Open a dictionary of shape (K, P) or (K, d, P), d = 1..MAX_FRAME, by name; the default path is
 * /atoms.  /mean of the same HDF5 file, or the tensor `mean` beside `atoms`, is read if present; it
 * must be finite and of length P.  ERR_IO: cannot open; ERR_INPUT: as for rows_input_open(). */
int dictionary_input_open(struct dictionary_input *f, const char *name);
/* Let several threads or ranks read the atoms at once.  Reading then does not compare their hash;
 * source.confirm() does. */
void dictionary_input_concurrent(struct dictionary_input *f);
void dictionary_input_close(struct dictionary_input *f);
/* atoms[k][p] <- all atoms of a dictionary.  If mean is not NULL and the dictionary has a mean,
 * *mean <- a copy of it; otherwise *mean is unchanged.  ERR_INPUT: it has another shape. */
int dictionary_read_all(const char *name, struct arena *arena, idx k, idx p, float *atoms,
                        const real **mean);

/* The root attribute `nonnegative` of dictionaries and supports: codes are at least 0 (N.5n).  It
 * is written only if it is 1; a missing attribute is read as 0.  ERR_INPUT: neither 0 nor 1. */
int nonnegative_write(const struct h5_file *f, int nonnegative);
int nonnegative_read(const struct h5_file *f, int *nonnegative);

/* Create dictionary.h5 for k atoms of d vectors of p columns. */
int dictionary_output_create(struct matrix_output *f, const char *path, idx k, idx d, idx p);

#endif
