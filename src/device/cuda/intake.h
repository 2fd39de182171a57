/* SPDX-License-Identifier: BSD-3-Clause
 * Rows as they come to a GPU: two rows of the table.
 *
 * Floor: device. */
#ifndef DEVICE_CUDA_INTAKE_H
#define DEVICE_CUDA_INTAKE_H

#include "device/cuda/cuda.h"

int cuda_intake_take(struct intake *in, struct intake_job *job);
int cuda_intake_sums(struct intake *in, const struct buffer *rows, gidx first, idx n, real *ended);

#endif
