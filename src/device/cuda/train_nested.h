/* SPDX-License-Identifier: BSD-3-Clause
 * Nested widths (N.47) and the bias before the encoder (N.48) on a GPU: operations of the table in
 * backend.h.
 *
 * Floor: device. */
#ifndef DEVICE_CUDA_TRAIN_NESTED_H
#define DEVICE_CUDA_TRAIN_NESTED_H

#include "device/train.h"

/* device/train.h describes these. */
int cuda_train_blocks(struct device *dev, const struct train_blocks_job *job);
int cuda_train_suffix(struct device *dev, float *errors, gidx n, int blocks, idx p);
int cuda_train_block_get(struct device *dev, const float *errors, gidx n, int blocks, int block,
                         idx p, float *to);
int cuda_train_offset(struct device *dev, float *x, gidx n, idx p, const float *offset);
int cuda_train_sums(struct device *dev, const float *rows, gidx n, gidx stride, idx p, float *to);

/* Compute the errors of all widths except the last one.  The last block becomes the reconstruction
 * by all codes. */
int cuda_train_widths(struct device *dev, const struct train_errors_job *job);

#endif
