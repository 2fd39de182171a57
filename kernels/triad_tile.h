/* SPDX-License-Identifier: BSD-3-Clause
 * A tile of a product of f32 matrices: chains of fma over ascending depths, stage by stage.
 *
 * Floor: kernels.  Included by kernels that are compiled for a struct triad_form:
 *
 * -D TILE_ROWS, TILE_COLUMNS, ROW_QUADS, COLUMN_QUADS
 * -D BESIDE           blocks of a multiprocessor
 * -D DEEP_A, DEEP_B   depths of the operand are beside each other in memory; else its lines are
 * -D WHOLE            the matrices have whole tiles and stages, and quads are aligned
 *
 * What has its lines beside each other in memory is copied as it lies.
 *
 * A stage has its depths one after another, all lines of one beside each other.  Beyond the last
 * depth a product is (-0) (+0), which leaves every sum as it is; rows and columns that are not
 * there give sums that are not stored. */
#include "async_copy.h"
#include "triad_types.h"

enum {
  DOWN = TILE_ROWS / (4 * ROW_QUADS), /* threads */
  ACROSS = TILE_COLUMNS / (4 * COLUMN_QUADS),
  THREADS = DOWN * ACROSS,
  WARPS_ACROSS = ACROSS / TRIAD_LANES_ACROSS,
  ROWS_OWN = 4 * ROW_QUADS,
  COLUMNS_OWN = 4 * COLUMN_QUADS,
  ROWS_PITCH = TILE_ROWS + 4, /* neighbours in depth are in other banks */
  COLUMNS_PITCH = TILE_COLUMNS + 4,
  ROWS_QUADS = TILE_ROWS * TRIAD_STAGE / 4, /* of a stage */
  COLUMNS_QUADS = TILE_COLUMNS * TRIAD_STAGE / 4,
  ROWS_LOADS = (ROWS_QUADS + THREADS - 1) / THREADS, /* a thread's own, at most */
  COLUMNS_LOADS = (COLUMNS_QUADS + THREADS - 1) / THREADS,
  /* Is an operand copied as it lies? */
  DIRECT_A = WHOLE && !DEEP_A,
  DIRECT_B = WHOLE && !DEEP_B
};

struct stage {
  float a[TRIAD_STAGE][ROWS_PITCH], b[TRIAD_STAGE][COLUMNS_PITCH];
};

/* The first row and column of a tile. */
struct corner {
  int row, column;
};

/* Where a thread is: its quads begin with row 4 down and column 4 across. */
struct place {
  int down, across;
};

static __device__ inline struct place place_own(void)
{
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  struct place at = {warp / WARPS_ACROSS * TRIAD_LANES_DOWN + lane / TRIAD_LANES_ACROSS,
                     warp % WARPS_ACROSS * TRIAD_LANES_ACROSS + lane % TRIAD_LANES_ACROSS};
  return at;
}

/* The tile's row, or column, of number i of a thread's own: those of the lanes of a warp are beside
 * each other. */
static __device__ inline int own_at(int thread, int lanes, int quads, int i)
{
  return thread / lanes * 4 * lanes * quads + i / 4 * 4 * lanes + thread % lanes * 4 + i % 4;
}

static __device__ inline int row_at(struct place at, int i)
{
  return own_at(at.down, TRIAD_LANES_DOWN, ROW_QUADS, i);
}

static __device__ inline int column_at(struct place at, int j)
{
  return own_at(at.across, TRIAD_LANES_ACROSS, COLUMN_QUADS, j);
}

/* An operand: its lines, from the tile's first one on, which are rows or columns of the result.
 * `deep` is a constant: depths are beside each other in memory, or lines are. */
struct operand {
  const float *at;  /* the first line at depth 0 */
  long long stride; /* between lines where it is deep, else between depths */
  int left;         /* lines from the first on that there are */
  int deep, lines;  /* of the tile */
  float beyond;
};

/* Has this thread so many quads of a stage? */
static __device__ inline int quad_is(const struct operand *o, int i)
{
  int quads = o->lines * TRIAD_STAGE / 4;
  return (i + 1) * THREADS <= quads || (int)threadIdx.x + i * THREADS < quads;
}

/* A quad of a stage: its first line and depth.  Quads are along what is beside each other. */
static __device__ inline int quad_line(const struct operand *o, int i)
{
  int quad = threadIdx.x + i * THREADS;
  return o->deep ? quad / (TRIAD_STAGE / 4) : quad % (o->lines / 4) * 4;
}

static __device__ inline int quad_depth(const struct operand *o, int i)
{
  int quad = threadIdx.x + i * THREADS;
  return o->deep ? quad % (TRIAD_STAGE / 4) * 4 : quad / (o->lines / 4);
}

