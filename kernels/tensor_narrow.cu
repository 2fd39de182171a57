/* SPDX-License-Identifier: BSD-3-Clause
 * tensor_narrow: packs an operand for the matrix unit (N.45): f32 numbers, which are rounded once,
 * or numbers that are stored in the precision.
 *
 * grid    any number of blocks
 * block   TENSOR_NARROW_THREADS: one piece of 16 bytes per thread
 * shared  static: pieces that threads exchange
 *
 * -D PRECISION  TENSOR_BF16 and TENSOR_F16 round to nearest, ties to even; TENSOR_TF32 rounds ties
 *               away from zero */
#include "tensor_narrow.h"

enum { LINES = TENSOR_NARROW_THREADS / TENSOR_PIECES };

/* x <- the numbers of a line from a depth on; zeros past the last line and depth. */
static __device__ inline void piece_read(const struct tensor_narrow_args *a, long long line,
                                         int depth, float x[NUMBERS])
{
  const float *from = (const float *)a->in + line * a->line + depth * a->depth;
  if (a->is_aligned && line < a->lines && depth + NUMBERS <= a->depths) {
#pragma unroll
    for (int i = 0; i < NUMBERS; i += 4) *(float4 *)(x + i) = *(const float4 *)(from + i);
    return;
  }
#pragma unroll
  for (int i = 0; i < NUMBERS; i++)
    x[i] = line < a->lines && depth + i < a->depths ? from[i * a->depth] : 0;
}

/* The same for stored numbers. */
static __device__ inline uint4 piece_stored(const struct tensor_narrow_args *a, long long line,
                                            int depth)
{
  enum { STORED = 8 };
  const unsigned short *from = (const unsigned short *)a->in + line * a->line + depth * a->depth;
  if (a->is_aligned && line < a->lines && depth + STORED <= a->depths) return *(const uint4 *)from;
  unsigned x[STORED];
#pragma unroll
  for (int i = 0; i < STORED; i++)
    x[i] = line < a->lines && depth + i < a->depths ? from[i * a->depth] : 0;
  uint4 all = {x[0] | x[1] << 16, x[2] | x[3] << 16, x[4] | x[5] << 16, x[6] | x[7] << 16};
  return all;
}

static __device__ inline uint4 piece_narrowed(const struct tensor_narrow_args *a, long long line,
                                              int depth)
{
  if (PRECISION != TENSOR_TF32 && a->is_stored) return piece_stored(a, line, depth);
  __align__(16) float x[NUMBERS];
  piece_read(a, line, depth, x);
  return piece_of(x);
}

/* A block takes 32 lines of a stage at a time.  Neighbouring threads read neighbouring memory.
 * If the operand is contiguous along its depth, neighbouring threads have the pieces of one line.
 * Otherwise they have the same piece of neighbouring lines; before they write, threads exchange
 * pieces, so that they also write neighbouring memory. */
extern "C" __global__ void __launch_bounds__(TENSOR_NARROW_THREADS)
    tensor_narrow(const __grid_constant__ struct tensor_narrow_args a)
{
  __shared__ uint4 turned[LINES][TENSOR_PIECES];
  int is_deep = a.depth == 1, own_line = threadIdx.x / TENSOR_PIECES;
  int own_piece = threadIdx.x % TENSOR_PIECES;
  int line = is_deep ? own_line : threadIdx.x % LINES;
  int piece = is_deep ? own_piece : threadIdx.x / LINES;
  long long groups = (long long)a.tiles * a.stages * (a.items / LINES);
  for (long long i = blockIdx.x; i < groups; i += gridDim.x) {
    long long part = i / (a.items / LINES); /* number of the stage, over all tiles */
    int first = (int)(i % (a.items / LINES)) * LINES;
    int depth = ((int)(part % a.stages) * TENSOR_PIECES + piece) * NUMBERS;
    uint4 all = piece_narrowed(&a, part / a.stages * a.items + first + line, depth);
    if (!is_deep) {
      __syncthreads(); /* the pieces of the round before have been read */
      turned[line][piece ^ line % 8] = all;
      __syncthreads();
      all = turned[own_line][own_piece ^ own_line % 8];
    }
    char *item = a.out + (part * a.items + first + own_line) * TENSOR_ITEM;
    *(uint4 *)(item + (own_piece ^ own_line % 8) * 16) = all;
  }
}
