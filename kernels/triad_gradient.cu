/* SPDX-License-Identifier: BSD-3-Clause
 * triad_gradient: gradients of matrices (N.41), added to what is there.
 *
 * grid    blocks, at most BESIDE a multiprocessor: block b has tiles b, b + blocks, ..
 * block   triad_threads()
 * shared  triad_gradient_shared(): two stages
 * sums    chunks of TRIAD_CHUNK_ROWS depths, a chain of fma each, are added in f64, ascending; what
 *         a block's tile has so far is in memory, which the cache holds */
#include "triad_types.h"

#define DEPTHS TRIAD_GRADIENT_DEPTHS
#include "triad_tile.h"

enum {
  PAIRS = ROWS_OWN * COLUMNS_OWN / 2, /* of sums, a thread's own */
  TOGETHER = 4                        /* loads on their way */
};

/* a, b <- a thread's part of the lines of depth k. */
static __device__ inline void depth_take(const struct stage *s, struct place at, int k, float *a,
                                         float *b)
{
#pragma unroll
  for (int i = 0; i < ROWS_OWN; i += 4) quad_take(s->a[k] + row_at(at, i), a + i);
#pragma unroll
  for (int j = 0; j < COLUMNS_OWN; j += 4) quad_take(s->b[k] + column_at(at, j), b + j);
}

/* While a depth is added the next one is on its way. */
static __device__ inline void stage_add(const struct stage *s, struct place at,
                                        float (*acc)[COLUMNS_OWN])
{
  float a[2][ROWS_OWN], b[2][COLUMNS_OWN];
  depth_take(s, at, 0, a[0], b[0]);
#pragma unroll
  for (int k = 0; k < DEPTHS; k++) {
    if (k + 1 < DEPTHS) depth_take(s, at, k + 1, a[(k + 1) % 2], b[(k + 1) % 2]);
#pragma unroll
    for (int i = 0; i < ROWS_OWN; i++)
#pragma unroll
      for (int v = 0; v < COLUMNS_OWN; v++) {
        int j = i % 2 ? COLUMNS_OWN - 1 - v : v; /* to and fro: operands stay in the pipe */
        acc[i][j] = fmaf(a[k % 2][i], b[k % 2][j], acc[i][j]);
      }
  }
}

/* A stage that begins at depth `begin` is on its way: to its place, or to a thread's own. */
static __device__ inline void stage_order(const struct operand *a, const struct operand *b,
                                          const float *from_a, const float *from_b, int begin,
                                          int end, struct stage *stage, struct quads *own)
{
  if (DIRECT_A)
    quads_order(a, from_a, ROWS_LOADS, stage->a[0], ROWS_PITCH);
  else
    quads_load(a, from_a, ROWS_LOADS, begin, end, own->a);
  if (DIRECT_B)
    quads_order(b, from_b, COLUMNS_LOADS, stage->b[0], COLUMNS_PITCH);
  else
    quads_load(b, from_b, COLUMNS_LOADS, begin, end, own->b);
}

/* It comes to its place; the stage in work is done with. */
static __device__ inline void stage_arrive(const struct operand *a, const struct operand *b,
                                           const struct quads *own, struct stage *stage, int is_one)
{
  if (is_one && !DIRECT_A) quads_store(a, own->a, ROWS_LOADS, stage->a[0], ROWS_PITCH);
  if (is_one && !DIRECT_B) quads_store(b, own->b, COLUMNS_LOADS, stage->b[0], COLUMNS_PITCH);
  if (DIRECT_A || DIRECT_B) {
    async_commit();
    ASYNC_WAIT(0);
  }
  __syncthreads();
}

/* acc <- the chains go on over depths begin .. end - 1; stages[2]. */
static __device__ inline void tile_add(const struct triad_args *t, struct stage *stages,
                                       struct place at, struct corner corner, int begin, int end,
                                       float (*acc)[COLUMNS_OWN])
{
  struct operand a = {t->a, DEEP_A ? t->a_row : t->a_depth, t->rows - corner.row, DEEP_A, TILE_ROWS,
                      -0.0f};
  struct operand b = {
      t->b, DEEP_B ? t->b_column : t->b_depth, t->columns - corner.column, DEEP_B, TILE_COLUMNS,
      0.0f};
  a.at = item_at(&a, corner.row, 0);
  b.at = item_at(&b, corner.column, 0);
  const float *from_a = item_at(&a, quad_line(&a, 0), begin + quad_depth(&a, 0));
  const float *from_b = item_at(&b, quad_line(&b, 0), begin + quad_depth(&b, 0));
  struct quads own;
  stage_order(&a, &b, from_a, from_b, begin, end, stages, &own);
  stage_arrive(&a, &b, &own, stages, 1);
#pragma unroll 1
  for (int k = begin + DEPTHS, now = 0; k < end + DEPTHS; k += DEPTHS, now ^= 1) {
    from_a += DEEP_A ? DEPTHS : DEPTHS * a.stride;
    from_b += DEEP_B ? DEPTHS : DEPTHS * b.stride;
    if (k < end) stage_order(&a, &b, from_a, from_b, k, end, stages + (now ^ 1), &own);
    stage_add(stages + now, at, acc);
    stage_arrive(&a, &b, &own, stages + (now ^ 1), k < end);
  }
}

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
