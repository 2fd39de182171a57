/* SPDX-License-Identifier: BSD-3-Clause
 * Tensor maps: descriptions of a matrix of 16-bit numbers in memory, from which bulk copies fetch
 * boxes (tiles).
 *
 * Floor: device.  The driver makes them.  The runtime gives the address of the driver's function,
 * so that no driver library is linked. */
#ifndef DEVICE_CUDA_TENSOR_MAP_H
#define DEVICE_CUDA_TENSOR_MAP_H

#include "device/cuda/cuda.h"
#include "model/precision.h"

/* A matrix of `outer` lines of `inner` numbers, `stride` numbers apart.  A box has `box` lines of
 * TENSOR_BOX numbers. */
struct tensor_matrix {
  const void *at;
  gidx inner, outer, stride;
  int box;
};

/* Can the matrix have a map?  Its lines must begin at multiples of 16 bytes. */
int cuda_tensor_mappable(const struct tensor_matrix *m);

/* *map <- a map whose boxes are swizzled as wgmma.h says, with zeros outside of the matrix.
 * ERR_DEVICE if the driver has no maps. */
int cuda_tensor_map(struct cuda_state *s, enum precision precision, const struct tensor_matrix *m,
                    struct tensor_map *map);

#endif