static __device__ inline const float *item_at(const struct operand *o, int line, int depth)
{
  return o->at + (o->deep ? line * o->stride + depth : depth * o->stride + line);
}

/* A quad of which some may be beyond the matrix. */
static __device__ inline float4 quad_gather(const struct operand *o, int line, int depth, int end)
{
  float four[4];
#pragma unroll
  for (int v = 0; v < 4; v++) {
    int its_line = line + (o->deep ? 0 : v), its_depth = depth + (o->deep ? v : 0);
    four[v] = its_line < o->left && its_depth < end ? *item_at(o, its_line, its_depth) : o->beyond;
  }
  float4 all = {four[0], four[1], four[2], four[3]};
  return all;
}

static_assert(ROWS_QUADS % THREADS == 0 || ROWS_LOADS <= 2, "quads_hop");
static_assert(COLUMNS_QUADS % THREADS == 0 || COLUMNS_LOADS <= 2, "quads_hop");

/* From one of a thread's quads to the next. */
static __device__ inline long long quads_hop(const struct operand *o)
{
  return item_at(o, quad_line(o, 1), quad_depth(o, 1)) -
         item_at(o, quad_line(o, 0), quad_depth(o, 0));
}

/* A thread's quads of the stage that begins at depth `begin`; from: where the first of them is. */
static __device__ inline void quads_load(const struct operand *o, const float *from, int loads,
                                         int begin, int end, float4 *four)
{
  long long hop = quads_hop(o);
#pragma unroll
  for (int i = 0; i < loads; i++)
    if (quad_is(o, i))
      four[i] = WHOLE ? *(const float4 *)(from + i * hop)
                      : quad_gather(o, quad_line(o, i), begin + quad_depth(o, i), end);
}

static __device__ inline void quads_store(const struct operand *o, const float4 *four, int loads,
                                          float *stage, int pitch)
{
#pragma unroll
  for (int i = 0; i < loads; i++) {
    if (!quad_is(o, i)) continue;
    float *to = stage + quad_depth(o, i) * pitch + quad_line(o, i);
    if (!o->deep) {
      *(float4 *)to = four[i];
      continue;
    }
    to[0] = four[i].x;
    to[pitch] = four[i].y;
    to[2 * pitch] = four[i].z;
    to[3 * pitch] = four[i].w;
  }
}

/* The same for what is copied as it lies: to its stage, by cp.async. */
static __device__ inline void quads_order(const struct operand *o, const float *from, int loads,
                                          float *stage, int pitch)
{
  long long hop = quads_hop(o);
#pragma unroll
  for (int i = 0; i < loads; i++)
    if (quad_is(o, i))
      async_copy16(stage + quad_depth(o, i) * pitch + quad_line(o, i), from + i * hop);
}

static __device__ inline void quad_take(const float *from, float *own)
{
  float4 four = *(const float4 *)from;
  own[0] = four.x;
  own[1] = four.y;
  own[2] = four.z;
  own[3] = four.w;
}

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
  for (int k = 0; k < TRIAD_STAGE; k++) {
    if (k + 1 < TRIAD_STAGE) depth_take(s, at, k + 1, a[(k + 1) % 2], b[(k + 1) % 2]);
#pragma unroll
    for (int i = 0; i < ROWS_OWN; i++)
#pragma unroll
      for (int v = 0; v < COLUMNS_OWN; v++) {
        int j = i % 2 ? COLUMNS_OWN - 1 - v : v; /* to and fro: operands stay in the pipe */
        acc[i][j] = fmaf(a[k % 2][i], b[k % 2][j], acc[i][j]);
      }
  }
}

/* What a thread brings of the next stage. */
struct quads {
  float4 a[ROWS_LOADS], b[COLUMNS_LOADS];
};

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
  for (int k = begin + TRIAD_STAGE, now = 0; k < end + TRIAD_STAGE; k += TRIAD_STAGE, now ^= 1) {
    from_a += DEEP_A ? TRIAD_STAGE : TRIAD_STAGE * a.stride;
    from_b += DEEP_B ? TRIAD_STAGE : TRIAD_STAGE * b.stride;
    if (k < end) stage_order(&a, &b, from_a, from_b, k, end, stages + (now ^ 1), &own);
    stage_add(stages + now, at, acc);
    stage_arrive(&a, &b, &own, stages + (now ^ 1), k < end);
  }
}

/* 0x7FC00000 for every NaN. */
static __device__ inline float settled(float x)
{
  return x == x ? x : __int_as_float(0x7fc00000);
}
