/* SPDX-License-Identifier: BSD-3-Clause
 * A tile of a product of f32 matrices: chains of fma over ascending depths, stage by stage.
 *
 * Floor: kernels.  Included by kernels that define QUADS, the groups of four rows and of four
 * columns that a thread has; a tile has 4 QUADS TRIAD_SIDE of either.
 *
 * Beyond the last depth a product is (-0) (+0), which leaves every sum as it is; rows and columns
 * that are not there give sums that are not stored. */
#include "triad_types.h"

enum {
  TILE = 4 * QUADS * TRIAD_SIDE,
  PITCH = TILE + 4, /* neighbours in depth are in other banks */
  THREADS = TRIAD_SIDE * TRIAD_SIDE,
  LOADS = TILE * TRIAD_STAGE / THREADS /* of an operand, a thread and stage */
};

struct stage {
  float a[TRIAD_STAGE][PITCH], b[TRIAD_STAGE][PITCH];
};

/* What a thread copies of an operand in a stage: `at` is element (line, depth), and a next one is
 * line_hop lines and depth_hop depths further. */
struct copier {
  const float *at;
  long long line_stride, depth_stride;
  int line, depth, line_hop, depth_hop, lines;
  float beyond;
};

/* Threads beside each other read what is beside each other in memory. */
static __device__ inline struct copier copier_of(const float *at, long long line_stride,
                                                 long long depth_stride, int first, int lines,
                                                 float beyond)
{
  int thread = threadIdx.y * TRIAD_SIDE + threadIdx.x;
  struct copier c = {at, line_stride, depth_stride, 0, 0, 0, 0, lines, beyond};
  if (depth_stride == 1) {
    c.depth = thread % TRIAD_STAGE;
    c.line = first + thread / TRIAD_STAGE;
    c.line_hop = THREADS / TRIAD_STAGE;
  } else {
    c.line = first + thread % TILE;
    c.depth = thread / TILE;
    c.depth_hop = THREADS / TILE;
  }
  return c;
}

/* values[LOADS] <- what the stage that begins at this depth has. */
static __device__ inline void stage_load(const struct copier *c, int begin, int end, float *values)
{
#pragma unroll
  for (int i = 0; i < LOADS; i++) {
    int line = c->line + i * c->line_hop, depth = begin + c->depth + i * c->depth_hop;
    values[i] = c->beyond;
    if (depth < end && line < c->lines)
      values[i] = c->at[line * c->line_stride + depth * c->depth_stride];
  }
}

static __device__ inline void stage_store(const struct copier *c, int first, const float *values,
                                          float (*to)[PITCH])
{
#pragma unroll
  for (int i = 0; i < LOADS; i++)
    to[c->depth + i * c->depth_hop][c->line - first + i * c->line_hop] = values[i];
}

/* Where a thread's number i of its rows or columns is in the tile. */
static __device__ inline int place_of(int thread, int i)
{
  return i / 4 * 4 * TRIAD_SIDE + 4 * thread + i % 4;
}

static __device__ inline void quads_read(const float *line, int thread, float *out)
{
#pragma unroll
  for (int q = 0; q < QUADS; q++) {
    float4 four = *(const float4 *)(line + place_of(thread, 4 * q));
    out[4 * q] = four.x;
    out[4 * q + 1] = four.y;
    out[4 * q + 2] = four.z;
    out[4 * q + 3] = four.w;
  }
}

static __device__ inline void stage_add(const struct stage *s, float (*acc)[4 * QUADS])
{
#pragma unroll
  for (int k = 0; k < TRIAD_STAGE; k++) {
    float a[4 * QUADS], b[4 * QUADS];
    quads_read(s->a[k], threadIdx.y, a);
    quads_read(s->b[k], threadIdx.x, b);
#pragma unroll
    for (int i = 0; i < 4 * QUADS; i++)
#pragma unroll
      for (int j = 0; j < 4 * QUADS; j++) acc[i][j] = fmaf(a[i], b[j], acc[i][j]);
  }
}

/* acc <- the chains go on over depths begin .. end - 1; stages[2]. */
static __device__ inline void tile_add(const struct triad_args *t, struct stage *stages, int row,
                                       int column, int begin, int end, float (*acc)[4 * QUADS])
{
  struct copier a = copier_of(t->a, t->a_row, t->a_depth, row, t->rows, -0.0f);
  struct copier b = copier_of(t->b, t->b_column, t->b_depth, column, t->columns, 0.0f);
  float next_a[LOADS], next_b[LOADS];
  int now = 0;
  stage_load(&a, begin, end, next_a);
  stage_load(&b, begin, end, next_b);
#pragma unroll 1
  for (int k = begin; k < end; k += TRIAD_STAGE, now ^= 1) {
    stage_store(&a, row, next_a, stages[now].a);
    stage_store(&b, column, next_b, stages[now].b);
    __syncthreads();
    if (k + TRIAD_STAGE < end) {
      stage_load(&a, k + TRIAD_STAGE, end, next_a);
      stage_load(&b, k + TRIAD_STAGE, end, next_b);
    }
    stage_add(&stages[now], acc);
  }
  __syncthreads();
}

/* 0x7FC00000 for every NaN. */
static __device__ inline float settled(float x)
{
  return x == x ? x : __int_as_float(0x7fc00000);
}
