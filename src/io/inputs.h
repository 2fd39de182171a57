/* SPDX-License-Identifier: BSD-3-Clause
 * Inputs named on the command line: an array of a file, read as float32.
 *
 * Floor: io.  Not collective: every rank opens the file itself and reads its own part.
 *
 * A name is FILE.h5, FILE.h5:/path, FILE.npy (C order, f2, f4, f8), FILE.safetensors or
 * FILE.safetensors:name (F16, BF16, F32, F64), or a folder with results.  Datasets are float16,
 * bfloat16 (uint16 with the attribute dtype = "bfloat16"), float32 or float64; values are rounded
 * once to float32. rows.c and dictionary.c decide which shapes they accept. */
#ifndef IO_INPUTS_H
#define IO_INPUTS_H

#include "base/types.h"
#include "io/flat_file.h"
#include "io/h5/h5.h"
#include "io/h5/virtual.h"
#include "io/input_folder.h"

/* Is there a file of this name? */
int input_is_there(const char *path);

/* The default object of a file, and the default file of a folder.  They are used if a name gives no
 * object or no file. */
struct input_standard {
  const char *object, *file;
  int follows; /* 1: a virtual dataset may be opened, and its sources are listed */
};

/* *file <- FILE of FILE:/PATH, which the caller frees; *object <- /PATH inside that allocation, or
 * standard->object.  If `name` as a whole exists, it is the file.  Otherwise it is split at the
 * last colon that follows the name of an existing file, or if there is none, at the last ":/". */
int input_split(const char *name, const struct input_standard *standard, char **file,
                const char **object);

enum input_format { INPUT_H5, INPUT_NPY, INPUT_SAFETENSORS };
/* The format that the file's name implies, or if the name has no dot, as /proc/self/fd/3, the
 * format of its first bytes (format_ending()). */
enum input_format input_format_of(const char *file);

struct input_array {
  char *name, *file;  /* FILE:/PATH for messages, and FILE; owned */
  const char *object; /* /PATH; of safetensors: the tensor's name, or NULL */
  enum input_format format;
  struct flat_file flat; /* open for .npy and .safetensors */
  struct h5_file h5;     /* open for HDF5 */
  struct h5_array array;
  struct h5_sources sources; /* of a virtual dataset, which itself is not read */
  enum h5_type type;
  int rank;
  gidx shape[3];           /* known for ranks 1 to 3 */
  gidx unit;               /* entries per stored chunk; 0: no chunks */
  struct file_facts facts; /* of the file when it was first opened */
  gidx data;               /* byte where the values of a flat file begin */
};
/* Open an input.  Call input_array_close() also after a failure.  ERR_IO: cannot open; ERR_INPUT:
 * there is no such dataset, it is not of a float type, or it is damaged. */
int input_array_open(struct input_array **input, const char *name,
                     const struct input_standard *standard);
void input_array_close(struct input_array **input);

/* input_array_pause(): close the file of an array; the struct keeps what is known of the array.
 * input_array_resume(): open the file again.  Other threads may read other arrays meanwhile.
 * standard: the default object, as in struct input_standard.  is_known: compare the file's facts
 * with those of the first opening; 0: note them.  ERR_IO: the file changed.  ERR_INPUT: it has
 * another type or shape. */
int input_array_pause(struct input_array *s);
int input_array_resume(struct input_array *s, const char *standard, int is_known);
struct input_file *input_array_file(const struct input_array *s);

/* out <- entries first .. first + count - 1 of the first dimension.  Several threads may read one
 * array at once if its HDF5 array was made a stream (h5_array_stream()). */
int input_array_read(const struct input_array *input, gidx first, gidx count, float *out);

/* Compare two arrays by the place where they are stored, as for qsort(); 0: they are the same
 * array.  Files are told apart by inode, size and time, and not by device, whose number differs
 * between nodes. */
int input_array_order(const struct input_array *a, const struct input_array *b);

/* Bytes of a stored value. */
int input_array_value_bytes(const struct input_array *input);

#endif
