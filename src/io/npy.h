/* SPDX-License-Identifier: BSD-3-Clause
 * NumPy's .npy files.
 *
 * Floor: io.  Read are versions 1 to 3 of the format, in C order, with values f2, f4 or f8 of
 * either byte order. */
#ifndef IO_NPY_H
#define IO_NPY_H

#include "io/flat_file.h"

/* flat_close() follows also when it fails.  ERR_IO: cannot open; ERR_INPUT: not a NumPy file,
 * truncated, or of a kind that is not read here. */
int npy_open(struct flat_file *f, const char *path);

/* Read the header at a byte of a file that is open, such as an archive: type, byte order, shape,
 * and where the values begin.  dtype[16] <- the type as it is written; of one that is not read,
 * type is TYPE_OTHER. */
int npy_header(struct flat_file *f, gidx at, char *dtype);

#endif
