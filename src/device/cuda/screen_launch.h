/* SPDX-License-Identifier: BSD-3-Clause
 * Launching the kernels of the certified filter (doc/certified.md).
 *
 * Floor: device. */
#ifndef DEVICE_CUDA_SCREEN_LAUNCH_H
#define DEVICE_CUDA_SCREEN_LAUNCH_H

#include "device/cuda/cuda.h"

/* (C.8) How the matrix unit adds: `group` products in one step, which loses at most `loss` times
 * the sum of the magnitudes of these products and of the sum so far. */
struct screen_step {
  int group;
  double loss;
};
struct screen_step cuda_screen_step(int architecture);

/* (C.8) A bound on the error of a sum of `terms` products by the matrix unit, relative to the sum
 * of their magnitudes.  The unit aligns each group of products, and the accumulator, to the largest
 * exponent, and truncates them to a number of fraction bits.  The bound is twice what is observed;
 * infinity for too many terms. */
double cuda_screen_gamma(int architecture, gidx terms);

/* Launch a kernel with one warp per row and `shared` bytes of shared memory per warp. */
int cuda_screen_launch(struct device *dev, enum kernel_name name, struct screen_args *a, gidx rows,
                       gidx shared);
/* Launch the product with the sample, or with all atoms; sets a->blocks. */
int cuda_screen_product(struct device *dev, struct screen_args *a, int sample);
/* Launch the conversion of a->padded frames. */
int cuda_screen_to_f16(struct device *dev, struct to_f16_args *a);

#endif
