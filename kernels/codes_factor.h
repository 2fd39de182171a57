/* SPDX-License-Identifier: BSD-3-Clause
 * Cholesky factor, rank test and substitutions of codes (N.5), by tiles of 32 x 32.
 *
 * A warp has one row of data.  Tensor instructions subtract from a tile the products of the tiles
 * on its left, as chains over ascending columns.  Columns of dropped vectors are zeros in
 * those tiles, and change no sum.  Then each lane has one row of the tile: the diagonal tile is
 * factored, and the tiles below are solved with it. */
#ifndef CODES_FACTOR_H
#define CODES_FACTOR_H

#include "codes_gram.h"

/* A vector is kept if its pivot exceeds its squared norm times this; as in model/codes.h. */
#define DROP_TOLERANCE 0x1p-30

enum { EIGHT = 8 }; /* columns of a step; after a step a lane's row moves down by 8 registers */

/* The state of a row. */
struct solving {
  struct codes_row r;
  double *panels;  /* the factor that is being made */
  double *tile;    /* shared, [WARP][CODES_PITCH]: the current diagonal tile */
  unsigned *kept;  /* shared: one bit per vector */
  int test, solve; /* test: decide which vectors are kept; solve: compute y too */
  /* NONNEGATIVE: */
  const unsigned *set; /* shared: the vectors that take part, one bit each */
  double rho;          /* added to the diagonal */
};

/* NONNEGATIVE: does vector v take part? */
static __device__ inline int is_in(const struct solving *w, int v)
{
  return w->set[v / WARP] >> v % WARP & 1;
}

static __device__ inline int is_kept(const struct solving *w, int v)
{
  return w->kept[v / WARP] >> v % WARP & 1;
}

/* Does the vector of this lane exist in the chunk? */
static __device__ inline int is_there(const struct codes_row *r, int chunk)
{
  return chunk * WARP + (int)threadIdx.x < r->count;
}

/* Does the vector of this lane exist, and is it not solved yet? */
static __device__ inline int is_new(const struct codes_row *r, int chunk)
{
  return is_there(r, chunk) && chunk * WARP + (int)threadIdx.x >= r->old;
}

/* Load a tile.  This lane's number e of block (i, j) is in row 8 i + lane / 4 and column 8 j + 2
 * (lane % 4) + e of the tile. */
static __device__ inline void tile_load(struct tile *t, const double *from, int same)
{
  int lane = lane_own();
#pragma unroll
  for (int i = 0; i < BLOCKS; i++)
#pragma unroll
    for (int j = 0; j < (same ? i + 1 : BLOCKS); j++)
#pragma unroll
      for (int e = 0; e < 2; e++) {
        int row = i * BLOCK + lane / 4, k = j * BLOCK + lane % 4 * 2 + e;
        t->z[i][j][e] = !same || k <= row ? from[k * WARP + row] : 0;
      }
}

static __device__ inline void products_load(const struct codes_row *r, struct tile *t, int chunk)
{
  int lane = lane_own();
#pragma unroll
  for (int i = 0; i < BLOCKS; i++) {
    int v = chunk * WARP + i * BLOCK + lane / 4;
    if (lane % 4 == 0 && v >= r->old && v < r->count) t->x[i][0] = r->solved[v];
  }
}

/* The operand fragments of four columns of a panel. */
static __device__ inline void fragments_load(const double *panel, int k, double out[BLOCKS])
{
  int lane = lane_own();
#pragma unroll
  for (int i = 0; i < BLOCKS; i++) out[i] = panel[(k + lane % 4) * WARP + i * BLOCK + lane / 4];
}

/* Subtract from the tile of `chunk` and `column` the inner products of the rows of these two
 * chunks, over all columns on the left of the tile. */
static __device__ inline void tile_reduce(const struct solving *w, struct tile *t, int chunk,
                                          int column, int same)
{
  const double *rows = tile_of(w->panels, chunk, 0), *others = tile_of(w->panels, column, 0);
  int lane = lane_own();
  tile_load(t, rows + column * WARP * WARP, same);
  if (same && w->solve) products_load(&w->r, t, chunk);
#pragma unroll 1
  for (int k = 0; k < column * WARP; k += STEP) {
    double left[BLOCKS], right[BLOCKS], y = same && lane < 4 ? w->r.solved[k + lane] : 0;
    fragments_load(others, k, right);
    if (!same) fragments_load(rows, k, left);
#pragma unroll
    for (int i = 0; i < BLOCKS; i++) left[i] = -(same ? right[i] : left[i]);
    tile_add(t, left, right, y, same);
  }
  if (same && w->solve) products_store(&w->r, t, chunk);
}

