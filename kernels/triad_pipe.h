/* SPDX-License-Identifier: BSD-3-Clause
 * The chains of a tile: stages are on their way while one is added, and a thread takes the first
 * depth of the next stage while it adds the last one of this, so that nothing waits.  Copies are
 * ordered part by part beside depths: all at once they are in the way of what these take.
 *
 * Floor: kernels.  Includes triad_tile.h, and so needs its constants.
 *
 * Between two barriers a stage is added, and the one that arrived is stored; what is copied has
 * SLOTS - 1 stages' time to come. */
#include "triad_tile.h"

enum { STAGE = sizeof(struct stage) };

static_assert((int)SLOTS >= 2 && (int)DEPTHS % 2 == 0 && (int)PARTS < (int)DEPTHS, "struct pipe");

struct pipe {
  struct operand a, b;
  const float *from_a, *from_b; /* of the stage that is ordered next */
  struct stage *stages;         /* [SLOTS] */
  unsigned place;               /* theirs, a shared_address() */
  unsigned rows, columns;       /* a thread's own, of the first stage */
  int next, end;      /* the first depth of the stage that is ordered next; all depths' end */
  int slot, arriving; /* bytes to the stage that is added, and to the last one ordered */
  struct quads own;
  float va[2][ROWS_OWN], vb[2][COLUMNS_OWN]; /* of even and odd depths */
};

static __device__ inline int slot_after(int slot)
{
  return slot == (SLOTS - 1) * STAGE ? 0 : slot + STAGE;
}

/* A thread's part of the lines of a depth. */
static __device__ inline void depth_take(struct pipe *p, int slot, int depth)
{
  struct place first = {0, 0};
  float *va = p->va[depth % 2], *vb = p->vb[depth % 2];
  unsigned rows = p->rows + slot + depth * ROWS_PITCH * ITEM;
  unsigned columns = p->columns + slot + depth * COLUMNS_PITCH * ITEM;
#pragma unroll
  for (int j = 0; j < COLUMNS_OWN; j += 4) quad_take(columns + column_at(first, j) * ITEM, vb + j);
#pragma unroll
  for (int i = 0; i < ROWS_OWN; i += 4) quad_take(rows + row_at(first, i) * ITEM, va + i);
}

/* A part of the next stage is on its way: to its place, or to a thread's own.  Behind the last one
 * whole tiles have it once more, which nothing adds: so no branch is needed. */
static __device__ inline void stage_order(struct pipe *p, int part)
{
  if (part == 0) p->arriving = slot_after(p->arriving);
  unsigned to = p->place + p->arriving;
  if (WHOLE) {
    copies_order(&p->a, p->from_a, to, ROWS_PITCH, part);
    copies_order(&p->b, p->from_b, to + (int)sizeof p->stages->a, COLUMNS_PITCH, part);
  } else if (part == 0 && p->next < p->end) {
    quads_load(&p->a, ROWS_LOADS, p->next, p->end, p->own.a);
    quads_load(&p->b, COLUMNS_LOADS, p->next, p->end, p->own.b);
  }
  if (part < PARTS - 1) return;
  async_commit();
  p->next += DEPTHS;
  if (p->next >= p->end) return;
  p->from_a += DEEP_A ? DEPTHS : DEPTHS * p->a.stride;
  p->from_b += DEEP_B ? DEPTHS : DEPTHS * p->b.stride;
}

/* The last stage ordered comes from a thread's own to its place.  Beyond the end that is an earlier
 * one once more, which nothing adds. */
static __device__ inline void stage_store(struct pipe *p)
{
  struct stage *to = p->stages + p->arriving / STAGE;
  if (WHOLE) return; /* it was copied */
  quads_store(&p->a, p->own.a, ROWS_LOADS, to->a[0], ROWS_PITCH);
  quads_store(&p->b, p->own.b, COLUMNS_LOADS, to->b[0], COLUMNS_PITCH);
}

/* Depths begin .. end - 1 of a tile; begin < end. */
static __device__ inline void pipe_begin(struct pipe *p, const struct triad_args *t,
                                         struct stage *stages, struct place at,
                                         struct corner corner, int begin, int end)
{
  struct operand a = rows_of(t, corner), b = columns_of(t, corner);
  p->a = a;
  p->b = b;
  p->from_a = copies_from(&a, begin);
  p->from_b = copies_from(&b, begin);
  p->stages = stages;
  p->place = shared_address(stages);
  p->rows = p->place + row_at(at, 0) * ITEM;
  p->columns = p->place + (int)sizeof stages->a + column_at(at, 0) * ITEM;
  p->next = begin;
  p->end = end;
  p->slot = 0;
  p->arriving = (SLOTS - 1) * STAGE;
#pragma unroll
  for (int s = 0; s + 1 < SLOTS; s++) {
#pragma unroll
    for (int part = 0; part < PARTS; part++) stage_order(p, part);
    stage_store(p);
  }
  ASYNC_WAIT(SLOTS - 2);
  __syncthreads();
  depth_take(p, 0, 0);
}

/* acc <- the chains go on over a depth.  A column is held while rows are read to and fro, or the
 * other way about where a thread has more rows: the compiler then finds for most sums another bank
 * of registers than for what is read beside them, and no cycle is lost. */
static __device__ inline void depth_add(const float *a, const float *b, float (*acc)[COLUMNS_OWN])
{
  enum {
    BY_COLUMN = COLUMNS_OWN >= ROWS_OWN,
    OUTER = BY_COLUMN ? COLUMNS_OWN : ROWS_OWN,
    INNER = BY_COLUMN ? ROWS_OWN : COLUMNS_OWN
  };
#pragma unroll
  for (int o = 0; o < OUTER; o++)
#pragma unroll
    for (int v = 0; v < INNER; v++) {
      int n = o % 2 ? INNER - 1 - v : v, i = BY_COLUMN ? n : o, j = BY_COLUMN ? o : n;
      acc[i][j] = fmaf(a[i], b[j], acc[i][j]);
    }
}

/* acc <- the chains go on over the depths of a stage; then the next stage is the one in work.
 * Behind the last stage a depth is taken that nothing adds. */
static __device__ inline void stage_add(struct pipe *p, float (*acc)[COLUMNS_OWN])
{
  int next = slot_after(p->slot);
#pragma unroll
  for (int k = 0; k < DEPTHS; k++) {
    if (k == DEPTHS - 1) { /* all of this stage is taken: its place is free behind the barrier */
      stage_store(p);
      ASYNC_WAIT(SLOTS - 2);
      __syncthreads();
    } else if (k < PARTS) {
      stage_order(p, k);
    }
    depth_take(p, k + 1 < DEPTHS ? p->slot : next, (k + 1) % DEPTHS);
    depth_add(p->va[k % 2], p->vb[k % 2], acc);
  }
  p->slot = next;
}

/* Nothing is on its way any more. */
static __device__ inline void pipe_end(void)
{
  ASYNC_WAIT(0);
}
