/* SPDX-License-Identifier: BSD-3-Clause
 * Scores of a tile by wgmma (9.0).  A warpgroup multiplies 64 rows by 256 items, both from shared
 * memory; an additional warpgroup copies. */
#define PRECISION 2 /* TENSOR_F16 */
#include "wgmma.h"

static_assert(VECTORS == 256 && SCREEN_WARPS == 8, "two warpgroups of m64n256k16");

static __device__ inline void stage_multiply(float z[EIGHTS][4], const char *stage, int add)
{
  unsigned long long rows = operand_of(stage + threadIdx.x / 128 * 64 * SCREEN_ITEM);
  unsigned long long atoms = operand_of(stage + ROWS_BYTES);
  products_begin();
#pragma unroll
  for (int k = 0; k < SCREEN_DEPTH / 16; k++)
    pieces_multiply(z, rows + 2 * k, atoms + 2 * k, add || k > 0);
  products_commit();
}

/* The producer refills a stage as soon as both warpgroups have read it. */
static __device__ inline void stages_produce(const struct screen_args *a, struct shared *s)
{
  int serial = 0;
  for (struct tile_pair pair = pair_first(a); pair_is(a, &pair); pair_next(a, &pair)) {
    const char *rows = a->rows + (long long)pair.row_tile * a->stages * ROWS_BYTES;
    const char *atoms =
        a->atoms + (long long)pair.atom_tile * a->stages * (STAGE_BYTES - ROWS_BYTES);
    for (int stage = 0; stage < a->stages; stage++, serial++) {
      int at = serial % STAGES;
      if (serial >= STAGES)
        while (!barrier_passed(&s->empty[at], (serial / STAGES + 1) % 2)) {}
      barrier_expect(&s->full[at], STAGE_BYTES);
      bulk_copy(s->stage[at], rows + (long long)stage * ROWS_BYTES, ROWS_BYTES, &s->full[at]);
      bulk_copy(s->stage[at] + ROWS_BYTES, atoms + (long long)stage * (STAGE_BYTES - ROWS_BYTES),
                STAGE_BYTES - ROWS_BYTES, &s->full[at]);
    }
  }
}

/* Returns 1 to a warp that multiplies, and 0 to a warp of the additional warpgroup.  One thread of
 * that warpgroup makes all copies before it returns. */
static __device__ inline int stages_enter(const struct screen_args *a, struct shared *s)
{
  if (threadIdx.x == 0) {
    for (int i = 0; i < STAGES; i++) {
      barrier_begin(&s->full[i], 1);
      barrier_begin(&s->empty[i], SCREEN_WARPS * WARP);
    }
    barriers_publish();
  }
  __syncthreads();
  if (threadIdx.x >= SCREEN_WARPS * WARP) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == SCREEN_WARPS * WARP) stages_produce(a, s);
    return 0;
  }
  asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
  return 1;
}

/* z <- scores of the pair; then *pair becomes the block's next pair.  *serial counts stages.  The
 * hits of the previous tile are appended while the first stages are multiplied. */
static __device__ inline void tile_multiply(const struct screen_args *a, struct shared *s,
                                            float z[EIGHTS][4], struct tile_pair *pair, int *serial,
                                            const struct lane_rows *before)
{
  int early = a->stages > 1;
#pragma unroll 1
  for (int stage = 0; stage < a->stages; stage++, ++*serial) {
    int at = *serial % STAGES;
    while (!barrier_passed(&s->full[at], *serial / STAGES % 2)) {}
    stage_multiply(z, s->stage[at], stage > 0);
    if (stage == early) {
      hits_append(a, before);
      pair_next(a, pair);
    }
    if (stage == 0) continue;
    products_wait_one();
    barrier_arrive(&s->empty[(*serial - 1) % STAGES]);
  }
  products_wait(z);
  barrier_arrive(&s->empty[(*serial - 1) % STAGES]);
}
