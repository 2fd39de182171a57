/* SPDX-License-Identifier: BSD-3-Clause
 * Gram entries (N.4) of a chunk of 32 vectors: tiles of 8 x 8, columns ascending, four at a time.
 *
 * -D MMA  1: tensor instructions, which add four products as a chain of fma; 0: the same by fma
 *
 * A fragment is one float a lane: lane l has vector l / 4 of a block of 8, column l % 4 of four.
 * It serves as either operand.  In a tile lane l has row l / 4, columns 2 (l % 4) and the next. */
#ifndef CODES_GRAM_H
#define CODES_GRAM_H

#include "codes_row.h"

enum { BLOCK = 8, BLOCKS = WARP / BLOCK, STEP = 4 };

static __device__ inline void tile_add(double z[2], double left, double right)
{
#if MMA
  asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
      : "+d"(z[0]), "+d"(z[1])
      : "d"(left), "d"(right));
#else
  int lane = threadIdx.x, row = lane / 4 * 4, column = lane % 4 * 8;
#pragma unroll
  for (int k = 0; k < STEP; k++) {
    double l = __shfl_sync(FULL_WARP, left, row + k);
    z[0] = fma(l, __shfl_sync(FULL_WARP, right, column + k), z[0]);
    z[1] = fma(l, __shfl_sync(FULL_WARP, right, column + 4 + k), z[1]);
  }
#endif
}

/* Begin to copy columns c .. c + CODES_SLICE - 1 of one vector; zeros beyond p. */
static __device__ inline void slice_copy(float *to, const float *from, int p, int c, int part)
{
  unsigned address = (unsigned)__cvta_generic_to_shared(to + part);
  int bytes = (p - c - part) * 4;
  if (p % 4 == 0) {
    bytes = bytes > 0 ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address),
                 "l"(bytes ? from + c + part : from), "r"(bytes)
                 : "memory");
  } else {
    bytes = bytes > 0 ? 4 : 0;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(address),
                 "l"(bytes ? from + c + part : from), "r"(bytes)
                 : "memory");
  }
}

/* Begin to copy a slice of vectors first .. first + count - 1 to places `place` on. */
static __device__ inline void vectors_copy(const struct codes_row *r, float *slice, int place,
                                           int first, int count, int c)
{
  int width = r->p % 4 ? 1 : 4, parts = CODES_SLICE / width;
  for (int i = threadIdx.x; i < count * parts; i += WARP) {
    float *to = slice + (place + i / parts) * CODES_STRIDE;
    slice_copy(to, vector_of(r, first + i / parts), r->p, c, i % parts * width);
  }
}

/* Slice number s: the chunk's vectors, the row, and those of the chunk to the right if another. */
static __device__ inline void slice_order(const struct codes_row *r, int chunk, int right, int s)
{
  int c = s * CODES_SLICE, first = chunk * WARP, left = r->count - first;
  float *slice = r->slices + s % 2 * r->slice_vectors * CODES_STRIDE;
  if (c < r->p) {
    vectors_copy(r, slice, 0, first, left < WARP ? left : WARP, c);
    int width = r->p % 4 ? 1 : 4;
    for (int at = threadIdx.x * width; at < CODES_SLICE; at += WARP * width)
      slice_copy(slice + WARP * CODES_STRIDE, r->x, r->p, c, at);
    if (right != chunk) vectors_copy(r, slice, WARP + 1, right * WARP, WARP, c);
  }
  asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Tiles of the chunk's blocks that have new vectors, and all or, in the chunk itself, no later
 * blocks of the right chunk; z[i][j] of blocks i and j, x[j] of the row and block j. */
struct tiles {
  double z[BLOCKS][BLOCKS][2], x[BLOCKS][2];
};

static __device__ inline void step_add(struct tiles *t, const float *left, const float *right,
                                       int same, int first, int last)
{
  int lane = threadIdx.x;
  double row = same && lane < 4 ? (double)left[WARP * CODES_STRIDE] : 0, l[BLOCKS], m[BLOCKS];
#pragma unroll
  for (int i = 0; i < BLOCKS; i++) {
    l[i] = left[i * BLOCK * CODES_STRIDE];
    m[i] = same ? l[i] : (double)right[i * BLOCK * CODES_STRIDE];
  }
#pragma unroll
  for (int i = 0; i < BLOCKS; i++) {
    if (i < first || i > last) continue;
#pragma unroll
    for (int j = 0; j < (same ? i + 1 : BLOCKS); j++) tile_add(t->z[i][j], l[i], m[j]);
    if (same) tile_add(t->x[i], row, l[i]);
  }
}

/* Put what is new of the tiles in panels; `right` is the chunk of the columns. */
static __device__ inline void tiles_store(const struct codes_row *r, const struct tiles *t,
                                          double *panel, int chunk, int right)
{
  int lane = threadIdx.x;
#pragma unroll
  for (int i = 0; i < BLOCKS; i++)
#pragma unroll
    for (int j = 0; j < BLOCKS; j++)
#pragma unroll
      for (int e = 0; e < 2; e++) {
        int row = i * BLOCK + lane / 4, v = chunk * WARP + row;
        int column = right * WARP + j * BLOCK + lane % 4 * 2 + e;
        if (v >= r->old && v < r->count && column <= v)
          panel[column * CODES_HEIGHT + row] = t->z[i][j][e];
      }
  if (right != chunk || lane >= 4) return;
#pragma unroll
  for (int j = 0; j < BLOCKS; j++)
#pragma unroll
    for (int e = 0; e < 2; e++) {
      int column = chunk * WARP + j * BLOCK + lane * 2 + e;
      if (column >= r->old && column < r->count) panel[column * CODES_HEIGHT + WARP] = t->x[j][e];
    }
}

/* Entries of the chunk's new rows in the columns of one chunk. */
static __device__ inline void gram(const struct codes_row *r, int chunk, int right, int same)
{
  struct tiles t = {};
  int lane = threadIdx.x, end = r->count - chunk * WARP, begin = r->old - chunk * WARP;
  int first = begin > 0 ? begin / BLOCK : 0, last = end < WARP ? (end - 1) / BLOCK : BLOCKS - 1;
  slice_order(r, chunk, right, 0);
#pragma unroll 1
  for (int s = 0; s * CODES_SLICE < r->p; s++) {
    slice_order(r, chunk, right, s + 1);
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncwarp();
    const float *at = r->slices + s % 2 * r->slice_vectors * CODES_STRIDE;
    const float *from = at + lane / 4 * CODES_STRIDE + lane % 4;
    int columns = r->p - s * CODES_SLICE;
#pragma unroll 1
    for (int c = 0; c < CODES_SLICE && c < columns; c += STEP)
      step_add(&t, from + c, from + (WARP + 1) * CODES_STRIDE + c, same, first, last);
    __syncwarp();
  }
  asm volatile("cp.async.wait_group 0;" ::: "memory");
  tiles_store(r, &t, r->factor + codes_panel_start(chunk), chunk, right);
  if (r->rank != r->factor) tiles_store(r, &t, r->rank + codes_panel_start(chunk), chunk, right);
  __syncwarp();
}

#endif
