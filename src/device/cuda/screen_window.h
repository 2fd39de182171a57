/* SPDX-License-Identifier: BSD-3-Clause
 * The window of the dictionary as the certified filter needs it, and whether the filter is used.
 *
 * Floor: device. */
#ifndef DEVICE_CUDA_SCREEN_WINDOW_H
#define DEVICE_CUDA_SCREEN_WINDOW_H

#include "device/cuda/cuda.h"

/* Is the filter wanted and worth its start?  ERR_DEVICE where `on` cannot be. */
int cuda_screen_open(struct device *dev);
void cuda_screen_close(struct cuda_state *s);

/* Try the matrix unit, unless it was, and turn the filter off, saying so, where it fails. */
int cuda_screen_try(struct device *dev);

/* Convert what the window has to fp16 tiles, unless they are there; the first call tries the matrix
 * unit where opening did not. */
int cuda_screen_prepare(struct device *dev);

#endif
