/* SPDX-License-Identifier: BSD-3-Clause
 * Large dense matrices on a GPU.
 *
 * Floor: device. */
#ifndef DEVICE_CUDA_DENSE_H
#define DEVICE_CUDA_DENSE_H

#include "device/cuda/cuda.h"

/* Operations of the table. */
int cuda_dense_open(struct dense *d);
void cuda_dense_close(struct dense *d);
int cuda_cholesky(struct dense *d, real *s, idx n, gidx stride, real *pivot, idx *good);
int cuda_inverse(struct dense *d, real *l, idx n, gidx stride);
int cuda_product(struct dense *d, const struct dense_product *p);
int cuda_entries(struct dense *d, const struct dense_entries *e);

#endif
