/* SPDX-License-Identifier: BSD-3-Clause
 * The chains of a product's tile: stages are on their way while one is added, and a thread takes
 * the first depth of the next stage while it adds the last one of this, so that nothing waits where
 * a multiprocessor has one block alone.
 *
 * Floor: kernels.  Includes triad_tile.h, and so needs its constants.
 *
 * Between two barriers a stage is added, and the one that arrived is stored; what is copied as it
 * lies has SLOTS - 1 stages' time to come. */
#include "triad_types.h"

#define DEPTHS TRIAD_PRODUCT_DEPTHS
#include "triad_tile.h"

/* Stages in shared memory: through registers one is on its way, and each more takes registers. */
enum { SLOTS = DIRECT_A && DIRECT_B ? TRIAD_PRODUCT_SLOTS : 2 };

static_assert((int)SLOTS >= 2 && (int)SLOTS <= (int)TRIAD_PRODUCT_SLOTS && DEPTHS % 2 == 0,
              "struct pipe");

struct pipe {
  struct operand a, b;
  const float *from_a, *from_b; /* of the stage that is ordered next */
  struct stage *stages;         /* [SLOTS] */
  struct place at;
  int next, end;      /* the first depth of the stage that is ordered next; all depths' end */
  int slot, arriving; /* of the stage that is added, of the last one ordered */
  struct quads own;
  float va[2][ROWS_OWN], vb[2][COLUMNS_OWN]; /* of even and odd depths */
};

static __device__ inline int slot_after(int slot)
{
  return slot + 1 == SLOTS ? 0 : slot + 1;
}

/* A thread's part of the lines of a depth. */
static __device__ inline void depth_take(struct pipe *p, const struct stage *s, int depth)
{
  float *va = p->va[depth % 2], *vb = p->vb[depth % 2];
#pragma unroll
  for (int i = 0; i < ROWS_OWN; i += 4) quad_take(s->a[depth] + row_at(p->at, i), va + i);
#pragma unroll
  for (int j = 0; j < COLUMNS_OWN; j += 4) quad_take(s->b[depth] + column_at(p->at, j), vb + j);
}

/* The next stage is on its way: to its place, or to a thread's own. */
static __device__ inline void stage_order(struct pipe *p)
{
  p->arriving = slot_after(p->arriving);
  struct stage *to = p->stages + p->arriving;
  if (p->next < p->end) {
    if (DIRECT_A)
      quads_order(&p->a, p->from_a, ROWS_LOADS, to->a[0], ROWS_PITCH);
    else
      quads_load(&p->a, p->from_a, ROWS_LOADS, p->next, p->end, p->own.a);
    if (DIRECT_B)
      quads_order(&p->b, p->from_b, COLUMNS_LOADS, to->b[0], COLUMNS_PITCH);
    else
      quads_load(&p->b, p->from_b, COLUMNS_LOADS, p->next, p->end, p->own.b);
  }
  if (DIRECT_A || DIRECT_B) async_commit();
  p->from_a += DEEP_A ? DEPTHS : DEPTHS * p->a.stride;
  p->from_b += DEEP_B ? DEPTHS : DEPTHS * p->b.stride;
  p->next += DEPTHS;
}

/* The last stage ordered comes from a thread's own to its place.  Beyond the end that is an earlier
 * one once more, which nothing adds. */
static __device__ inline void stage_store(struct pipe *p)
{
  struct stage *to = p->stages + p->arriving;
  if (!DIRECT_A) quads_store(&p->a, p->own.a, ROWS_LOADS, to->a[0], ROWS_PITCH);
  if (!DIRECT_B) quads_store(&p->b, p->own.b, COLUMNS_LOADS, to->b[0], COLUMNS_PITCH);
}

/* Depths begin .. end - 1 of a tile; begin < end. */
static __device__ inline void pipe_begin(struct pipe *p, const struct triad_args *t,
                                         struct stage *stages, struct place at,
                                         struct corner corner, int begin, int end)
{
  struct operand a = rows_of(t, corner), b = columns_of(t, corner);
  p->a = a;
  p->b = b;
  p->from_a = item_at(&a, quad_line(&a, 0), begin + quad_depth(&a, 0));
  p->from_b = item_at(&b, quad_line(&b, 0), begin + quad_depth(&b, 0));
  p->stages = stages;
  p->at = at;
  p->next = begin;
  p->end = end;
  p->slot = 0;
  p->arriving = SLOTS - 1;
#pragma unroll
  for (int s = 0; s < SLOTS; s++) {
    stage_order(p);
    if (s + 1 < SLOTS) stage_store(p);
  }
  ASYNC_WAIT(SLOTS - 1);
  __syncthreads();
  depth_take(p, stages, 0);
}

/* acc <- the chains go on over the depths of a stage; then the next stage is the one in work.
 * Behind the last stage a depth is taken that nothing adds. */
static __device__ inline void stage_add(struct pipe *p, float (*acc)[COLUMNS_OWN])
{
  const struct stage *now = p->stages + p->slot, *next = p->stages + slot_after(p->slot);
#pragma unroll
  for (int k = 0; k < DEPTHS; k++) {
    if (k == DEPTHS - 1) { /* all of this stage is taken: its place is free behind the barrier */
      stage_store(p);
      ASYNC_WAIT(SLOTS - 2);
      __syncthreads();
      stage_order(p);
    }
    depth_take(p, k + 1 < DEPTHS ? now : next, (k + 1) % DEPTHS);
#pragma unroll
    for (int i = 0; i < ROWS_OWN; i++)
#pragma unroll
      for (int v = 0; v < COLUMNS_OWN; v++) {
        int j = i % 2 ? COLUMNS_OWN - 1 - v : v; /* to and fro: operands stay in the pipe */
        acc[i][j] = fmaf(p->va[k % 2][i], p->vb[k % 2][j], acc[i][j]);
      }
  }
  p->slot = slot_after(p->slot);
}
