/* SPDX-License-Identifier: BSD-3-Clause
 * NumPy's .npy files.
 *
 * Floor: io.  It reads versions 1 to 3 of the format, in C order, with values f2, f4 or f8 of
 * either byte order. */
#ifndef IO_NPY_H
#define IO_NPY_H

#include "io/flat_file.h"

/* Call flat_close() also after a failure.  ERR_IO: cannot open; ERR_INPUT: the file is not a NumPy
 * file, is truncated, or has a version, order or type that is not read here. */
int npy_open(struct flat_file *f, const char *path);

/* Read the header that begins at byte `at` of an open file, such as an archive: type, byte order,
 * shape, and where the values begin.  dtype[16] <- the type as it is written; f->type is TYPE_OTHER
 * for a type that is not supported. */
int npy_header(struct flat_file *f, gidx at, char *dtype);

#endif
