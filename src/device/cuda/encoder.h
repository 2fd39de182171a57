/* SPDX-License-Identifier: BSD-3-Clause
 * Supports and codes of rows by an imported encoder on a GPU: an operation of the table.
 *
 * Floor: device. */
#ifndef DEVICE_CUDA_ENCODER_H
#define DEVICE_CUDA_ENCODER_H

#include "device/cuda/cuda.h"

int cuda_encoder(struct device *dev, struct encoder_job *job);

#endif
