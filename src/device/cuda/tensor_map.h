/* SPDX-License-Identifier: BSD-3-Clause
 * Tensor maps: how bulk copies find boxes of a matrix of 16 bits a number in memory.
 *
 * Floor: device.  The driver writes them; the runtime says where that function is, so that no
 * driver library is named. */
#ifndef DEVICE_CUDA_TENSOR_MAP_H
#define DEVICE_CUDA_TENSOR_MAP_H

#include "device/cuda/cuda.h"
#include "model/precision.h"

/* A matrix of outer lines of `inner` numbers, `stride` numbers apart, and how many lines of
 * TENSOR_BOX numbers a box has. */
struct tensor_matrix {
  const void *at;
  gidx inner, outer, stride;
  int box;
};

/* May it have a map?  Lines stand at multiples of 16 bytes. */
int cuda_tensor_mappable(const struct tensor_matrix *m);

/* *map <- one whose boxes are permuted as wgmma.h says, with zeros beyond the matrix.  ERR_DEVICE
 * where the driver has no maps. */
int cuda_tensor_map(struct cuda_state *s, enum precision precision, const struct tensor_matrix *m,
                    struct tensor_map *map);

#endif
