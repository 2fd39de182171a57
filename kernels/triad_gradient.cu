/* SPDX-License-Identifier: BSD-3-Clause
 * triad_gradient: gradients of matrices (N.41), added to what is there.
 *
 * grid    blocks, at most BESIDE a multiprocessor: block b has tiles b, b + blocks, ..
 * block   triad_threads()
 * shared  triad_gradient_shared(): two stages
 * sums    chunks of TRIAD_CHUNK_ROWS depths, a chain of fma each, are added in f64, ascending; what
 *         a block's tile has so far is in memory, which the cache holds */
#include "triad_stages.h"

enum {
  PAIRS = ROWS_OWN * COLUMNS_OWN / 2, /* of sums, a thread's own */
  TOGETHER = 4                        /* loads on their way */
};

/* What a thread's tile has so far: pairs, THREADS apart. */
static __device__ inline double2 *sums_own(const struct triad_args *t)
{
  return (double2 *)t->sums + (long long)blockIdx.x * PAIRS * THREADS + threadIdx.x;
}

/* In its place among stores: the compiler would widen all sums at first, and spill them. */
static __device__ inline double wide(float x)
{
  double y;
  asm volatile("cvt.f64.f32 %0, %1;" : "=d"(y) : "f"(x) : "memory");
  return y;
}

/* The chunk's sums are added. */
static __device__ inline void chunk_add(const struct triad_args *t, int is_first,
                                        const float (*acc)[COLUMNS_OWN])
{
  double2 *sums = sums_own(t);
#pragma unroll
  for (int pair = 0; pair < PAIRS; pair += TOGETHER) {
    double2 now[TOGETHER];
#pragma unroll
    for (int i = 0; i < TOGETHER; i++) {
      double2 none = {0, 0};
      now[i] = is_first ? none : __ldcg(sums + (pair + i) * THREADS);
    }
#pragma unroll
    for (int i = 0; i < TOGETHER; i++) {
      int row = 2 * (pair + i) / COLUMNS_OWN, column = 2 * (pair + i) % COLUMNS_OWN;
      now[i].x += wide(acc[row][column]);
      now[i].y += wide(acc[row][column + 1]);
      __stcg(sums + (pair + i) * THREADS, now[i]);
    }
  }
}

static __device__ inline void output_add(const struct triad_args *t, int row, int column,
                                         double sum)
{
  if (row >= t->rows || column >= t->columns) return;
  float *to = t->c + row * t->c_row + column;
  *to = settled(*to + (float)sum);
}

static __device__ inline void tile_end(const struct triad_args *t, struct place at,
                                       struct corner corner)
{
  const double2 *sums = sums_own(t);
#pragma unroll 4
  for (int pair = 0; pair < PAIRS; pair++) {
    double2 sum = __ldcg(sums + pair * THREADS);
    int row = corner.row + row_at(at, 2 * pair / COLUMNS_OWN);
    int column = corner.column + column_at(at, 2 * pair % COLUMNS_OWN);
    output_add(t, row, column, sum.x);
    output_add(t, row, column + 1, sum.y);
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, BESIDE)
    triad_gradient(const __grid_constant__ struct triad_args t)
{
  extern __shared__ __align__(16) char memory[];
  struct place at = place_own();
  for (int tile = blockIdx.x; tile < t.tiles; tile += gridDim.x) {
    struct corner corner = {tile / t.across * TILE_ROWS, tile % t.across * TILE_COLUMNS};
#pragma unroll 1
    for (int first = 0; first < t.depth; first += TRIAD_CHUNK_ROWS) {
      float acc[ROWS_OWN][COLUMNS_OWN] = {0};
      int end = t.depth - first > TRIAD_CHUNK_ROWS ? first + TRIAD_CHUNK_ROWS : t.depth;
      tile_add(&t, (struct stage *)memory, at, corner, first, end, acc);
      chunk_add(&t, first == 0, acc);
    }
    tile_end(&t, at, corner);
  }
}
