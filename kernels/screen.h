/* SPDX-License-Identifier: BSD-3-Clause
 * Shared memory of screen.cu, its loop over pairs of tiles, and the handling of the scores of a
 * tile.
 *
 * A warp has 16 rows, a lane two of them.  z[j][0] and z[j][1] are the lane's scores of row lane /
 * 4 with item 8 j + 2 (lane % 4) and with the next item; z[j][2] and z[j][3] are the scores of row
 * lane / 4 + 8.  In this file, a measure is |score| for d = 1, and the square of a frame's size for
 * d > 1.  With POSITIVE the measure is the score itself: its positive part is the size, and
 * negative scores reach no threshold.
 *
 * -D options as in screen.cu. */
#ifndef SCREEN_H
#define SCREEN_H

#include "barriers.h"
#include "screen_types.h"
#include "warp.h"

enum {
  EIGHTS = VECTORS / 8,              /* groups of eight items; z has one entry for each */
  STEP = FRAME == 1 ? 1 : FRAME / 2, /* groups that a frame spans */
  FRAMES_TILE = VECTORS / FRAME,
  ROWS_BYTES = SCREEN_ROWS * SCREEN_ITEM,
  STAGE_BYTES = ROWS_BYTES + VECTORS * SCREEN_ITEM
};

struct shared {
  char stage[STAGES][STAGE_BYTES]; /* rows, then atoms */
  unsigned hits[SCREEN_WARPS][SCREEN_HITS][WARP];
  unsigned long long full[STAGES], empty[STAGES]; /* barriers of bulk copies (barriers.h) */
};

/* Pairs of a row tile and an atom tile.  Blocks work on neighbouring pairs at the same time.  The
 * row tiles of a band, at most BAND, go through the atoms together, so that the atom tiles that
 * they share are in the cache. */
enum { BAND = 16 };
struct tile_pair {
  int number;        /* of the pair; the block's next one is number + a->blocks */
  int start;         /* number of the first pair of the band */
  int first, height; /* first row tile of the band, and their number */
  int row_tile, atom_tile;
};

static __device__ inline void pair_find(const struct screen_args *a, struct tile_pair *p)
{
  while (p->number - p->start >= p->height * a->atom_tiles && p->first + p->height < a->row_tiles) {
    p->start += p->height * a->atom_tiles;
    p->first += p->height;
    int left = a->row_tiles - p->first;
    p->height = left < BAND ? left : BAND;
  }
  int within = p->number - p->start;
  p->atom_tile = p->height == BAND ? within / BAND : within / p->height;
  p->row_tile = p->first + within - p->atom_tile * p->height;
  p->atom_tile += a->first_tile;
}

static __device__ inline struct tile_pair pair_first(const struct screen_args *a)
{
  struct tile_pair p = {(int)blockIdx.x, 0, 0, a->row_tiles < BAND ? a->row_tiles : BAND, 0, 0};
  pair_find(a, &p);
  return p;
}

static __device__ inline int pair_is(const struct screen_args *a, const struct tile_pair *p)
{
  return p->number < a->row_tiles * a->atom_tiles;
}

static __device__ inline void pair_next(const struct screen_args *a, struct tile_pair *p)
{
  p->number += a->blocks;
  pair_find(a, p);
}

/* A hit is a measure that reaches the threshold of its row.  Its lowest bits say which measure of
 * the tile it is. */
enum { HIT_BITS = 7, HIT_MASK = (1 << HIT_BITS) - 1 };

/* The two rows of a lane in a tile: their thresholds, and the hits that were found. */
struct lane_rows {
  int tile; /* atom tile */
  int row[2];
  float threshold[2]; /* as measures */
  unsigned hits;      /* shared-memory address of the lane's first hit */
  unsigned next[2];   /* addresses of the next hits: upper row ascending, lower descending */
  unsigned one, kept; /* 1, and ~HIT_MASK */
};
enum { HIT_STRIDE = WARP * 4, HIT_LAST = SCREEN_HITS - 1 };

/* A 1 that the compiler does not know, so that it leaves multiplications by it as they are. */
static __device__ inline unsigned one_unknown(void)
{
  unsigned one;
  asm("mov.u32 %0, %%nctaid.y;" : "=r"(one)); /* the grid is one high */
  return one;
}

