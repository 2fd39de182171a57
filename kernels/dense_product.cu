/* SPDX-License-Identifier: BSD-3-Clause
 * dense_product: chains of products of two matrices (N.19), tile by tile.
 *
 * grid    product_tiles(): one tile of ROWS x COLUMNS per block.  Tiles are numbered down a column
 *         of PRODUCT_GROUP tiles, then down the next column, so that blocks that run at the same
 *         time find the same operands in the second-level cache
 * block   PRODUCT_WARPS warps, with 32 columns each
 * shared  product_shared_bytes(): stages
 * sums    a chain of fma for each entry, ascending depths, from the entry itself
 *
 * -D MMA (tensor.h), DEEP_A, DEEP_B, ROWS, COLUMNS, STAGES: product_form_of()
 * Past the last depth a term is (-0) (+0), which does not change a sum.  A triangular operand is
 * 0 before its diagonal; stages of such zeros are skipped. */
#include "async_copy.h"
#include "dense_types.h"
#include "tensor.h"

enum {
  THREADS = PRODUCT_WARPS * WARP,
  ACROSS = COLUMNS / 32, /* warps side by side */
  DOWN = PRODUCT_WARPS / ACROSS,
  ROW_BLOCKS = ROWS / DOWN / 16,
  COLUMN_BLOCKS = 32 / BLOCK,
  PITCH_A = product_pitch(DEEP_A, ROWS),
  PITCH_B = product_pitch(DEEP_B, COLUMNS),
  VALUES_A = product_side_values(DEEP_A, ROWS),
  VALUES_B = product_side_values(DEEP_B, COLUMNS)
};

struct stage {
  double a[VALUES_A], b[VALUES_B];
};

/* The pairs of reals that a thread copies of an operand in every stage. */
struct copier {
  struct product_side side;
  const double *at;       /* its first pair, at depth 0 */
  long long hop;          /* reals to the next pair */
  int row, depth;         /* of its first pair: the row in the matrix, the depth in the stage */
  int row_hop, depth_hop; /* from a pair to the next */
  int to, to_hop;         /* index of its first pair in the stage, and reals to the next */
  int row_end, depth_end; /* of the matrix */
  /* is_whole: all rows exist, and pairs are aligned.  diagonal: no row has zeros from this depth
   * on. */
  int is_whole, diagonal;
  double beyond; /* the value at depths past the last one */
};

static __device__ inline struct copier copier_of(const struct product_side *side, int deep,
                                                 int rows, int first, int row_end, int depth_end,
                                                 double beyond)
{
  int thread = threadIdx.y * WARP + threadIdx.x, pitch = product_pitch(deep, rows);
  int pairs = (deep ? PRODUCT_DEPTH : rows) / 2, along = thread % pairs * 2, line = thread / pairs;
  int lines = THREADS / pairs;
  struct copier c;
  c.side = *side;
  c.row = first + (deep ? line : along);
  c.depth = deep ? along : line;
  c.row_hop = deep ? lines : 0;
  c.depth_hop = deep ? 0 : lines;
  c.hop = lines * (deep ? side->row : side->depth);
  c.at = side->at + c.row * side->row + c.depth * side->depth;
  c.to = line * pitch + along;
  c.to_hop = lines * pitch;
  c.row_end = row_end;
  c.depth_end = depth_end;
  c.beyond = beyond;
  c.diagonal = side->is_triangular ? (first + rows < row_end ? first + rows : row_end) : 0;
  c.is_whole = first + rows <= row_end && (size_t)side->at % 16 == 0 &&
               (deep ? side->row : side->depth) % 2 == 0 && (deep ? 0 : first) % 2 == 0;
  return c;
}

static __device__ inline void one_order(const struct copier *c, double *to, int row, int depth)
{
  if (depth >= c->depth_end)
    *to = c->beyond;
  else if (row >= c->row_end || (c->side.is_triangular && depth < row))
    *to = 0;
  else
    async_copy8(to, c->side.at + row * c->side.row + depth * c->side.depth);
}

/* Begin to copy the stage that begins at depth k. */
static __device__ inline void stage_order(const struct copier *c, int deep, int rows, int k,
                                          double *to)
{
  int passes = rows * PRODUCT_DEPTH / 2 / THREADS;
  to += c->to;
  if (c->is_whole && k >= c->diagonal && k + PRODUCT_DEPTH <= c->depth_end &&
      (!deep || k % 2 == 0)) {
    const double *from = c->at + k * c->side.depth;
#pragma unroll
    for (int i = 0; i < passes; i++) async_copy16(to + i * c->to_hop, from + i * c->hop);
    return;
  }
#pragma unroll 1
  for (int i = 0; i < passes; i++) {
    int row = c->row + i * c->row_hop, depth = k + c->depth + i * c->depth_hop;
    one_order(c, to + i * c->to_hop, row, depth);
    one_order(c, to + i * c->to_hop + 1, deep ? row : row + 1, deep ? depth + 1 : depth);
  }
}

