/* SPDX-License-Identifier: BSD-3-Clause
 * A tile of a product of f32 matrices: how operands come to shared memory, stage by stage, and what
 * of a tile is a thread's.
 *
 * Floor: kernels.  Included by kernels that are compiled for a struct triad_form:
 *
 * DEPTHS              of a stage: the kernel's own
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
  ROWS_QUADS = TILE_ROWS * DEPTHS / 4, /* of a stage */
  COLUMNS_QUADS = TILE_COLUMNS * DEPTHS / 4,
  ROWS_LOADS = (ROWS_QUADS + THREADS - 1) / THREADS, /* a thread's own, at most */
  COLUMNS_LOADS = (COLUMNS_QUADS + THREADS - 1) / THREADS,
  SPAN_QUADS = 8, /* of quads_span() */
  /* Is an operand copied as it lies? */
  DIRECT_A = WHOLE && !DEEP_A,
  DIRECT_B = WHOLE && !DEEP_B
};

struct stage {
  float a[DEPTHS][ROWS_PITCH], b[DEPTHS][COLUMNS_PITCH];
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

static __device__ inline const float *item_at(const struct operand *o, int line, int depth)
{
  return o->at + (o->deep ? line * o->stride + depth : depth * o->stride + line);
}

/* The operands of the tile with that corner. */
static __device__ inline struct operand rows_of(const struct triad_args *t, struct corner corner)
{
  struct operand o = {t->a, DEEP_A ? t->a_row : t->a_depth, t->rows - corner.row, DEEP_A, TILE_ROWS,
                      -0.0f};
  o.at = item_at(&o, corner.row, 0);
  return o;
}

static __device__ inline struct operand columns_of(const struct triad_args *t, struct corner corner)
{
  struct operand o = {
      t->b, DEEP_B ? t->b_column : t->b_depth, t->columns - corner.column, DEEP_B, TILE_COLUMNS,
      0.0f};
  o.at = item_at(&o, corner.column, 0);
  return o;
}

/* Has this thread so many quads of a stage? */
static __device__ inline int quad_is(const struct operand *o, int i)
{
  int quads = o->lines * DEPTHS / 4;
  return (i + 1) * THREADS <= quads || (int)threadIdx.x + i * THREADS < quads;
}

/* Quads of a depth that are taken before the next depth: all lines', where these share out the
 * threads, else so few that they do. */
static __device__ inline int quads_span(const struct operand *o)
{
  return THREADS % (o->lines / 4) == 0 ? o->lines / 4 : SPAN_QUADS;
}

/* A quad of a stage: its first line and depth.  Quads are along what is beside each other. */
static __device__ inline int quad_line(const struct operand *o, int i)
{
  int quad = threadIdx.x + i * THREADS, span = quads_span(o);
  return o->deep ? quad / (DEPTHS / 4) : (quad / (span * DEPTHS) * span + quad % span) * 4;
}

static __device__ inline int quad_depth(const struct operand *o, int i)
{
  int quad = threadIdx.x + i * THREADS, span = quads_span(o);
  return o->deep ? quad % (DEPTHS / 4) * 4 : quad / span % DEPTHS;
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

static_assert(ROWS_LOADS <= 2 || THREADS % (TILE_ROWS / 4) == 0 ||
                  THREADS % (SPAN_QUADS * DEPTHS) == 0,
              "quads_hop");
static_assert(COLUMNS_LOADS <= 2 || THREADS % (TILE_COLUMNS / 4) == 0 ||
                  THREADS % (SPAN_QUADS * DEPTHS) == 0,
              "quads_hop");

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

/* What a thread brings of the next stage. */
struct quads {
  float4 a[ROWS_LOADS], b[COLUMNS_LOADS];
};

/* 0x7FC00000 for every NaN. */
static __device__ inline float settled(float x)
{
  return x == x ? x : __int_as_float(0x7fc00000);
}