static __device__ inline struct lane_rows lane_rows_of(const struct screen_args *a,
                                                       struct shared *s, const struct tile_pair *p)
{
  int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  unsigned hits = shared_address(&s->hits[warp][0][lane]);
  struct lane_rows l = {p->atom_tile, {0, 0}, {0, 0}, hits, {hits, hits + HIT_LAST * HIT_STRIDE}};
  l.one = one_unknown();
  l.kept = (0 - l.one) << HIT_BITS;
#pragma unroll
  for (int r = 0; r < 2; r++) {
    l.row[r] = p->row_tile * SCREEN_ROWS + warp * 16 + lane / 4 + 8 * r;
    if (SAMPLE) continue;
    float threshold = a->threshold[l.row[r]];
    l.threshold[r] = FRAME == 1 ? threshold : threshold * threshold * (1 - 0x1p-20f);
  }
  return l;
}

/* The measures of group j of row r; a frame has one measure, in its first group. */
static __device__ inline void measures_of(const float z[EIGHTS][4], int j, int r, float measure[2])
{
  measure[0] = z[j][2 * r];
  measure[1] = z[j][2 * r + 1];
  if (FRAME == 1) return;
  measure[0] = measure[1] = 0;
#pragma unroll
  for (int i = j; i < j + STEP; i++)
    measure[0] += z[i][2 * r] * z[i][2 * r] + z[i][2 * r + 1] * z[i][2 * r + 1];
}

#if POSITIVE
#define SIZES "mov.f32 a, %2; mov.f32 b, %3;\n"
#else
#define SIZES "abs.f32 a, %2; abs.f32 b, %3;\n"
#endif

/* Hits of both rows fill the lane's words from both ends.  A group adds at most four hits.  After
 * every CLAMP groups the ends are clamped, which may lose hits. */
enum { CLAMP = 2, ROOM = 4 * CLAMP - 1, MAX_HITS = SCREEN_HITS - 4 * CLAMP };

/* Keep the measure of each row if it is a hit.  A hit has the measure with 16 bits of fraction,
 * then group, row and item in HIT_BITS.  This is assembly, because the compiler would emit
 * branches, which cost more than they save.  A store reads its address register late, and an
 * instruction that changes the register waits for the store.  So each store has a copy of the
 * address.  The copy is made by a multiplication, because the unit that multiplies integers has
 * least to do. */
static __device__ inline void hits_keep(struct lane_rows *l, float upper, float lower, int j,
                                        int item)
{
  asm volatile("{ .reg .pred p, q; .reg .f32 a, b; .reg .b32 first, second, c, d;\n" SIZES
               "setp.ge.f32 p, a, %4; setp.ge.f32 q, b, %5;\n"
               "lop3.b32 first, %2, %8, %6, 0xea; lop3.b32 second, %3, %8, %7, 0xea;\n"
               "mad.lo.u32 c, %0, %9, 0;\n"
               "@p st.shared.b32 [c], first;\n"
               "@p mad.lo.s32 %0, %9, %10, %0;\n"
               "mad.lo.u32 d, %1, %9, 0;\n"
               "@q st.shared.b32 [d], second;\n"
               "@q mad.lo.s32 %1, %9, %11, %1; }"
               : "+r"(l->next[0]), "+r"(l->next[1])
               : "f"(upper), "f"(lower), "f"(l->threshold[0]), "f"(l->threshold[1]),
                 "r"(j << 2 | item), "r"(j << 2 | 2 | item), "r"(l->kept), "r"(l->one),
                 "n"((int)HIT_STRIDE), "n"(-(int)HIT_STRIDE));
}

static __device__ inline unsigned hit_of(const struct lane_rows *l, int i)
{
  unsigned hit;
  asm volatile("ld.shared.b32 %0, [%1];" : "=r"(hit) : "r"(l->hits + i * HIT_STRIDE));
  return hit;
}

/* The index of a hit's frame in its tile. */
static __device__ inline int hit_frame(unsigned hit)
{
  int j = (int)(hit & HIT_MASK) >> 2, column = threadIdx.x % 4;
  return FRAME == 1 ? 8 * j + 2 * column + (int)(hit & 1) : 4 * (j / STEP) + column;
}

/* Append the hits of a tile to the lists of their rows, four per lane at a time.  If a lane had too
 * many hits, its rows cannot be certified. */
