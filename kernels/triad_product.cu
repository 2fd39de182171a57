/* SPDX-License-Identifier: BSD-3-Clause
 * triad_product: products, forward and backward (N.40), and chunks of a gradient (N.41).
 *
 * grid    (ceil(columns / TILE_COLUMNS), ceil(rows / TILE_ROWS), chunks of depths); with TEAMS the
 *         blocks of all teams
 * block   triad_threads()
 * shared  triad_shared(): SLOTS stages
 * sums    a chain of fma for each output, ascending depths, from start */
#include "triad_teams.h"

/* Store, for each of the warp's rows, the largest sum in the warp's columns, or 0 if none is
 * positive. */
static __device__ inline void maxima_store(const struct triad_args *t, struct place at, int row,
                                           int column, const float (*acc)[COLUMNS_OWN])
{
  int group = column / (TRIAD_LANES_ACROSS * COLUMNS_OWN) + at.across / TRIAD_LANES_ACROSS;
#pragma unroll
  for (int i = 0; i < ROWS_OWN; i++) {
    int r = row + row_at(at, i);
    float most = 0;
#pragma unroll
    for (int j = 0; j < COLUMNS_OWN; j++) {
      int c = column + column_at(at, j);
      most = (WHOLE || c < t->columns) && acc[i][j] > most ? acc[i][j] : most;
    }
#pragma unroll
    for (int step = 1; step < TRIAD_LANES_ACROSS; step *= 2)
      most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, step));
    if (at.across % TRIAD_LANES_ACROSS == 0 && r < t->rows && group < t->groups)
      t->maxima[(long long)r * t->groups + group] = most;
  }
}

static __device__ inline float value_of(const struct triad_args *t, float sum)
{
  return !t->maxima ? settled(sum) : sum > 0 ? sum : 0;
}

/* Write four columns of a row; c: the matrix of this block's chunk. */
static __device__ inline void quad_write(const struct triad_args *t, float *c, const float *sums,
                                         int row, int column, int is_aligned)
{
  float *to = c + row * t->c_row + column;
  float4 four = {value_of(t, sums[0]), value_of(t, sums[1]), value_of(t, sums[2]),
                 value_of(t, sums[3])};
  if (!WHOLE && row >= t->rows) return;
  if (WHOLE || (is_aligned && column + 4 <= t->columns)) {
    *(float4 *)to = four;
    return;
  }
  if (column < t->columns) to[0] = four.x;
  if (column + 1 < t->columns) to[1] = four.y;
  if (column + 2 < t->columns) to[2] = four.z;
  if (column + 3 < t->columns) to[3] = four.w;
}

/* Initialise the chains. */
static __device__ inline void chains_begin(const struct triad_args *t, struct place at, int column,
                                           float (*acc)[COLUMNS_OWN])
{
#pragma unroll
  for (int j = 0; j < COLUMNS_OWN; j++) {
    int own = column + column_at(at, j);
    float start = t->start && own < t->columns ? t->start[own] : 0;
#pragma unroll
    for (int i = 0; i < ROWS_OWN; i++) acc[i][j] = start;
  }
}

static __device__ inline void tile_write(const struct triad_args *t, struct place at, int row,
                                         int column, const float (*acc)[COLUMNS_OWN])
{
  float *c = t->c + blockIdx.z * t->part;
  int is_aligned = t->c_row % 4 == 0 && (unsigned long long)c % 16 == 0;
  if (t->maxima) maxima_store(t, at, row, column, acc);
#pragma unroll
  for (int i = 0; i < ROWS_OWN; i++)
#pragma unroll
    for (int q = 0; q < COLUMN_QUADS; q++)
      quad_write(t, c, acc[i] + 4 * q, row + row_at(at, i), column + column_at(at, 4 * q),
                 is_aligned);
}

/* Add depths begin .. end - 1 of a tile. */
static __device__ inline void depths_add(const struct triad_args *t, struct place at,
                                         const struct corner *corner, int begin, int end,
                                         struct stage *stages)
{
  float acc[ROWS_OWN][COLUMNS_OWN];
  if (TEAMS && begin)
    chains_take(t, acc);
  else
    chains_begin(t, at, corner->column, acc);
  struct pipe pipe;
  pipe_begin(&pipe, t, stages, at, *corner, begin, end);
#pragma unroll 1
  for (int k = begin; k < end; k += DEPTHS) stage_add(&pipe, acc);
  pipe_end();
  if (TEAMS && end < t->depth)
    chains_pass(t, acc);
  else
    tile_write(t, at, corner->row, corner->column, acc);
}

extern "C" __global__ void __launch_bounds__(THREADS, BESIDE)
    triad_product(const __grid_constant__ struct triad_args t)
{
  extern __shared__ __align__(16) char memory[];
  __shared__ struct piece piece; /* in shared memory, to save registers while sums are added */
  struct place at = position_own();
  int begin = blockIdx.z * t.chunk;
  int end = t.depth - begin < t.chunk ? t.depth : begin + t.chunk;
#pragma unroll 1
  for (int i = 0; TEAMS; i++) {
    if (threadIdx.x == 0) piece = piece_shared(&t, i);
    __syncthreads();
    if (piece.begin == piece.end) return;
    depths_add(&t, at, &piece.corner, piece.begin, piece.end, (struct stage *)memory);
    __syncthreads(); /* the stages of the next piece overwrite these */
  }
  if (threadIdx.x == 0)
    piece.corner = corner_of(blockIdx.y * gridDim.x + blockIdx.x, gridDim.y, gridDim.x);
  __syncthreads();
  depths_add(&t, at, &piece.corner, begin, end, (struct stage *)memory);
}
