/* SPDX-License-Identifier: BSD-3-Clause
 * Files of other programs, written: safetensors and NumPy's .npy.
 *
 * Floor: io.  Used by rank 0 alone.  Bytes are little-endian, and depend on the values
 * alone. */
#ifndef IO_TENSORS_WRITE_H
#define IO_TENSORS_WRITE_H

#include <stdio.h>

#include "base/types.h"

struct tensor_out {
  const char *name, *dtype; /* F32; F16 or BF16 of values that are such; F64 of reals */
  int rank;
  gidx shape[3];       /* as it is written */
  const float *values; /* in that order, or turned: [shape[1]][shape[0]] */
  const real *reals;   /* of F64 */
  int turned;
};

/* Write a file of safetensors, the tensors one after another.  ERR_IO. */
int tensors_write(FILE *out, const char *path, const struct tensor_out *list, int count);
/* Write a .npy of one, F32 or F64. */
int npy_write(FILE *out, const char *path, const struct tensor_out *tensor);

#endif