static __device__ inline void tile_update(const struct solving *w, int chunk, int column)
{
  struct tile t = {};
  if (chunk != column)
    tile_reduce(w, &t, chunk, column, 0);
  else
    tile_reduce(w, &t, chunk, column, 1);
  tile_store(&w->r, &t, w->panels, chunk, column);
  __syncwarp();
}

/* A lane's row of the current tile.  t[0] is column `at`.  Two members are for the diagonal
 * tile: norm, the squared norm of the lane's vector, and b.  b begins as x . vector; each solved
 * column is subtracted from it, and it ends as y. */
struct tile_row {
  double t[WARP], norm, b;
  int chunk, column, at;
  int same; /* 1: this is the diagonal tile */
  int is_new;
};

static __device__ inline void row_load(const struct solving *w, struct tile_row *l)
{
  const struct codes_row *r = &w->r;
  int lane = lane_own(), v = l->chunk * WARP + lane, there = is_there(r, l->chunk);
  int end = !there ? 0 : l->same ? lane + 1 : width_of(r, l->column);
  const double *from = tile_of(w->panels, l->chunk, l->column) + lane;
  l->is_new = is_new(r, l->chunk);
  if (NONNEGATIVE && ONE) from = w->tile + lane * PITCH; /* above the diagonal, see tile_store() */
#pragma unroll
  for (int j = 0; j < WARP; j++) l->t[j] = j < end ? from[NONNEGATIVE && ONE ? j : j * PITCH] : 0;
  if (!l->same || !there) return;
  l->b = r->solved[v];
  if (l->is_new) l->norm = ONE && !NONNEGATIVE ? r->rank[lane * PITCH + lane] : r->norms[v];
#pragma unroll
  for (int j = 0; j < WARP; j++)
    if (NONNEGATIVE && ONE && j == lane) l->t[j] = l->norm + w->rho;
}

/* Is vector v of the diagonal tile kept?  For a tested new vector this follows from its pivot,
 * which its lane has in `entry`.  For the others it is already in w->kept. */
static __device__ inline int column_keep(const struct solving *w, double norm, int v, double entry)
{
  if (!w->test || v < w->r.old) return is_kept(w, v);
  if (NONNEGATIVE) norm = w->r.norms[v]; /* reread, to save a register */
  int keep = __shfl_sync(FULL_WARP, entry > DROP_TOLERANCE * norm, v % WARP);
  if (NONNEGATIVE) keep &= is_in(w, v);
  if (threadIdx.x == 0) w->kept[v / WARP] |= (unsigned)keep << v % WARP;
  return keep;
}

/* Column at + u: divide it by its pivot, store it, and subtract its products from the later
 * columns.  The lane of the pivot divides b instead.  If NONNEGATIVE and ONE, entries above the
 * diagonal are not changed, because they hold the Gram matrix. */
static __device__ inline void column_solve(const struct solving *w, struct tile_row *l, int u)
{
  int lane = lane_own(), j = l->at + u, v = l->column * WARP + j, same = ONE || l->same;
  double *own = w->tile + j * CODES_PITCH, pivot = same ? l->t[u] : own[j];
  int keep = same ? column_keep(w, l->norm, v, pivot) : is_kept(w, v);
  if (same) pivot = __shfl_sync(FULL_WARP, pivot, j);
  if (same && v >= w->r.old) pivot = sqrt(pivot);
  double part = (same && lane == j ? l->b : l->t[u]) / pivot, less = 0;
  if (l->is_new) {
    double entry = !keep || (same && lane < j) ? 0 : same && lane == j ? pivot : part;
    if (!ONE && (!same || lane >= j))
      tile_of(w->panels, l->chunk, l->column)[j * WARP + lane] = entry;
    l->t[u] = entry;
    less = -entry;
  }
  if (same) {
    if (!NONNEGATIVE || !ONE || lane >= j) own[lane] = l->t[u];
    double y = __shfl_sync(FULL_WARP, v < w->r.old ? l->b : keep ? part : 0, j);
    l->b = lane == j ? y : fma(less, y, l->b);
  }
  __syncwarp();
#pragma unroll
  for (int k = u + 1; k < WARP; k++)
    if (k < EIGHT || l->at + k / EIGHT * EIGHT < WARP) l->t[k] = fma(less, own[l->at + k], l->t[k]);
}

