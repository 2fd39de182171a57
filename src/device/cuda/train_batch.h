/* SPDX-License-Identifier: BSD-3-Clause
 * Codes of a whole batch on a GPU (N.46): operations of the table in backend.h.
 *
 * Floor: device. */
#ifndef DEVICE_CUDA_TRAIN_BATCH_H
#define DEVICE_CUDA_TRAIN_BATCH_H

#include "device/train.h"

/* device/train.h describes these. */
int cuda_train_scores(struct device *dev, const struct train_codes_job *job);
int cuda_train_count(struct device *dev, const struct train_codes_job *job,
                     const struct batch_cut *cut, gidx *counts);
int cuda_train_cut(struct device *dev, const struct train_codes_job *job,
                   const struct batch_cut *cut, gidx ties);
int cuda_train_raise(struct device *dev, const struct train_codes_job *job,
                     const struct train_raise *raise);
gidx cuda_train_batch_bytes(const struct train_codes_job *job);

#endif
