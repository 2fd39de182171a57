/* SPDX-License-Identifier: BSD-3-Clause
 * Inputs named on the command line: an array of a file, read as float32.
 *
 * Floor: io.  Not collective: every rank opens the file itself and reads its own part.
 *
 * A name is FILE.h5, FILE.h5:/path, FILE.npy (C order, f2, f4, f8), FILE.safetensors or
 * FILE.safetensors:name (F16, BF16, F32, F64), or a folder with results.
 * Datasets are float16, bfloat16 (uint16 with the attribute dtype = "bfloat16"), float32 or
 * float64; values are rounded once to float32.  Which shapes are accepted is for rows.c and
 * dictionary.c to say. */
#ifndef IO_INPUTS_H
#define IO_INPUTS_H

#include "base/types.h"
#include "io/flat_file.h"
#include "io/h5/h5.h"
#include "io/h5/virtual.h"
#include "io/input_folder.h"

/* Is there a file of this name? */
int input_is_there(const char *path);

/* Where an input is when its name does not say so: the object, and a folder's file. */
struct input_standard {
  const char *object, *file;
  int follows; /* a virtual dataset may be opened: its sources are listed */
};

/* *file <- FILE of FILE:/PATH, which the caller frees; *object <- /PATH inside that allocation, or
 * the standard one.  The last colon behind a name that is there splits, unless the whole is such a
 * name; without any the last ":/" does. */
int input_split(const char *name, const struct input_standard *standard, char **file,
                const char **object);

enum input_format { INPUT_H5, INPUT_NPY, INPUT_SAFETENSORS };
/* By the end of its name; by its first bytes where the name has none, as /proc/self/fd/3. */
enum input_format input_format_of(const char *file);

struct input_array {
  char *name, *file;  /* FILE:/PATH for messages, and FILE; owned */
  const char *object; /* /PATH */
  enum input_format format;
  struct flat_file flat; /* of .npy and .safetensors */
  struct h5_file h5;     /* of any other */
  struct h5_array array;
  struct h5_sources sources; /* of a virtual dataset, which is not read itself */
  enum h5_type type;
  int rank;
  gidx shape[3];           /* known for ranks 1 to 3 */
  gidx unit;               /* entries that are stored together; 0: any */
  struct file_facts facts; /* of the file when it was opened first */
  gidx data;               /* byte where the values of a flat file begin */
};
/* Open an input.  input_array_close() follows also when it fails.  ERR_IO: cannot open; ERR_INPUT:
 * there is no such dataset, it is not of a float type, or it is damaged. */
int input_array_open(struct input_array **input, const char *name,
                     const struct input_standard *standard);
void input_array_close(struct input_array **input);

/* Close the file of an array, and open it again; what is known of the array stays.  Other threads
 * may read other arrays meanwhile.  standard: the object of struct input_standard.  ERR_IO: it
 * changed since it was opened first, if is_known; its facts are otherwise noted.  ERR_INPUT: it has
 * another type or shape. */
int input_array_pause(struct input_array *s);
int input_array_resume(struct input_array *s, const char *standard, int is_known);
struct input_file *input_array_file(const struct input_array *s);

/* out <- entries first .. first + count - 1 of the first dimension.  Several threads may read an
 * array at once, if its HDF5 array was made a stream. */
int input_array_read(const struct input_array *input, gidx first, gidx count, float *out);

/* An order of arrays by where they are stored; 0: both are the same one.  Devices have other
 * numbers on other nodes: so size and time of a file count instead. */
int input_array_order(const struct input_array *a, const struct input_array *b);

/* Bytes of a stored value. */
int input_array_value_bytes(const struct input_array *input);

#endif
