/* SPDX-License-Identifier: BSD-3-Clause
 * The chains of a tile, one stage on its way while another is added: of gradients, and of products
 * where a multiprocessor has several blocks.
 *
 * Floor: kernels.  Includes triad_tile.h, and so needs its constants. */
#include "triad_types.h"

#define DEPTHS TRIAD_GRADIENT_DEPTHS
#include "triad_tile.h"

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
  struct operand a = rows_of(t, corner), b = columns_of(t, corner);
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