static __device__ inline void hits_append(const struct screen_args *a, const struct lane_rows *l)
{
  enum { TOGETHER = 4 };
  int upper = (int)(l->next[0] - l->hits) / HIT_STRIDE;
  int count = upper + HIT_LAST - (int)(l->next[1] - l->hits) / HIT_STRIDE;
#pragma unroll 1
  for (int i = 0; __any_sync(FULL_WARP, i < count); i += TOGETHER) {
    int at[TOGETHER], row[TOGETHER];
    struct candidate c[TOGETHER];
#pragma unroll
    for (int u = 0; u < TOGETHER; u++) {
      int from = i + u < upper ? i + u : HIT_LAST + upper - i - u;
      unsigned hit = i + u < count ? hit_of(l, from) : 0;
      float measure = __uint_as_float(hit & 0x7fffffffu & ~(unsigned)HIT_MASK);
      c[u].value = FRAME == 1 ? measure : sqrtf(measure);
      c[u].atom = l->tile * FRAMES_TILE + hit_frame(hit);
      row[u] = hit >> 1 & 1 ? l->row[1] : l->row[0];
      at[u] = a->capacity;
      if (i + u < count && c[u].atom < a->slots) at[u] = atomicAdd(&a->counts[row[u]], 1);
    }
#pragma unroll
    for (int u = 0; u < TOGETHER; u++)
      if ((unsigned)at[u] < (unsigned)a->capacity)
        *(float2 *)&a->lists[(long long)row[u] * a->capacity + at[u]] = *(const float2 *)&c[u];
  }
  if (count < MAX_HITS) return;
  atomicMax(&a->counts[l->row[0]], SCREEN_LOST);
  atomicMax(&a->counts[l->row[1]], SCREEN_LOST);
}

/* Keep the scores that reach the threshold estimates as hits.  They are appended during the
 * products of the next tile, because atomics have a long latency. */
static __device__ inline void tile_catch(struct lane_rows *l, const float z[EIGHTS][4])
{
  unsigned least = l->hits + ROOM * HIT_STRIDE;
#pragma unroll
  for (int j = 0; j < EIGHTS; j += STEP) {
    float upper[2], lower[2];
    measures_of(z, j, 0, upper);
    measures_of(z, j, 1, lower);
    hits_keep(l, upper[0], lower[0], j, 0);
    if (FRAME == 1) hits_keep(l, upper[1], lower[1], j, 1);
    if ((j / STEP + 1) % CLAMP) continue;
    /* Some hits are lost; hits_append() notices. */
    if (l->next[1] < least) l->next[1] = least;
    if (l->next[0] > l->next[1] - ROOM * HIT_STRIDE) l->next[0] = l->next[1] - ROOM * HIT_STRIDE;
  }
}

/* Store all sizes of a sampled tile (FRAME 1).  threshold.cu lists those that reach the
 * estimate. */
static __device__ inline void tile_sizes(const struct screen_args *a, const struct lane_rows *l,
                                         const float z[EIGHTS][4])
{
#pragma unroll
  for (int r = 0; r < 2; r++) {
    float *to =
        a->sizes + (long long)l->row[r] * a->sizes_row + l->tile * VECTORS + threadIdx.x % 4 * 2;
#pragma unroll
    for (int j = 0; j < EIGHTS; j++) {
      float x = z[j][2 * r], y = z[j][2 * r + 1];
      *(float2 *)(to + 8 * j) = POSITIVE ? make_float2(x, y) : make_float2(fabsf(x), fabsf(y));
    }
  }
}

/* Store the largest size of a row in each of SCREEN_PEAKS parts of a sampled tile. */
static __device__ inline void tile_peaks(const struct screen_args *a, const struct lane_rows *l,
                                         const float z[EIGHTS][4])
{
  /* Groups per part.  Each of a row's four lanes has SCREEN_PEAKS / 4 parts.  With wide frames some
   * parts are empty. */
  enum { EVEN = EIGHTS * 4 / SCREEN_PEAKS, EACH = EVEN < STEP ? STEP : EVEN };
#pragma unroll
  for (int r = 0; r < 2; r++)
#pragma unroll
    for (int part = 0; part < SCREEN_PEAKS / 4; part++) {
      float max = 0;
#pragma unroll
      for (int j = part * EACH; j < (part + 1) * EACH && j < EIGHTS; j += STEP) {
        float measure[2];
        measures_of(z, j, r, measure);
        max = POSITIVE ? fmaxf(max, fmaxf(measure[0], measure[1]))
                       : fmaxf(max, fmaxf(fabsf(measure[0]), fabsf(measure[1])));
      }
      a->peaks[(long long)l->row[r] * a->peaks_row + l->tile * SCREEN_PEAKS + part * 4 +
               threadIdx.x % 4] = FRAME == 1 ? max : sqrtf(max);
    }
}

#endif
