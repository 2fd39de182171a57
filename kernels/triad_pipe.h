/* SPDX-License-Identifier: BSD-3-Clause
 * The chains of a tile.  While one stage is added, later stages are copied.  At the last depth of a
 * stage a thread loads the first depth of the next one, so that it does not have to wait.  The
 * copies of a stage are started in parts, one part per depth: all copies at once would delay the
 * loads from shared memory.
 *
 * Floor: kernels.  Includes triad_tile.h, and so needs its -D options.
 *
 * Between two barriers, one stage is added and the one that arrived is stored.  A copy has the time
 * of SLOTS - 1 stages to arrive.  A slot is the space of one stage in shared memory. */
#include "triad_tile.h"

enum { STAGE = sizeof(struct stage) };

static_assert((int)SLOTS >= 2 && (int)DEPTHS % 2 == 0 && (int)PARTS < (int)DEPTHS, "struct pipe");

struct pipe {
  struct operand a, b;
  const float *from_a, *from_b; /* of the stage that is copied next */
  struct stage *stages;         /* [SLOTS] */
  unsigned place;               /* shared_address() of stages */
  unsigned rows, columns;       /* addresses of the thread's own lines, in the first stage */
  int next, end;      /* first depth of the stage that is copied next; end of all depths */
  int slot, arriving; /* byte offsets of the stage that is added, and of the last one copied */
  struct quads own;
  float va[2][ROWS_OWN], vb[2][COLUMNS_OWN]; /* for even and for odd depths */
};

static __device__ inline int slot_after(int slot)
{
  return slot == (SLOTS - 1) * STAGE ? 0 : slot + STAGE;
}

/* Load the thread's part of the lines of a depth. */
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

/* Begin to copy a part of the next stage, to its slot or to registers of the thread.  With WHOLE,
 * the last stage is copied again after the last stage, to save a branch; these copies are not
 * added. */
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

/* Copy the stage that was loaded last from registers to its slot.  After the last stage this
 * stores an earlier stage again, which is not added. */
static __device__ inline void stage_store(struct pipe *p)
{
  struct stage *to = p->stages + p->arriving / STAGE;
  if (WHOLE) return; /* the copies write to the slot themselves */
  quads_store(&p->a, p->own.a, ROWS_LOADS, to->a[0], ROWS_PITCH);
  quads_store(&p->b, p->own.b, COLUMNS_LOADS, to->b[0], COLUMNS_PITCH);
}

/* Begin a tile, at depths begin .. end - 1; begin < end. */
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

/* Continue the chains acc over one depth.  A column is kept while rows are used in alternating
 * order; if a thread has more rows than columns, a row is kept.  Then the compiler finds, for most
 * sums, a register bank other than the operands' banks, so that no cycle is lost. */
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

/* Continue the chains acc over the depths of a stage, then make the next stage the current one.
 * After the last stage one more depth is loaded, which is not added. */
static __device__ inline void stage_add(struct pipe *p, float (*acc)[COLUMNS_OWN])
{
  int next = slot_after(p->slot);
#pragma unroll
  for (int k = 0; k < DEPTHS; k++) {
    if (k == DEPTHS - 1) { /* all of this stage is loaded; after the barrier its slot is free */
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

/* Wait until no copy is running. */
static __device__ inline void pipe_end(void)
{
  ASYNC_WAIT(0);
}
