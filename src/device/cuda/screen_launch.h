/* SPDX-License-Identifier: BSD-3-Clause
 * Launching the kernels of the certified filter (doc/certified.md).
 *
 * Floor: device. */
#ifndef DEVICE_CUDA_SCREEN_LAUNCH_H
#define DEVICE_CUDA_SCREEN_LAUNCH_H

#include "device/cuda/cuda.h"

/* (C.8) Products that the matrix unit adds at a time, and what a step is taken to lose at most, as
 * a part of the magnitudes of these and of the sum so far. */
struct screen_step {
  int group;
  double loss;
};
struct screen_step cuda_screen_step(int architecture);

/* (C.8) A bound on the error of a sum of `terms` products by the matrix unit, as a part of the sum
 * of their magnitudes: groups are added to the accumulator, aligned to the largest exponent and cut
 * to a number of fraction bits.  Twice what is observed; infinity for too many terms. */
double cuda_screen_gamma(int architecture, gidx terms);

/* Launch a kernel that has a warp a row, with so many bytes of shared memory a warp. */
int cuda_screen_launch(struct device *dev, enum kernel_name name, struct screen_args *a, gidx rows,
                       gidx shared);
/* Launch the product, of the sample or of all; a->blocks is set. */
int cuda_screen_product(struct device *dev, struct screen_args *a, int sample);
/* Launch the conversion of a->padded frames. */
int cuda_screen_to_f16(struct device *dev, struct to_f16_args *a);

#endif
