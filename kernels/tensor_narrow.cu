/* SPDX-License-Identifier: BSD-3-Clause
 * tensor_narrow: an operand of f32 as the matrix unit's tier takes it, rounded once (N.45).
 *
 * grid    any number of blocks
 * block   TENSOR_NARROW_THREADS: a thread a piece of 16 bytes
 *
 * -D PRECISION  TENSOR_BF16, TENSOR_F16: to the nearest, ties to even; TENSOR_TF32: ties away */
#include "tensor_types.h"

enum { NUMBERS = PRECISION == TENSOR_TF32 ? 4 : 8 /* of a piece */ };

/* Two numbers in 32 bits, or one. */
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

/* A line's numbers from a depth on, zeros beyond the last. */
static __device__ inline void piece_read(const struct tensor_narrow_args *a, long long line,
                                         int depth, float x[NUMBERS])
{
  const float *from = a->in + line * a->line + depth * a->depth;
  if (a->is_aligned && line < a->lines && depth + NUMBERS <= a->depths) {
#pragma unroll
    for (int i = 0; i < NUMBERS; i += 4) *(float4 *)(x + i) = *(const float4 *)(from + i);
    return;
  }
#pragma unroll
  for (int i = 0; i < NUMBERS; i++)
    x[i] = line < a->lines && depth + i < a->depths ? from[i * a->depth] : 0;
}

/* Neighbours among threads are neighbours in memory. */
extern "C" __global__ void __launch_bounds__(TENSOR_NARROW_THREADS)
    tensor_narrow(const __grid_constant__ struct tensor_narrow_args a)
{
  long long pieces = (long long)a.tiles * a.stages * a.items * TENSOR_PIECES;
  long long hop = (long long)gridDim.x * TENSOR_NARROW_THREADS;
  for (long long i = (long long)blockIdx.x * TENSOR_NARROW_THREADS + threadIdx.x; i < pieces;
       i += hop) {
    int within = (int)(i % (a.items * TENSOR_PIECES));
    int piece = a.depth == 1 ? within % TENSOR_PIECES : within / a.items;
    int item = a.depth == 1 ? within / TENSOR_PIECES : within % a.items;
    long long part = i / (a.items * TENSOR_PIECES); /* stages of tiles */
    long long tile = part / a.stages;
    int depth = ((int)(part % a.stages) * TENSOR_PIECES + piece) * NUMBERS;
    __align__(16) float x[NUMBERS];
    unsigned four[4];
    piece_read(&a, tile * a.items + item, depth, x);
#pragma unroll
    for (int v = 0; v < 4; v++) four[v] = narrowed(x + v * (NUMBERS / 4));
    uint4 all = {four[0], four[1], four[2], four[3]};
    *(uint4 *)(a.out + (part * a.items + item) * TENSOR_ITEM + (piece ^ item % 8) * 16) = all;
  }
}