/* The tile of this block. */
struct tile {
  int row, column; /* its first row and column */
};

static __device__ inline struct tile tile_of(const struct product_args *a)
{
  int down = (a->row_end - a->row_begin + ROWS - 1) / ROWS;
  int across = (a->column_end - a->column_begin + COLUMNS - 1) / COLUMNS;
  int group = blockIdx.x / (PRODUCT_GROUP * across), rest = blockIdx.x % (PRODUCT_GROUP * across);
  int above = group * PRODUCT_GROUP, rows = down - above;
  if (rows > PRODUCT_GROUP) rows = PRODUCT_GROUP;
  struct tile t = {a->row_begin + (above + rest % rows) * ROWS,
                   a->column_begin + rest / rows * COLUMNS};
  return t;
}

/* Is any entry of the tile written? */
static __device__ inline int tile_has(const struct product_args *a, const struct tile *t)
{
  return t->row + ROWS - 1 - t->column >= a->least && t->row - (t->column + COLUMNS - 1) <= a->most;
}

static __device__ inline int entry_has(const struct product_args *a, int row, int column)
{
  return row < a->row_end && column < a->column_end && row - column >= a->least &&
         row - column <= a->most;
}

/* A warp's sums: blocks of 16 x 8; a lane has two rows BLOCK apart, and two columns of each. */
struct sums {
  double at[ROW_BLOCKS][COLUMN_BLOCKS][2][2];
};

/* Do all entries of the tile exist, and are they all written? */
static __device__ inline int tile_is_whole(const struct product_args *a, const struct tile *t)
{
  return t->row + ROWS <= a->row_end && t->column + COLUMNS <= a->column_end &&
         t->row - (t->column + COLUMNS - 1) >= a->least && t->row + ROWS - 1 - t->column <= a->most;
}

/* Load the entries of the tile, or store them if `back`.  whole is a constant: tile_is_whole(). */
static __device__ inline void sums_copy(const struct product_args *a, const struct tile *t,
                                        struct sums *s, int whole, int back)
{
  int row = t->row + threadIdx.y / ACROSS * (ROWS / DOWN) + threadIdx.x / 4;
  int column = t->column + threadIdx.y % ACROSS * 32 + threadIdx.x % 4 * 2;
  double *c = a->c + (row - a->row_begin) * a->c_row + (column - a->column_begin) * a->c_column;
#pragma unroll
  for (int j = 0; j < 2 * COLUMN_BLOCKS; j++)
#pragma unroll
    for (int i = 0; i < 2 * ROW_BLOCKS; i++) {
      int down = i * BLOCK, right = j / 2 * BLOCK + j % 2;
      int has = whole || entry_has(a, row + down, column + right);
      double *entry = c + down * a->c_row + right * a->c_column;
      double *sum = &s->at[i / 2][j / 2][i % 2][j % 2];
      if (back && has) *entry = *sum;
      if (!back) *sum = has ? *entry : 0;
    }
}

static __device__ inline void sums_load(const struct product_args *a, const struct tile *t,
                                        struct sums *s)
{
  if (tile_is_whole(a, t))
    sums_copy(a, t, s, 1, 0);
  else
    sums_copy(a, t, s, 0, 0);
}

static __device__ inline void sums_store(const struct product_args *a, const struct tile *t,
                                         struct sums *s)
{
  if (tile_is_whole(a, t))
    sums_copy(a, t, s, 1, 1);
  else
    sums_copy(a, t, s, 0, 1);
}

static __device__ inline double side_at(const double *stage, int deep, int pitch, int row, int k)
{
  return stage[deep ? row * pitch + k : k * pitch + row];
}

/* x, or -x if the sign bit of `sign` is set. */
static __device__ inline double signed_as(int sign, double x)
{
  return __hiloint2double(__double2hiint(x) ^ sign, __double2loint(x));
}

