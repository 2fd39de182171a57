/* SPDX-License-Identifier: BSD-3-Clause
 * Nested widths on the CPU (N.47): operations of the table in backend.h.
 *
 * Floor: device, inside of the CPU backend. */
#ifndef DEVICE_CPU_TRAIN_NESTED_H
#define DEVICE_CPU_TRAIN_NESTED_H

#include "device/train.h"

/* device/train.h describes these. */
int cpu_train_blocks(struct device *dev, const struct train_blocks_job *job);
int cpu_train_suffix(struct device *dev, float *errors, gidx n, int blocks, idx p);
int cpu_train_block_get(struct device *dev, const float *errors, gidx n, int blocks, int block,
                        idx p, float *to);

#endif
