/* SPDX-License-Identifier: BSD-3-Clause
 * Rows as they are read, on a GPU: two operations of the table.
 *
 * Floor: device. */
#ifndef DEVICE_CUDA_PREPROCESS_H
#define DEVICE_CUDA_PREPROCESS_H

#include "device/cuda/cuda.h"

int cuda_preprocess_run(struct preprocess *in, struct preprocess_job *job);
int cuda_preprocess_sums(struct preprocess *in, const struct buffer *rows, gidx first, idx n,
                         real *ended);

#endif
