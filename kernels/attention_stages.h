/* SPDX-License-Identifier: BSD-3-Clause
 * A tile of attention: how threads share it, and how keys and values are staged.
 *
 * A stage is a buffer in shared memory.  Keys are staged TILE_CHUNK columns at a time, values
 * tile_positions() positions at a time.  While one stage is read, the next one is filled.
 *
 * -D HEAD_D, HEAD_DV, CELLS: see walk.h */
#ifndef ATTENTION_STAGES_H
#define ATTENTION_STAGES_H

#include "walk.h"

enum {
  COLUMNS = padded_head(HEAD_D),
  KEY_STAGES = (COLUMNS + TILE_CHUNK - 1) / TILE_CHUNK,
  CHAINS = (HEAD_D + WALK_CHAIN - 1) / WALK_CHAIN, /* chains of an inner product: 1 or 2 */
  POSITIONS = tile_positions(HEAD_DV),             /* positions in a stage of values */
  VALUE_STAGES = WALK_BLOCK / POSITIONS,
  STAGES = KEY_STAGES + VALUE_STAGES,   /* stages of a block of positions */
  GROUPS = PART_COLUMNS / 32,           /* groups of 4 columns that a lane has */
  LOOKUPS = CELLS == CELLS_F32 ? 8 : 2, /* table lookups at a time */
  UNROLLED = GROUPS > 4 ? 2 : 4,        /* positions of values; limited by registers */
  BLOCKS = HEAD_D <= 64 && HEAD_DV <= 64 ? 4
           : HEAD_DV <= 128              ? 3
                                         : 2, /* blocks on a multiprocessor */
  HALF = 32,                     /* positions whose weights are written at a time */
  ROWS = 4,                      /* rows of a lane */
  SPOTS = 8,                     /* positions of a lane: spot, spot + 8, .. */
  /* Threads that copy the columns of one position. */
  KEY_PIECES = COLUMNS <= 16   ? 4
               : COLUMNS <= 32 ? 8
                               : 16,
  VALUE_PIECES = PART_COLUMNS <= 32    ? 8
                 : PART_COLUMNS <= 64  ? 16
                 : PART_COLUMNS <= 128 ? 32
                                       : 64,
  /* Can pieces of 16 bytes be copied without conversion? */
  KEYS_WHOLE = CELLS == CELLS_F32 && HEAD_D % 4 == 0,
  VALUES_WHOLE = CELLS == CELLS_F32 && HEAD_DV % 4 == 0
};

struct shared {
  float q[COLUMNS][TILE_ROWS];
  float stage[2][TILE_STAGE];
  float weight[WALK_WARPS][HALF][16];
};

/* A task, and the state of this thread in it. */
struct walk {
  const struct attention_args *a;
  const struct softmax_sequence *sequence; /* reread when needed, to save registers */
  const struct softmax_task *task;
  const char *k, *v;      /* the task's head in cell 0; without a table, at position 0 */
  int begin, end;         /* positions of the shard that the tile sees */
  int block, which, slot; /* the stage that is filled next */
  int all_from, all_end;  /* positions that all rows of the warp see */
  int any_from, any_end;  /* positions that at least one row of the warp sees */
  int group, spot;        /* the lane's group of rows; its place among positions and columns */
  /* This lane keeps m and l of one row.  The row sees positions from .. to - 1. */
  int from, to;
  float m, l;
};

/* Read four numbers of a cell.  Only the first `there` of them exist; the others become 0. */
static __device__ inline float4 cells_read(const void *cells, long long at, int there)
{
  float out[4] = {0, 0, 0, 0};
#pragma unroll
  for (int i = 0; i < 4; i++)
    if (i < there)
      out[i] = CELLS == CELLS_F32 ? ((const float *)cells)[at + i]
                                  : widen(((const unsigned short *)cells)[at + i]);
  return make_float4(out[0], out[1], out[2], out[3]);
}

/* Begin to copy four columns of `count` positions first, first + step, .. to addresses `pitch`
 * floats apart.  count, step, pitch, columns and whole are constants.  For a position outside
 * of the shard, the nearest position inside is copied.  That copy is never used; it saves a
 * condition. */
static __device__ inline void pieces_order(const struct walk *w, float *to, int pitch,
                                           const char *head, int first, int count, int step,
                                           int column, int columns, int whole)
{
  const struct attention_args *a = w->a;
  long long stride = (long long)a->kv_heads * columns * CELL_BYTES;
  if (!a->table && whole && first >= w->begin && first + (count - 1) * step < w->end) {
    const char *from = head + first * stride + column * 4;
#pragma unroll
    for (int i = 0; i < count; i++, from += step * stride) async_copy16(to + i * pitch, from);
    return;
  }
  const int *table = a->table ? a->table + w->sequence->cells : 0;
#pragma unroll LOOKUPS
  for (int i = 0; i < count; i++) {
    int position = max(min(first + i * step, w->end - 1), w->begin);
    const char *from = head + cell_find(a, table, position) * stride;
    if (whole)
      async_copy16(to + i * pitch, from + column * 4);
    else
      *(float4 *)(to + i * pitch) = cells_read(from, column, columns - column);
  }
}

/* Begin to copy a stage of keys of a block.  Piece c (four columns) of position j is stored at c ^
 * (j mod 8), so that the eight positions that a warp reads at once have no bank conflict. */
static __device__ inline void keys_order(const struct walk *w, float *to, int block, int stage)
{
  enum { STEP = WALK_THREADS / KEY_PIECES };
  int j = threadIdx.x / KEY_PIECES, piece = threadIdx.x % KEY_PIECES;
  int column = stage * TILE_CHUNK + piece * 4;
  if (COLUMNS % (4 * KEY_PIECES) && column >= COLUMNS) return;
  pieces_order(w, to + j * TILE_CHUNK + (piece ^ (j % 8)) * 4, STEP * TILE_CHUNK, w->k,
               block * WALK_BLOCK + j, WALK_BLOCK / STEP, STEP, column, HEAD_D, KEYS_WHOLE);
}

static __device__ inline void values_order(const struct walk *w, float *to, int block, int stage)
{
  enum { STEP = WALK_THREADS / VALUE_PIECES };
  int j = threadIdx.x / VALUE_PIECES, column = threadIdx.x % VALUE_PIECES * 4;
  if (4 * VALUE_PIECES > HEAD_DV && column >= HEAD_DV) return;
  pieces_order(w, to + j * PART_COLUMNS + column, STEP * PART_COLUMNS, w->v,
               block * WALK_BLOCK + stage * POSITIONS + j, POSITIONS / STEP, STEP, column, HEAD_DV,
               VALUES_WHOLE);
}

/* Begin to fill the next stage, if there is one. */
static __device__ inline void stage_order(struct walk *w, struct shared *s)
{
  if (w->block * WALK_BLOCK < w->end) {
    float *to = s->stage[w->slot];
    if (w->which < KEY_STAGES)
      keys_order(w, to, w->block, w->which);
    else
      values_order(w, to, w->block, w->which - KEY_STAGES);
    w->slot ^= 1;
    if (++w->which == STAGES) w->which = 0, w->block++;
  }
  async_commit();
}

static __device__ inline void stage_wait(void)
{
  ASYNC_WAIT(1);
  __syncthreads();
}

/* This warp has read a stage.  Wait until all warps have read it, then begin to refill it. */
static __device__ inline void stage_done(struct walk *w, struct shared *s)
{
  __syncthreads();
  stage_order(w, s);
}

#endif
