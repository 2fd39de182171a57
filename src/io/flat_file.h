/* SPDX-License-Identifier: BSD-3-Clause
 * Files that hold the values of an array contiguously: NumPy's .npy, safetensors.
 *
 * Floor: io.  npy.h and safetensors.h read the header; these functions read the values after it. */
#ifndef IO_FLAT_FILE_H
#define IO_FLAT_FILE_H

#include "base/types.h"
#include "io/h5/h5.h"
#include "io/input_file.h"

struct flat_file {
  int file; /* descriptor + 1; 0: not open */
  enum h5_type type;
  int swap; /* stored in the other byte order */
  int rank; /* 0 to 8; shape is known for 1 to 3 */
  gidx shape[3];
  gidx data;                /* byte where the values begin */
  gidx values;              /* safetensors: byte where the values of all tensors begin */
  const char *path;         /* borrowed */
  struct input_file *input; /* notes that the file is read, and finds changes; owned */
};

/* Open a regular file and note it as an input; path must outlive *f.  ERR_IO. */
int flat_open(struct flat_file *f, const char *path);
/* ERR_IO: the file changed while it was read. */
int flat_close(struct flat_file *f);

/* out <- bytes from `at` on.  ERR_INPUT: the file is shorter.  ERR_IO: it cannot be read, or it
 * changed. */
int flat_bytes(const struct flat_file *f, gidx at, size_t bytes, void *out);

/* Bytes of the array that the header describes, which has at most three dimensions. */
gidx flat_array_bytes(const struct flat_file *f);

/* Note the array that the header describes (input_file_array()).  ERR_INPUT: the file is too short
 * for it. */
int flat_array(const struct flat_file *f, const char *object);

/* out <- rows first .. first + count - 1 as float32, rounded once.  Errors: as for flat_bytes(). */
int flat_read(const struct flat_file *f, gidx first, gidx count, float *out);

#endif
