/* SPDX-License-Identifier: BSD-3-Clause
 * The trial of the matrix unit, for the certified filter.
 *
 * Floor: device. */
#ifndef DEVICE_CUDA_SCREEN_PROBE_H
#define DEVICE_CUDA_SCREEN_PROBE_H

#include "device/cuda/cuda.h"

/* *good <- 1 if sums of the matrix unit are as close as (C.8) assumes, on planted and on random
 * vectors.  ERR_MEMORY. */
int cuda_screen_probe(struct device *dev, int *good);

#endif
