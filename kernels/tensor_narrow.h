/* SPDX-License-Identifier: BSD-3-Clause
 * Numbers in the precision of the matrix unit (N.45), rounded once.
 *
 * Floor: kernels.  -D PRECISION: TENSOR_BF16 and TENSOR_F16 round to nearest, ties to even;
 * TENSOR_TF32 rounds ties away from zero. */
#ifndef TENSOR_NARROW_H
#define TENSOR_NARROW_H

#include "tensor_types.h"

enum { NUMBERS = PRECISION == TENSOR_TF32 ? 4 : 8 /* in a piece of 16 bytes */ };

/* Two numbers in 32 bits; one for tf32. */
static __device__ inline unsigned narrowed(const float *x)
{
  unsigned bits;
#if PRECISION == 3
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x[0]));
#elif PRECISION == 2
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(x[1]), "f"(x[0]));
#else
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(x[1]), "f"(x[0]));
#endif
  return bits;
}

static __device__ inline uint4 piece_of(const float *x)
{
  uint4 all = {narrowed(x), narrowed(x + NUMBERS / 4), narrowed(x + NUMBERS / 2),
               narrowed(x + 3 * (NUMBERS / 4))};
  return all;
}

#endif
