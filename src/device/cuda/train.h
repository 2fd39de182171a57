/* SPDX-License-Identifier: BSD-3-Clause
 * The parts of a training step on a GPU that have no file of their own: operations of the table in
 * backend.h.
 *
 * Floor: device. */
#ifndef DEVICE_CUDA_TRAIN_H
#define DEVICE_CUDA_TRAIN_H

#include "device/train.h"

int cuda_train_errors(struct device *dev, const struct train_errors_job *job);
int cuda_train_scale(struct device *dev, float *values, gidx count, float factor);
int cuda_train_transpose(struct device *dev, const struct train_transpose_job *job);
gidx cuda_train_transpose_bytes(idx n, idx k);
int cuda_train_idle(struct device *dev, const struct train_idle_job *job);
int cuda_train_tangent(struct device *dev, const float *atoms, gidx count, idx p, float *gradient);
int cuda_train_normalize(struct device *dev, float *atoms, gidx count, idx p);

#endif
