/* SPDX-License-Identifier: BSD-3-Clause
 * The assembly of S on a GPU.
 *
 * Floor: device. */
#ifndef DEVICE_CUDA_JOINT_H
#define DEVICE_CUDA_JOINT_H

#include "device/cuda/cuda.h"

/* Operations of the table. */
int cuda_joint_open(struct joint_work *w);
void cuda_joint_close(struct joint_work *w);
int cuda_joint_begin(struct joint_work *w, struct dense *d, real *s, gidx stride);
int cuda_joint_batch(struct joint_work *w, const struct joint_rows *rows, struct joint_sums *sums);
int cuda_joint_add(struct joint_work *w, real *s, gidx stride);
int cuda_joint_row_size(const struct joint_work *w, idx i, struct joint_size *size);

#endif
