/* SPDX-License-Identifier: BSD-3-Clause
 * Inputs named on the command line: rows and dictionaries from HDF5 and NumPy files.
 *
 * Floor: io.  Not collective: every rank opens the file itself and reads its own part.
 *
 * A name is FILE.h5, FILE.h5:/path or FILE.npy (C order, f2, f4, f8).  Datasets are float16,
 * bfloat16 (uint16 with the attribute dtype = "bfloat16"), float32 or float64; values are rounded
 * once to f32. */
#ifndef IO_INPUTS_H
#define IO_INPUTS_H

#include "base/types.h"
#include "model/dictionary.h"
#include "model/rows.h"

struct input_state;

/* *file <- FILE of FILE:/PATH, which the caller frees; *object <- /PATH inside that allocation, or
 * `standard`.  The last ":/" splits, unless the whole is the name of a file. */
int input_split(const char *name, const char *standard, char **file, const char **object);

struct rows_file {
  struct row_source source;
  struct input_state *state; /* owned */
};
/* Open rows; the default path is /rows.  ERR_IO: cannot open; ERR_INPUT: no such dataset, wrong
 * rank (not 2), type or shape (no columns), damaged. */
int rows_open(struct rows_file *f, const char *name);
void rows_close(struct rows_file *f);

struct dictionary_file {
  struct atom_source source;
  real *mean;                /* [p]; NULL: rows are not centred; owned */
  struct input_state *state; /* owned */
};
/* Open a dictionary of shape (K, P) or (K, d, P), d = 1..FRAME_MOST; the default path is /atoms,
 * and /mean of the same HDF5 file is read when present (finite, length P: else ERR_INPUT). */
int dictionary_open(struct dictionary_file *f, const char *name);
void dictionary_close(struct dictionary_file *f);

#endif
