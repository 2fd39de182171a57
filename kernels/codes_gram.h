/* SPDX-License-Identifier: BSD-3-Clause
 * All warps of a block compute the Gram entries (N.4) of a row's vectors.  A warp makes a tile of
 * 32 x 32, as blocks of 8 x 8.  Sums run over ascending columns of the data, four at a time.
 *
 * -D MMA (tensor.h) */
#ifndef CODES_GRAM_H
#define CODES_GRAM_H

#include "async_copy.h"
#include "codes_row.h"
#include "tensor.h"

enum { BLOCKS = WARP / BLOCK };
/* Warps of codes that a multiprocessor can run without spilled registers. */
enum { CODES_RESIDENT = !MMA ? 8 : ONE ? 16 : 12 };
enum { STAGES = codes_stages(ONE ? 1 : CODES_WARPS), GROUP = CODES_WARPS / 2 };

static __device__ inline int block_warps(void)
{
  return ONE ? 1 : (int)blockDim.y;
}

static __device__ inline int block_thread(void)
{
  return (ONE ? 0 : threadIdx.y * WARP) + threadIdx.x;
}

/* A tile as blocks.  z[i][j] has the products of eight vectors of one chunk, from 8 i on, and eight
 * vectors of another, from 8 j on.  x[i], in a diagonal tile, has the products of eight vectors,
 * from 8 i on, and the row of data.  The row is the first of the eight columns of that block. */
struct tile {
  double z[BLOCKS][BLOCKS][2], x[BLOCKS][2];
};

/* Add the products over four columns of the data.  left: these columns of the vectors of the tile's
 * rows; right: of the vectors of its columns; row: of the row of data. */
static __device__ inline void tile_add(struct tile *t, const double left[BLOCKS],
                                       const double right[BLOCKS], double row, int same)
{
#pragma unroll
  for (int i = 0; i < BLOCKS; i += 2) {
#pragma unroll
    for (int j = 0; j < (same ? i + 2 : BLOCKS); j++)
      pair_add(t->z[i][j], t->z[i + 1][j], left + i, right[j]);
    if (same) pair_add(t->x[i], t->x[i + 1], left + i, row);
  }
}

/* The vectors that are in shared memory at a time: those of two runs of chunks. */
struct gathering {
  float *slices;      /* shared: [STAGES][vectors, then the row][CODES_STRIDE] */
  int *place;         /* shared: index in atoms of each vector; -1: none */
  int first, chunks;  /* the first run: its first chunk, and its number of chunks */
  int second, others; /* the second run */
};

static __device__ inline void gathering_begin(struct gathering *g, const struct codes_row *r)
{
  int at = block_thread(), beyond = at - g->chunks * WARP;
  int v = beyond < 0 ? g->first * WARP + at : g->second * WARP + beyond;
  g->place = (int *)(g->slices + STAGES * (block_warps() * WARP + 1) * CODES_STRIDE);
  g->place[at] = beyond < g->others * WARP && v < r->count ? r->place[v] : -1;
  __syncthreads();
}

/* Begin to copy columns c .. c + STEP - 1 of a vector.  Columns from p on become zeros. */
static __device__ inline void columns_copy(float *to, const float *from, int c, int p)
{
  if (p % 4 == 0) {
    async_copy16_or_zeros(to, c < p ? from + c : from, c < p);
    return;
  }
#pragma unroll 1
  for (int i = 0; i < STEP; i++)
    async_copy4_or_zeros(to + i, c + i < p ? from + c + i : from, c + i < p);
}

static __device__ inline float *slice_of(const struct gathering *g, int s)
{
  return g->slices + s % STAGES * (int)(block_warps() * WARP + 1) * CODES_STRIDE;
}

/* Begin to copy slice s (CODES_SLICE columns).  A thread copies STEP columns of every
 * (threads / STEP)th vector; the first threads also copy the row of data. */
static __device__ inline void slice_order(const struct codes_row *r, const struct gathering *g,
                                          int s)
{
  int thread = block_thread(), vectors = block_warps() * WARP;
  int c = s * CODES_SLICE + thread % STEP * STEP;
  float *to = slice_of(g, s) + thread / STEP * CODES_STRIDE + thread % STEP * STEP;
  if (s * CODES_SLICE < r->p) {
#pragma unroll 2
    for (int i = 0; i < STEP; i++) {
      int place = g->place[thread / STEP + i * (vectors / STEP)];
      if (place >= 0)
        columns_copy(to + i * (vectors / STEP) * CODES_STRIDE, r->atoms + (long long)place * r->p,
                     c, r->p);
    }
    if (thread < STEP) columns_copy(to + vectors * CODES_STRIDE, r->x, c, r->p);
  }
  async_commit();
}

/* Add the products of a slice to the tile: the products of the chunks at index `row` and `column`
 * of the slice and, if `same`, the products of the chunk and the row of data. */
static __device__ inline void slice_add(struct tile *t, const float *slice, int row, int column,
                                        int same)
{
  int lane = lane_own(), at = lane / 4 * CODES_STRIDE + lane % 4;
  const float *left = slice + row * WARP * CODES_STRIDE + at;
  const float *right = slice + column * WARP * CODES_STRIDE + at;
  const float *x = slice + block_warps() * WARP * CODES_STRIDE + lane;
#pragma unroll 1
  for (int c = 0; c < CODES_SLICE; c += STEP) {
    double l[BLOCKS], m[BLOCKS], own = same && lane < 4 ? (double)x[c] : 0;
#pragma unroll
    for (int i = 0; i < BLOCKS; i++) {
      l[i] = left[i * BLOCK * CODES_STRIDE + c];
      m[i] = same ? l[i] : (double)right[i * BLOCK * CODES_STRIDE + c];
    }
    tile_add(t, l, m, own, same);
  }
}

