/* SPDX-License-Identifier: BSD-3-Clause
 * A warp goes along TRAIN_VECTORS vectors, one per lane.  One tile of their columns is in shared
 * memory while the next tile is copied.  A copy reads global memory along a vector.
 *
 * Floor: kernels. */
#ifndef TRAIN_VECTORS_H
#define TRAIN_VECTORS_H

#include "async_copy.h"
#include "train_types.h"
#include "types.h"

enum {
  PITCH = WARP + 1, /* so that lanes have no bank conflict */
  HELD = 16         /* numbers that a lane loads at a time */
};

struct vector_tile {
  float at[TRAIN_VECTORS][PITCH];
};

/* Vectors of p numbers, which are `stride` apart. */
struct vectors {
  const float *at;
  long long count, stride;
  int p;
};

/* The index of this lane's column, column + lane, of vector v; -1 if there is no such number. */
static __device__ inline long long position_of(long long v, long long count, int column, int p)
{
  column += threadIdx.x;
  return v < count && column < p ? v * p + column : -1;
}

/* The same for vectors that are `stride` apart. */
static __device__ inline long long strided_of(const struct vectors *of, long long v, int column)
{
  column += threadIdx.x;
  return v < of->count && column < of->p ? v * of->stride + column : -1;
}

/* Begin to copy a tile: the columns from `column` on of the vectors from `first` on.  Numbers that
 * do not exist become zeros. */
static __device__ inline void tile_order(struct vector_tile *t, const struct vectors *from,
                                         long long first, int column)
{
#pragma unroll 16
  for (int v = 0; v < TRAIN_VECTORS; v++) {
    long long at = strided_of(from, first + v, column);
    async_copy4_or_zeros(&t->at[v][threadIdx.x], from->at + (at >= 0 ? at : 0), at >= 0);
  }
}

/* Wait for all copies if is_last, and otherwise for all but the last group. */
static __device__ inline void tiles_wait(int is_last)
{
  if (is_last)
    ASYNC_WAIT(0);
  else
    ASYNC_WAIT(1);
  __syncwarp();
}

/* out <- column `column` + lane of vectors v .. v + HELD - 1; 0 where there is none. */
static __device__ inline void column_read(const float *from, long long v, long long count,
                                          int column, int p, float out[HELD])
{
#pragma unroll
  for (int i = 0; i < HELD; i++) {
    long long at = position_of(v + i, count, column, p);
    out[i] = at >= 0 ? from[at] : 0;
  }
}

/* Continue the chain of the inner product of this lane's vectors.  Zeros past the last column do
 * not change it. */
static __device__ inline double tile_dot(const struct vector_tile *a, const struct vector_tile *b,
                                         double sum)
{
#pragma unroll 8
  for (int c = 0; c < WARP; c++)
    sum = fma((double)a->at[threadIdx.x][c], (double)b->at[threadIdx.x][c], sum);
  return sum;
}

#endif
