/* SPDX-License-Identifier: BSD-3-Clause
 * Small functions of kernels with one warp per row.  A key is the bit pattern of a magnitude; keys
 * have the order of magnitudes. */
#ifndef WARP_H
#define WARP_H

#include "types.h"

#define FULL_WARP 0xffffffffu

enum { KEY_INFINITE = 0x7f800000 };

static __device__ inline int magnitude(float value)
{
  return __float_as_int(value) & 0x7fffffff;
}

static __device__ inline int lanes_before(unsigned mask)
{
  return __popc(mask & ((1u << (threadIdx.x % WARP)) - 1));
}

/* The index of a row in `excluded`, `bad` and `out` of route_args. */
static __device__ inline long long row_named(const struct route_args *a, long long row)
{
  return a->row_of ? a->row_of[row] : row;
}

/* An integer that is larger for entries that come first in the order of (N.2). */
static __device__ inline unsigned long long order_of(float value, int atom)
{
  return (unsigned long long)magnitude(value) << 32 | (unsigned)~atom;
}

#endif
