/* SPDX-License-Identifier: BSD-3-Clause
 * A tile of a product of f32 matrices: how operands are brought to shared memory, stage by stage,
 * and which part of a tile a thread has.
 *
 * Floor: kernels.  Included by kernels that are compiled for a struct triad_form:
 *
 * -D TILE_ROWS, TILE_COLUMNS, ROW_QUADS, COLUMN_QUADS
 * -D BESIDE           blocks on a multiprocessor
 * -D PARTS            parts in which a stage is copied
 * -D SLOTS            stages in shared memory
 * -D DEEP_A, DEEP_B   1: the operand is contiguous along its depth; 0: along its lines
 * -D WHOLE            1: the matrices have whole tiles and stages, and quads are aligned
 * -D TEAMS            1: tiles may be shared by teams of blocks (triad_teams.h)
 *
 * A line is a row of a, or a column of b; a quad is four adjacent numbers.  With WHOLE,
 * cp.async copies the operands, which needs no registers.  Otherwise a thread loads the numbers
 * that exist.
 *
 * A stage has its depths one after another, with all lines of a depth adjacent.  Past the last
 * depth a product is (-0) (+0), which does not change a sum.  Rows and columns that do not exist
 * give sums that are not stored. */
#include "async_copy.h"
#include "triad_types.h"

enum {
  DEPTHS = TRIAD_DEPTHS,
  DOWN = TILE_ROWS / (4 * ROW_QUADS), /* threads along the rows, and along the columns */
  ACROSS = TILE_COLUMNS / (4 * COLUMN_QUADS),
  THREADS = DOWN * ACROSS,
  WARPS_ACROSS = ACROSS / TRIAD_LANES_ACROSS,
  ROWS_OWN = 4 * ROW_QUADS,
  COLUMNS_OWN = 4 * COLUMN_QUADS,
  OWN = ROWS_OWN * COLUMNS_OWN, /* outputs of a thread */
  ROWS_PITCH = TILE_ROWS + 4,   /* so that neighbouring depths are in different banks */
  COLUMNS_PITCH = TILE_COLUMNS + 4,
  ROWS_QUADS = TILE_ROWS * DEPTHS / 4, /* quads of a stage */
  COLUMNS_QUADS = TILE_COLUMNS * DEPTHS / 4,
  ROWS_LOADS = (ROWS_QUADS + THREADS - 1) / THREADS, /* the most quads of a thread */
  COLUMNS_LOADS = (COLUMNS_QUADS + THREADS - 1) / THREADS,
  SPAN_QUADS = 8,    /* see quads_span() */
  TILES_BESIDE = 16, /* see corner_of() */
  ITEM = sizeof(float),
  SECTOR = 8 /* depths that copies_order() does together: 32 bytes */
};

struct stage {
  float a[DEPTHS][ROWS_PITCH], b[DEPTHS][COLUMNS_PITCH];
};

/* The first row and column of a tile. */
struct corner {
  int row, column;
};

/* The corner of a tile.  Tiles are numbered in bands of TILES_BESIDE columns of tiles, and in a
 * band row by row.  So blocks that run at the same time read the same operands from the cache. */
static __device__ inline struct corner corner_of(int tile, int down, int across)
{
  int first = tile / (TILES_BESIDE * down) * TILES_BESIDE;
  int beside = across - first < TILES_BESIDE ? across - first : TILES_BESIDE;
  tile -= first * down;
  struct corner corner = {tile / beside * TILE_ROWS, (first + tile % beside) * TILE_COLUMNS};
  return corner;
}

/* The place of a thread among the threads of a tile: DOWN along rows, ACROSS along columns. */
struct place {
  int down, across;
};

static __device__ inline struct place position_own(void)
{
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  struct place at = {warp / WARPS_ACROSS * TRIAD_LANES_DOWN + lane / TRIAD_LANES_ACROSS,
                     warp % WARPS_ACROSS * TRIAD_LANES_ACROSS + lane % TRIAD_LANES_ACROSS};
  return at;
}

/* The row (or column) of the tile that is the i-th of a thread's rows (or columns).  Quads of
 * neighbouring lanes are adjacent. */
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

/* An operand: its lines, from the first one of the tile on.  deep (a constant): 1: contiguous along
 * its depth; 0: along its lines. */
struct operand {
  const float *at;  /* the first line at depth 0 */
  long long stride; /* between lines if deep, otherwise between depths */
  int left;         /* lines that exist, from the first one on */
  int deep, lines;  /* lines: of the tile */
  float beyond;     /* the value of numbers that do not exist */
};

static __device__ inline const float *item_at(const struct operand *o, int line, int depth)
{
  return o->at + (o->deep ? line * o->stride + depth : depth * o->stride + line);
}

/* The operands of the tile with this corner. */
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