static __device__ inline void stage_multiply(const struct stage *from, int is_negative,
                                             struct sums *s)
{
  int row = threadIdx.y / ACROSS * (ROWS / DOWN), column = threadIdx.y % ACROSS * 32;
  int lane = threadIdx.x;
  int sign = is_negative ? 1 << 31 : 0;
#if MMA
#pragma unroll
  for (int step = 0; step < PRODUCT_DEPTH; step += STEP) {
    int k = step + lane % 4;
    double left[ROW_BLOCKS][2], right[COLUMN_BLOCKS];
#pragma unroll
    for (int i = 0; i < 2 * ROW_BLOCKS; i++)
      left[i / 2][i % 2] = side_at(from->a, DEEP_A, PITCH_A, row + i * BLOCK + lane / 4, k);
#pragma unroll
    for (int j = 0; j < COLUMN_BLOCKS; j++)
      right[j] =
          signed_as(sign, side_at(from->b, DEEP_B, PITCH_B, column + j * BLOCK + lane / 4, k));
#pragma unroll
    for (int i = 0; i < ROW_BLOCKS; i++)
#pragma unroll
      for (int j = 0; j < COLUMN_BLOCKS; j++)
        pair_add(s->at[i][j][0], s->at[i][j][1], left[i], right[j]);
  }
#else
#pragma unroll 2
  for (int k = 0; k < PRODUCT_DEPTH; k++) {
    double left[2 * ROW_BLOCKS], right[2 * COLUMN_BLOCKS];
#pragma unroll
    for (int i = 0; i < 2 * ROW_BLOCKS; i++)
      left[i] = side_at(from->a, DEEP_A, PITCH_A, row + i * BLOCK + lane / 4, k);
#pragma unroll
    for (int j = 0; j < 2 * COLUMN_BLOCKS; j++)
      right[j] = signed_as(sign, side_at(from->b, DEEP_B, PITCH_B,
                                         column + j / 2 * BLOCK + lane % 4 * 2 + j % 2, k));
#pragma unroll
    for (int i = 0; i < 2 * ROW_BLOCKS; i++)
#pragma unroll
      for (int j = 0; j < 2 * COLUMN_BLOCKS; j++) {
        double *sum = &s->at[i / 2][j / 2][i % 2][j % 2];
        *sum = fma(left[i], right[j], *sum);
      }
  }
#endif
}

/* The first depth of a tile, after the zeros of a triangular operand. */
static __device__ inline int depth_first(const struct product_args *a, const struct tile *t)
{
  int k = a->depth_begin;
  if (a->a.is_triangular && t->row / 2 * 2 > k) k = t->row / 2 * 2;
  if (a->b.is_triangular && t->column / 2 * 2 > k) k = t->column / 2 * 2;
  return k;
}

static __device__ inline void tile_multiply(const struct product_args *a, const struct tile *t,
                                            struct stage *stages)
{
  int k = depth_first(a, t), slot = 0, ahead = STAGES - 1;
  struct copier of_a =
      copier_of(&a->a, DEEP_A, ROWS, t->row, a->row_end, a->depth_end, a->is_negative ? 0.0 : -0.0);
  struct copier of_b =
      copier_of(&a->b, DEEP_B, COLUMNS, t->column, a->column_end, a->depth_end, 0.0);
  struct sums sums;
#pragma unroll
  for (int i = 0; i < STAGES - 1; i++) {
    stage_order(&of_a, DEEP_A, ROWS, k + i * PRODUCT_DEPTH, stages[i].a);
    stage_order(&of_b, DEEP_B, COLUMNS, k + i * PRODUCT_DEPTH, stages[i].b);
    async_commit();
  }
  sums_load(a, t, &sums);
#pragma unroll 1
  for (; k < a->depth_end; k += PRODUCT_DEPTH) {
    int next = k + (STAGES - 1) * PRODUCT_DEPTH;
    ASYNC_WAIT(STAGES - 2);
    __syncthreads();
    if (next < a->depth_end) {
      stage_order(&of_a, DEEP_A, ROWS, next, stages[ahead].a);
      stage_order(&of_b, DEEP_B, COLUMNS, next, stages[ahead].b);
    }
    async_commit();
    stage_multiply(&stages[slot], a->is_negative, &sums);
    slot = slot + 1 < STAGES ? slot + 1 : 0;
    ahead = ahead + 1 < STAGES ? ahead + 1 : 0;
  }
  ASYNC_WAIT(0);
  sums_store(a, t, &sums);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    dense_product(const __grid_constant__ struct product_args a)
{
  extern __shared__ __align__(16) char shared[];
  struct tile t = tile_of(&a);
  if (tile_has(&a, &t)) tile_multiply(&a, &t, (struct stage *)shared);
}
