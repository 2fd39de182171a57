/* SPDX-License-Identifier: BSD-3-Clause
 * The window of the dictionary in the filter's form, and whether the filter is used.
 *
 * Floor: device. */
#ifndef DEVICE_CUDA_SCREEN_WINDOW_H
#define DEVICE_CUDA_SCREEN_WINDOW_H

#include "device/cuda/cuda.h"

/* Use the filter if the options ask for it and it pays.  ERR_DEVICE if `on` is impossible. */
int cuda_screen_open(struct device *dev);
void cuda_screen_close(struct cuda_state *s);

/* Run the trial of the matrix unit, unless it has run.  If it fails, turn the filter off and log
 * this. */
int cuda_screen_try(struct device *dev);

/* Convert the window to fp16 tiles, unless that is done.  The first call runs the trial of the
 * matrix unit, if it has not run yet. */
int cuda_screen_prepare(struct device *dev);

#endif