/* Does this thread have an i-th quad of a stage? */
static __device__ inline int quad_is(const struct operand *o, int i)
{
  int quads = o->lines * DEPTHS / 4;
  return (i + 1) * THREADS <= quads || (int)threadIdx.x + i * THREADS < quads;
}

/* The number of quads of a depth that are taken before the next depth.  If the number of all quads
 * of a depth divides the number of threads, all are taken; otherwise SPAN_QUADS are. */
static __device__ inline unsigned quads_span(const struct operand *o)
{
  return THREADS % (o->lines / 4) == 0 ? o->lines / 4 : SPAN_QUADS;
}

/* The first line, and the first depth, of a thread's i-th quad of a stage.  Quads lie in the
 * contiguous direction of the operand. */
static __device__ inline int quad_line(const struct operand *o, int i)
{
  unsigned quad = threadIdx.x + i * THREADS, span = quads_span(o);
  return o->deep ? quad / (DEPTHS / 4) : (quad / (span * DEPTHS) * span + quad % span) * 4;
}

static __device__ inline int quad_depth(const struct operand *o, int i)
{
  unsigned quad = threadIdx.x + i * THREADS, span = quads_span(o);
  return o->deep ? quad % (DEPTHS / 4) * 4 : quad / span % DEPTHS;
}

/* Load a quad.  Its numbers outside of the matrix become o->beyond. */
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

/* Load this thread's quads of the stage that begins at depth `begin`. */
static __device__ inline void quads_load(const struct operand *o, int loads, int begin, int end,
                                         float4 *four)
{
#pragma unroll
  for (int i = 0; i < loads; i++)
    if (quad_is(o, i)) four[i] = quad_gather(o, quad_line(o, i), begin + quad_depth(o, i), end);
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

static_assert(TILE_ROWS % (THREADS / SECTOR) == 0 && TILE_COLUMNS % (THREADS / SECTOR) == 0,
              "copies_order");
static_assert((THREADS % (TILE_ROWS / 4) == 0 || THREADS % (SPAN_QUADS * DEPTHS) == 0) &&
                  (THREADS % (TILE_COLUMNS / 4) == 0 || THREADS % (SPAN_QUADS * DEPTHS) == 0),
              "quads_hop");

/* The distance between two consecutive quads of a thread, if depths are `depths` numbers apart. */
static __device__ inline long long quads_hop(const struct operand *o, long long depths)
{
  int quads = o->lines / 4; /* of a depth */
  return THREADS % quads == 0 ? THREADS / quads * depths : THREADS / DEPTHS * 4;
}

/* The first number that a thread reads of the stage that begins at depth `begin`. */
static __device__ inline const float *copies_from(const struct operand *o, int begin)
{
  return o->deep ? item_at(o, threadIdx.x / SECTOR, begin + threadIdx.x % SECTOR)
                 : item_at(o, quad_line(o, 0), begin + quad_depth(o, 0));
}

/* For WHOLE: begin to copy part number `part` of PARTS of this thread's share of a stage.  It is
 * copied in quads or, if the operand is deep, in single numbers: then a warp copies a sector of
 * each of four lines, and writes to all banks. */
static __device__ inline void copies_order(const struct operand *o, const float *from,
                                           unsigned stage, int pitch, int part)
{
  enum { LINES = THREADS / SECTOR, SECTORS = DEPTHS / SECTOR };
  int line = o->deep ? threadIdx.x / SECTOR : quad_line(o, 0);
  int depth = o->deep ? threadIdx.x % SECTOR : quad_depth(o, 0);
  int quads = (o->lines * DEPTHS / 4 + THREADS - 1) / THREADS;
  int copies = o->deep ? o->lines / LINES * SECTORS : quads;
  unsigned to = stage + (depth * pitch + line) * ITEM;
#pragma unroll
  for (int i = (part * copies + PARTS - 1) / PARTS; i < ((part + 1) * copies + PARTS - 1) / PARTS;
       i++) {
    int l = i / SECTORS * LINES, d = i % SECTORS * SECTOR;
    if (o->deep)
      async_copy4_at(to + (d * pitch + l) * ITEM, from + l * o->stride + d);
    else if (quad_is(o, i))
      async_copy16_at(to + i * (int)quads_hop(o, pitch) * ITEM, from + i * quads_hop(o, o->stride));
  }
}

/* Load four numbers from a shared_address().  It has 32 bits; addresses of NVRTC would have 64. */
static __device__ inline void quad_take(unsigned from, float *own)
{
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(own[0]), "=f"(own[1]), "=f"(own[2]), "=f"(own[3])
               : "r"(from)
               : "memory");
}

/* The registers for a thread's quads of the next stage, if not WHOLE. */
struct quads {
  float4 a[ROWS_LOADS], b[COLUMNS_LOADS];
};

/* x, with 0x7FC00000 for every NaN. */
static __device__ inline float settled(float x)
{
  return x == x ? x : __int_as_float(0x7fc00000);
}
