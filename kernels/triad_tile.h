/* SPDX-License-Identifier: BSD-3-Clause
 * A tile of a product of f32 matrices: chains of fma over ascending depths, stage by stage.
 *
 * Floor: kernels.  Included by kernels that are compiled for a struct triad_form:
 *
 * -D TILE_ROWS, TILE_COLUMNS, ROW_QUADS, COLUMN_QUADS
 *
 * A stage has its depths one after another, all lines of one beside each other.  Beyond the last
 * depth a product is (-0) (+0), which leaves every sum as it is; rows and columns that are not
 * there give sums that are not stored. */
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
  ROWS_LOADS = TILE_ROWS * TRIAD_STAGE / (4 * THREADS), /* quads a thread and stage */
  COLUMNS_LOADS = TILE_COLUMNS * TRIAD_STAGE / (4 * THREADS)
};

struct stage {
  float a[TRIAD_STAGE][ROWS_PITCH], b[TRIAD_STAGE][COLUMNS_PITCH];
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

/* An operand: its lines, from the tile's first one on, which are rows or columns of the result. */
struct operand {
  const float *at; /* the first line at depth 0 */
  long long line_stride, depth_stride;
  int left;  /* lines from the first on that there are */
  int whole; /* all lines of the tile are there, and quads are aligned */
  float beyond;
};

static __device__ inline struct operand operand_of(const float *at, long long line_stride,
                                                   long long depth_stride, int first, int lines,
                                                   int tile, float beyond)
{
  long long across = depth_stride == 1 ? line_stride : depth_stride;
  struct operand o = {
      at + first * line_stride, line_stride, depth_stride, lines - first, 0, beyond};
  o.whole = o.left >= tile && across % 4 == 0 && (unsigned long long)at % 16 == 0;
  return o;
}

/* Where quad i of a thread is: its first line and depth in a stage of `lines` lines.  Quads are
 * along what is beside each other in memory. */
static __device__ inline int quad_line(const struct operand *o, int i, int lines)
{
  int quad = threadIdx.x + i * THREADS;
  return o->depth_stride == 1 ? quad / (TRIAD_STAGE / 4) : quad % (lines / 4) * 4;
}

static __device__ inline int quad_depth(const struct operand *o, int i, int lines)
{
  int quad = threadIdx.x + i * THREADS;
  return o->depth_stride == 1 ? quad % (TRIAD_STAGE / 4) * 4 : quad / (lines / 4);
}

static __device__ inline float item_read(const struct operand *o, int line, int depth, int end)
{
  return line < o->left && depth < end ? o->at[line * o->line_stride + depth * o->depth_stride]
                                       : o->beyond;
}

/* A quad that may be beyond the matrix. */
static __device__ inline float4 quad_gather(const struct operand *o, int line, int depth, int end)
{
  int down = o->depth_stride == 1 ? 0 : 1, deep = 1 - down;
  float4 four = {item_read(o, line, depth, end), item_read(o, line + down, depth + deep, end),
                 item_read(o, line + 2 * down, depth + 2 * deep, end),
                 item_read(o, line + 3 * down, depth + 3 * deep, end)};
  return four;
}

/* A thread's `loads` quads of the stage that begins at depth `begin`; from: where the first of them
 * is, hop: the way to the next. */
static __device__ inline void quads_load(const struct operand *o, const float *from, long long hop,
                                         int loads, int lines, int begin, int end, float4 *four)
{
  if (o->whole && begin + TRIAD_STAGE <= end) {
#pragma unroll
    for (int i = 0; i < loads; i++) four[i] = *(const float4 *)(from + i * hop);
    return;
  }
#pragma unroll
  for (int i = 0; i < loads; i++)
    four[i] = quad_gather(o, quad_line(o, i, lines), begin + quad_depth(o, i, lines), end);
}

/* Where a thread's quad i of the stage at depth `begin` is. */
static __device__ inline const float *quad_at(const struct operand *o, int i, int lines, int begin)
{
  return o->at + quad_line(o, i, lines) * o->line_stride +
         (begin + quad_depth(o, i, lines)) * o->depth_stride;
}

static __device__ inline void quad_store(const struct operand *o, int i, int lines, float4 four,
                                         float *stage, int pitch)
{
  float *to = stage + quad_depth(o, i, lines) * pitch + quad_line(o, i, lines);
  if (o->depth_stride != 1) {
    *(float4 *)to = four;
    return;
  }
  to[0] = four.x;
  to[pitch] = four.y;
  to[2 * pitch] = four.z;
  to[3 * pitch] = four.w;
}

static __device__ inline void quad_take(const float *from, float *own)
{
  float4 four = *(const float4 *)from;
  own[0] = four.x;
  own[1] = four.y;
  own[2] = four.z;
  own[3] = four.w;
}

static __device__ inline void stage_add(const struct stage *s, struct place at,
                                        float (*acc)[COLUMNS_OWN])
{
#pragma unroll
  for (int k = 0; k < TRIAD_STAGE; k++) {
    float a[ROWS_OWN], b[COLUMNS_OWN];
#pragma unroll
    for (int i = 0; i < ROWS_OWN; i += 4) quad_take(s->a[k] + row_at(at, i), a + i);
#pragma unroll
    for (int j = 0; j < COLUMNS_OWN; j += 4) quad_take(s->b[k] + column_at(at, j), b + j);
#pragma unroll
    for (int i = 0; i < ROWS_OWN; i++)
#pragma unroll
      for (int j = 0; j < COLUMNS_OWN; j++) acc[i][j] = fmaf(a[i], b[j], acc[i][j]);
  }
}

static __device__ inline void quads_store(const struct operand *o, const float4 *four, int loads,
                                          int lines, float *stage, int pitch)
{
#pragma unroll
  for (int i = 0; i < loads; i++) quad_store(o, i, lines, four[i], stage, pitch);
}

/* acc <- the chains go on over depths begin .. end - 1; stages[2]. */
static __device__ inline void tile_add(const struct triad_args *t, struct stage *stages,
                                       struct place at, int row, int column, int begin, int end,
                                       float (*acc)[COLUMNS_OWN])
{
  struct operand a = operand_of(t->a, t->a_row, t->a_depth, row, t->rows, TILE_ROWS, -0.0f);
  struct operand b =
      operand_of(t->b, t->b_column, t->b_depth, column, t->columns, TILE_COLUMNS, 0.0f);
  const float *from_a = quad_at(&a, 0, TILE_ROWS, begin);
  const float *from_b = quad_at(&b, 0, TILE_COLUMNS, begin);
  long long hop_a = quad_at(&a, 1, TILE_ROWS, begin) - from_a;
  long long hop_b = quad_at(&b, 1, TILE_COLUMNS, begin) - from_b;
  float4 next_a[ROWS_LOADS], next_b[COLUMNS_LOADS];
  struct stage *now = stages;
  quads_load(&a, from_a, hop_a, ROWS_LOADS, TILE_ROWS, begin, end, next_a);
  quads_load(&b, from_b, hop_b, COLUMNS_LOADS, TILE_COLUMNS, begin, end, next_b);
  quads_store(&a, next_a, ROWS_LOADS, TILE_ROWS, now->a[0], ROWS_PITCH);
  quads_store(&b, next_b, COLUMNS_LOADS, TILE_COLUMNS, now->b[0], COLUMNS_PITCH);
  __syncthreads();
#pragma unroll 1
  for (int k = begin + TRIAD_STAGE; k < end + TRIAD_STAGE; k += TRIAD_STAGE) {
    struct stage *other = now == stages ? stages + 1 : stages;
    from_a += TRIAD_STAGE * a.depth_stride;
    from_b += TRIAD_STAGE * b.depth_stride;
    if (k < end) {
      quads_load(&a, from_a, hop_a, ROWS_LOADS, TILE_ROWS, k, end, next_a);
      quads_load(&b, from_b, hop_b, COLUMNS_LOADS, TILE_COLUMNS, k, end, next_b);
    }
    stage_add(now, at, acc);
    if (k < end) {
      quads_store(&a, next_a, ROWS_LOADS, TILE_ROWS, other->a[0], ROWS_PITCH);
      quads_store(&b, next_b, COLUMNS_LOADS, TILE_COLUMNS, other->b[0], COLUMNS_PITCH);
    }
    __syncthreads();
    now = other;
  }
}

/* 0x7FC00000 for every NaN. */
static __device__ inline float settled(float x)
{
  return x == x ? x : __int_as_float(0x7fc00000);
}