/* Factor the diagonal tile, or solve a tile below it. */
static __device__ inline void tile_solve(const struct solving *w, int chunk, int column)
{
  struct tile_row l = {};
  int width = width_of(&w->r, column);
  l.chunk = chunk;
  l.column = column;
  l.same = chunk == column;
  row_load(w, &l);
  __syncwarp();
#pragma unroll 1
  for (; l.at < width; l.at += EIGHT) {
#pragma unroll
    for (int u = 0; u < EIGHT; u++) {
      if (l.at + u >= width) break;
      column_solve(w, &l, u);
    }
#pragma unroll
    for (int k = EIGHT; k < WARP; k++) l.t[k - EIGHT] = l.t[k];
  }
  if ((ONE || l.same) && w->solve && l.is_new) w->r.solved[chunk * WARP + threadIdx.x] = l.b;
  __syncwarp();
}

/* Copy a diagonal tile from global to shared memory. */
static __device__ inline void tile_fetch(const struct solving *w, double *panels, int chunk)
{
  const double *from = tile_of(panels, chunk, chunk);
  int lane = lane_own(), there = is_there(&w->r, chunk);
#pragma unroll 8
  for (int j = 0; j < WARP; j++)
    w->tile[j * CODES_PITCH + lane] = there && j <= lane ? from[j * WARP + lane] : 0;
  __syncwarp();
}

static __device__ inline void factor(const struct solving *w)
{
  int first = ONE ? 0 : w->r.old / WARP, chunks = ONE ? 1 : w->r.chunks;
#pragma unroll 1
  for (int column = 0; column < chunks; column++) {
    if (column < first) tile_fetch(w, w->panels, column);
#pragma unroll 1
    for (int chunk = column > first ? column : first; chunk < chunks; chunk++) {
      if (!ONE && column) tile_update(w, chunk, column);
      tile_solve(w, chunk, column);
    }
  }
}

/* Subtract the terms of the codes of a later chunk from the sums of a chunk, in descending order of
 * vectors. */
static __device__ inline void codes_subtract(const struct solving *w, int later, int chunk)
{
  const double *column = tile_of(w->r.factor, later, chunk) + threadIdx.x * WARP;
  double *own = w->r.solved + chunk * WARP + threadIdx.x, acc = *own;
  unsigned kept = w->kept[later];
#pragma unroll 4
  for (int k = width_of(&w->r, later) - 1; k >= 0; k--) {
    double next = fma(-column[k], w->r.solved[later * WARP + k], acc);
    acc = kept >> k & 1 ? next : acc;
  }
  *own = acc;
}

/* Replace the sums of a chunk by its codes.  A lane has one column of the diagonal tile. */
static __device__ inline void codes_finish(const struct solving *w, int chunk)
{
  int lane = lane_own(), there = is_there(&w->r, chunk);
  double *own = w->r.solved + chunk * WARP + lane, acc = there ? *own : 0, code = 0;
  if (!ONE) tile_fetch(w, w->r.factor, chunk);
  unsigned kept = w->kept[chunk];
#pragma unroll 1
  for (int k = width_of(&w->r, chunk) - 1; k >= 0; k--) {
    if (!(kept >> k & 1)) continue;
    double c = __shfl_sync(FULL_WARP, acc / w->tile[k * CODES_PITCH + k], k);
    if (lane == k) code = c;
    acc = fma(-w->tile[lane * CODES_PITCH + k], c, acc);
  }
  if (there) *own = code;
  __syncwarp();
}

/* Replace y by the codes, in chains over descending vectors. */
static __device__ inline void back_substitute(const struct solving *w)
{
#pragma unroll 1
  for (int chunk = ONE ? 0 : w->r.chunks - 1; chunk >= 0; chunk--) {
    codes_finish(w, chunk);
#pragma unroll 1
    for (int q = 0; q < chunk; q++) codes_subtract(w, chunk, q);
    __syncwarp();
  }
}

#endif
