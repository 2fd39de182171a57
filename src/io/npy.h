/* SPDX-License-Identifier: BSD-3-Clause
 * NumPy's .npy files.
 *
 * Floor: io.  Read are versions 1 to 3 of the format, in C order, with values f2, f4 or f8 of
 * either byte order. */
#ifndef IO_NPY_H
#define IO_NPY_H

#include "base/types.h"
#include "io/h5/h5.h"
#include "io/input_file.h"

struct npy_file {
  int file; /* descriptor + 1; 0: not open */
  enum h5_type type;
  int swap; /* stored in the other byte order */
  int rank; /* 0 to 8; shape is known for 1 to 3 */
  gidx shape[3];
  gidx data;                /* byte where the values begin */
  const char *path;         /* borrowed */
  struct input_file *input; /* notes that the file is read, and finds changes; owned */
};

/* ERR_IO: cannot open; ERR_INPUT: not a NumPy file, truncated, or of a kind that is not read
 * here. */
int npy_open(struct npy_file *f, const char *path);
/* ERR_IO: the file changed while it was read. */
int npy_close(struct npy_file *f);

/* out <- rows first .. first + count - 1 as float32, rounded once.  ERR_IO: it cannot be read, or
 * became shorter. */
int npy_read(const struct npy_file *f, gidx first, gidx count, float *out);

#endif