/* Store the new entries of a tile in panels.  Entries past the last vector are zeros, because
 * later products read them.  For nonnegative codes in one tile the Gram matrix is stored above the
 * diagonal, because factors are stored below. */
static __device__ inline void tile_store(const struct codes_row *r, const struct tile *t,
                                         double *panels, int chunk, int column)
{
  int lane = lane_own();
  double *to = tile_of(panels, chunk, column);
#pragma unroll
  for (int i = 0; i < BLOCKS; i++)
#pragma unroll
    for (int j = 0; j < BLOCKS; j++)
#pragma unroll
      for (int e = 0; e < 2; e++) {
        int row = i * BLOCK + lane / 4, k = j * BLOCK + lane % 4 * 2 + e, v = chunk * WARP + row;
        if (v >= r->old && column * WARP + k <= v)
          to[NONNEGATIVE && ONE ? row * PITCH + k : k * PITCH + row] =
              v < r->count ? t->z[i][j][e] : 0;
      }
}

/* Store the products with the row of data in `solved`. */
static __device__ inline void products_store(const struct codes_row *r, const struct tile *t,
                                             int chunk)
{
  int lane = lane_own();
#pragma unroll
  for (int i = 0; i < BLOCKS; i++) {
    int v = chunk * WARP + i * BLOCK + lane / 4;
    if (lane % 4 == 0 && v >= r->old && v < r->count) r->solved[v] = t->x[i][0];
  }
}

/* Store the squared norms, which are the diagonal before anything is subtracted. */
static __device__ inline void norms_store(const struct codes_row *r, const struct tile *t,
                                          int chunk)
{
  int lane = lane_own(), own = lane / 4;
#pragma unroll
  for (int j = 0; j < BLOCKS; j++) {
    int v = chunk * WARP + j * BLOCK + own;
    if (own / 2 == lane % 4 && v >= r->old && v < r->count)
      r->norms[v] = own % 2 ? t->z[j][j][1] : t->z[j][j][0];
  }
}

/* The diagonal of the factor's panels <- fl(G_jj + rho) of (N.5). */
static __device__ inline void diagonal_add(struct tile *t, double rho)
{
  int lane = lane_own(), own = lane / 4;
#pragma unroll
  for (int j = 0; j < BLOCKS; j++)
#pragma unroll
    for (int e = 0; e < 2; e++)
      if (own == lane % 4 * 2 + e) t->z[j][j][e] += rho;
}

/* Make the tile of `chunk` and `column` if `any`.  A warp without a tile only takes part in the
 * copies: slices of all gathered vectors pass through shared memory. */
static __device__ inline void tile_make(const struct codes_row *r, struct gathering *g, int chunk,
                                        int column, int any, double rho)
{
  struct tile t = {};
  int slices = (r->p + CODES_SLICE - 1) / CODES_SLICE;
  int row = chunk - g->first, right = column - g->first;
  if (g->others) right = g->chunks + column - g->second;
  any &= chunk >= r->old / WARP;
  gathering_begin(g, r);
  for (int s = 0; s < STAGES - 1; s++) slice_order(r, g, s);
#pragma unroll 1
  for (int s = 0; s < slices; s++) {
    ASYNC_WAIT(STAGES - 2);
    __syncthreads();
    slice_order(r, g, s + STAGES - 1);
    if (any && chunk == column) slice_add(&t, slice_of(g, s), row, row, 1);
    if (any && chunk != column) slice_add(&t, slice_of(g, s), row, right, 0);
  }
  ASYNC_WAIT(0);
  __syncthreads();
  if (!any) return;
  if (r->rank != r->factor) tile_store(r, &t, r->rank, chunk, column);
  if (chunk == column) products_store(r, &t, chunk);
  if (!ONE && chunk == column) norms_store(r, &t, chunk);
  if (chunk == column) diagonal_add(&t, rho);
  tile_store(r, &t, r->factor, chunk, column);
}

/* Make all new entries.  If there is a warp for each chunk, warp w makes the diagonal tile
 * of chunk w and then, one after another, its tiles with half of the other chunks.  Otherwise
 * chunks are done in squares of GROUP by GROUP, two tiles per warp. */
static __device__ inline void gram_make(const struct codes_row *r, float *slices, double rho)
{
  int w = ONE ? 0 : threadIdx.y, n = ONE ? 1 : r->chunks, whole = n <= block_warps();
  int group = whole ? n : GROUP, turns = whole ? n / 2 + 1 : 2;
#pragma unroll 1
  for (int i = r->old / WARP / group * group; i < n; i += group)
#pragma unroll 1
    for (int k = 0; k <= i; k += group)
#pragma unroll 1
      for (int j = 0; j < turns; j++) {
        struct gathering g = {slices, 0, i, n - i < group ? n - i : group, k, k < i ? group : 0};
        int other = (w + j) % n, chunk = w > other ? w : other, column = w > other ? other : w;
        int any = w < n && (2 * j < n || w < j);
        if (!whole) {
          chunk = i + w % GROUP;
          column = k + (w / GROUP + 2 * j + w) % GROUP;
          any = chunk < n && column <= chunk;
        }
        tile_make(r, &g, chunk, column, any, rho);
      }
}

#endif
