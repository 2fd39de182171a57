/* SPDX-License-Identifier: BSD-3-Clause
 * A launch of routing with the certified filter on a GPU (doc/certified.md).
 *
 * Floor: device. */
#ifndef DEVICE_CUDA_SCREEN_H
#define DEVICE_CUDA_SCREEN_H

#include "device/cuda/exact.h"

/* As cuda_launch_exact(); call cuda_screen_prepare() first.  An automatic filter that leaves too
 * many rows to the direct path is turned off. */
int cuda_launch_screen(struct route_launch *t);

#endif
