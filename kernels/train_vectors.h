/* SPDX-License-Identifier: BSD-3-Clause
 * A warp walks along TRAIN_VECTORS vectors, a lane each: a tile of their columns is in shared
 * memory at a time, so that memory is read along vectors.
 *
 * Floor: kernels. */
#ifndef TRAIN_VECTORS_H
#define TRAIN_VECTORS_H

#include "train_types.h"
#include "types.h"

enum { PITCH = WARP + 1 }; /* lanes are in other banks */

struct vector_tile {
  float at[TRAIN_VECTORS][PITCH];
};

/* The place of this lane's column in vector v; -1 where there is none. */
static __device__ inline long long place_of(long long v, long long count, int column, int p)
{
  column += threadIdx.x;
  return v < count && column < p ? v * p + column : -1;
}

/* Columns `column` .. of vectors `first` .., zeros beyond. */
static __device__ inline void tile_read(struct vector_tile *t, const float *from, long long first,
                                        long long count, int column, int p)
{
#pragma unroll 16
  for (int v = 0; v < TRAIN_VECTORS; v++) {
    long long at = place_of(first + v, count, column, p);
    t->at[v][threadIdx.x] = at >= 0 ? from[at] : 0;
  }
}

/* The chain of products of this lane's vectors goes on; zeros change nothing. */
static __device__ inline double tile_dot(const struct vector_tile *a, const struct vector_tile *b,
                                         double sum)
{
#pragma unroll 8
  for (int c = 0; c < WARP; c++)
    sum = fma((double)a->at[threadIdx.x][c], (double)b->at[threadIdx.x][c], sum);
  return sum;
}

#endif
