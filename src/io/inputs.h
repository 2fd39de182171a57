/* SPDX-License-Identifier: BSD-3-Clause
 * Inputs named on the command line: a dataset of an HDF5 file, or a NumPy file, read as float32.
 *
 * Floor: io.  Not collective: every rank opens the file itself and reads its own part.
 *
 * A name is FILE.h5, FILE.h5:/path, FILE.npy (C order, f2, f4, f8), or a folder with results.
 * Datasets are float16, bfloat16 (uint16 with the attribute dtype = "bfloat16"), float32 or
 * float64; values are rounded once to float32.  Which shapes are accepted is for rows.c and
 * dictionary.c to say. */
#ifndef IO_INPUTS_H
#define IO_INPUTS_H

#include "base/types.h"
#include "io/h5/h5.h"
#include "io/npy.h"

enum { MAX_NAME = 4096 }; /* bytes of a path */

/* path[MAX_NAME] <- the input that a name leads to: the name itself, or where it is a folder, such
 * as a run's, that folder's file of this name.  ERR_INPUT: too long. */
int input_in_folder(const char *name, const char *file, char *path);

/* Where an input is when its name does not say so: the object, and a folder's file. */
struct input_standard {
  const char *object, *file;
};

/* *file <- FILE of FILE:/PATH, which the caller frees; *object <- /PATH inside that allocation, or
 * the standard one.  The last ":/" splits, or the last ':' behind a name
 * that is there, unless the whole is such a name. */
int input_split(const char *name, const struct input_standard *standard, char **file,
                const char **object);

struct input_array {
  char *name, *file;  /* FILE:/PATH for messages, and FILE; owned */
  const char *object; /* /PATH */
  int is_npy;
  struct npy_file npy; /* of a NumPy file */
  struct h5_file h5;   /* of any other */
  struct h5_array array;
  enum h5_type type;
  int rank;
  gidx shape[3]; /* known for ranks 1 to 3 */
};
/* Open an input.  input_array_close() follows also when it fails.  ERR_IO: cannot open; ERR_INPUT:
 * there is no such dataset, it is not of a float type, or it is damaged. */
int input_array_open(struct input_array **input, const char *name,
                     const struct input_standard *standard);
void input_array_close(struct input_array **input);

/* out <- entries first .. first + count - 1 of the first dimension. */
int input_array_read(const struct input_array *input, gidx first, gidx count, float *out);

/* Bytes of a stored value. */
int input_array_value_bytes(const struct input_array *input);

#endif
