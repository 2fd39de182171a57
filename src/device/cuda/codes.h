/* SPDX-License-Identifier: BSD-3-Clause
 * Codes of rows on a GPU.
 *
 * Floor: device. */
#ifndef DEVICE_CUDA_CODES_H
#define DEVICE_CUDA_CODES_H

#include "device/cuda/cuda.h"

/* Operations of the table. */
gidx cuda_codes_state_bytes(idx vectors, real rho, int nonnegative);
int cuda_codes(struct device *dev, const struct codes_job *job);

#endif
