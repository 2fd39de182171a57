/* SPDX-License-Identifier: BSD-3-Clause
 * The page of a .npy file: what it holds, what that is to a job, and whether it can be used.
 *
 * Floor: io. */
#ifndef IO_INSPECT_NPY_H
#define IO_INSPECT_NPY_H

#include <stdio.h>

/* All values are read.  ERR_IO, ERR_INPUT: as of npy_open(). */
int npy_inspect(const char *path, FILE *out);

#endif
