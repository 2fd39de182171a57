/* SPDX-License-Identifier: BSD-3-Clause
 * Write files for other programs: safetensors and NumPy's .npy.
 *
 * Floor: io.  Used by rank 0 alone.  Bytes are little-endian, and depend on the values alone. */
#ifndef IO_TENSORS_WRITE_H
#define IO_TENSORS_WRITE_H

#include <stdio.h>

#include "base/types.h"

struct tensor_out {
  const char *name, *dtype; /* F32; F16 or BF16 if all values are representable; F64 for reals */
  int rank;
  gidx shape[3];       /* as written to the file */
  const float *values; /* in C order; if turned, of the transposed shape: [shape[1]][shape[0]] */
  const real *reals;   /* values of dtype F64 */
  int turned;
};

/* Write a file of safetensors, the tensors one after another.  ERR_IO. */
int tensors_write(FILE *out, const char *path, const struct tensor_out *list, int count);
/* Write one tensor, F32 or F64, as a .npy file. */
int npy_write(FILE *out, const char *path, const struct tensor_out *tensor);

#endif
