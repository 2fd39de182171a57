/* SPDX-License-Identifier: BSD-3-Clause
 * Scores of a tile by mma.sync (8.0).  A warp multiplies 16 rows by all items; all threads copy. */
#define PRECISION 2 /* TENSOR_F16 */
#include "mma.h"

static __device__ inline void bytes_order(char *to, const char *from, int bytes)
{
  for (int i = 16 * threadIdx.x; i < bytes; i += 16 * SCREEN_WARPS * WARP)
    async_copy16(to + i, from + i);
}

/* All threads begin to copy a stage of a pair.  Past the last stage, nothing is copied. */
static __device__ inline void stage_order(const struct screen_args *a, struct shared *s,
                                          const struct tile_pair *pair, int stage)
{
  if (stage < a->stages) {
    long long row = (long long)pair->row_tile * a->stages + stage;
    long long atom = (long long)pair->atom_tile * a->stages + stage;
    char *to = s->stage[stage % STAGES];
    bytes_order(to, a->rows + row * ROWS_BYTES, ROWS_BYTES);
    bytes_order(to + ROWS_BYTES, a->atoms + atom * (STAGE_BYTES - ROWS_BYTES),
                STAGE_BYTES - ROWS_BYTES);
  }
  async_commit();
}

static __device__ inline int stages_enter(const struct screen_args *a, struct shared *s)
{
  (void)a, (void)s;
  return 1;
}

static __device__ inline void tile_multiply(const struct screen_args *a, struct shared *s,
                                            float z[EIGHTS][4], struct tile_pair *pair, int *serial,
                                            const struct lane_rows *before)
{
  (void)serial;
#pragma unroll
  for (int j = 0; j < EIGHTS; j++)
#pragma unroll
    for (int i = 0; i < 4; i++) z[j][i] = 0;
  for (int i = 0; i < STAGES; i++) stage_order(a, s, pair, i);
  hits_append(a, before);
#pragma unroll 1
  for (int stage = 0; stage < a->stages; stage++) {
    ASYNC_WAIT(STAGES - 1);
    __syncthreads();
    stage_multiply(z, s->stage[stage % STAGES], s->stage[stage % STAGES] + ROWS_BYTES);
    __syncthreads();
    stage_order(a, s, pair, stage + STAGES);
  }
  pair_next(a, pair);
}
