/* SPDX-License-Identifier: BSD-3-Clause
 * Functions that both kernels of attention share: the positions that a row sees, the cell of a
 * position, and the join of parts (attention_types.h).
 *
 * -D HEAD_D, HEAD_DV: columns of q and k, and of v; CELLS: CELLS_F32, CELLS_F16 or CELLS_BF16;
 *    CAPPED: 1: scores are capped by tanh; SUMS: SUMS_NONE, SUMS_KEPT or SUMS_OPEN */
#ifndef WALK_H
#define WALK_H

#include "async_copy.h"
#include "attention_types.h"
#include "functions.h"
#include "warp.h"

enum {
  CELL_BYTES = cells_bytes(CELLS),
  PART_COLUMNS = part_columns(HEAD_DV),
  LANE_COLUMNS = PART_COLUMNS / WARP, /* columns of a lane that joins parts */
  UNSEEN = -1, /* marks the weight of a position that a row does not see; weights are >= 0 */
#ifdef FEW
  JOINED = 8 /* parts that are read at a time */
#else
  JOINED = 4
#endif
};
#define MINUS_INFINITY __int_as_float(0xff800000)
#define NOT_A_NUMBER __int_as_float(0x7fc00000)

/* Row r of a head of k (attention_types.h). */
struct softmax_row {
  long long at;   /* index of its query and head, in q and out */
  int from, end;  /* it sees positions from .. end - 1; none if they are equal */
  int goes_on;    /* 1: it also sees positions of an earlier call, and continues their sums */
  long long part; /* its first part */
};

static __device__ inline struct softmax_row
row_find(const struct attention_args *a, const struct softmax_sequence *s, int kv_head, int r)
{
  int query = r / a->group, head = kv_head * a->group + r % a->group;
  int p = s->at + query, end = s->n_kv;
  struct softmax_row row = {(s->q + query) * a->heads + head, 0, 0, s->goes_on,
                            s->part + ((long long)query * a->heads + head) * s->shards};
  if (a->window) row.from = max(p - a->window + 1, 0), row.goes_on &= p - a->window + 1 < 0;
  if (a->causal)
    end = p + 1;
  else if (a->window)
    end = p + a->window;
  row.end = max(min(end, s->n_kv), row.from);
  if (row.end == row.from) row.from = row.end = 0;
  return row;
}

/* The cell of a position.  Without a table it is counted from the sequence's cell of position 0. */
static __device__ inline int cell_find(const struct attention_args *a, const int *table,
                                       int position)
{
  if (!a->table) return position;
  int entry = __umulhi(2u * position, a->magic) >> a->shift;
  return __ldg(table + entry) * a->size + (position - entry * a->size);
}

static __device__ inline float widen(unsigned bits)
{
  float out;
  if (CELLS == CELLS_BF16) return __int_as_float(bits << 16);
  asm("cvt.f32.f16 %0, %1;" : "=f"(out) : "h"((unsigned short)bits));
  return out;
}

/* Store the results of a row, from its sums.  A lane has some columns of the sums. */
static __device__ inline void row_store(const struct attention_args *a,
                                        const struct softmax_row *row, const float *sum, float m,
                                        float l)
{
  int lane = threadIdx.x % WARP;
  int sees = row->from < row->end, valid = fabsf(m) < __int_as_float(KEY_INFINITE);
#pragma unroll
  for (int c = 0; c < LANE_COLUMNS; c++) {
    float out = !sees ? 0 : valid ? __fdiv_rn(sum[c], l) : NOT_A_NUMBER;
    if (out != out) out = NOT_A_NUMBER;
    if (c * WARP + lane < HEAD_DV) a->out[row->at * HEAD_DV + c * WARP + lane] = out;
  }
  float lse = __fmaf_rn(m, 0x1.62e430p-1f, log_any(l));
  if (!valid || lse != lse) lse = NOT_A_NUMBER;
  if (lane == 0) a->lse[row->at] = sees ? lse : MINUS_INFINITY;
}

/* Join the parts of a row: l, and a lane's columns, are summed in ascending order of shards.  With
 * SUMS_OPEN the stored sums are continued if the row sees earlier positions (goes_on). */
static __device__ inline void parts_join(const struct attention_args *a,
                                         const struct softmax_row *row,
                                         const struct softmax_sequence *s)
{
  int lane = threadIdx.x % WARP, goes_on = SUMS == SUMS_OPEN && row->goes_on;
  float sum[LANE_COLUMNS] = {0}, l = 0, m = MINUS_INFINITY;
  int first = row->from / WALK_SHARD, end = (row->end + WALK_SHARD - 1) / WALK_SHARD;
  long long part = row->part - s->first_shard;
  float *open = a->out + row->at * sum_columns(HEAD_DV) + lane; /* for SUMS_OPEN only */
  if (goes_on) {
    m = a->sum_m[row->at], l = a->sum_l[row->at];
#pragma unroll
    for (int c = 0; c < LANE_COLUMNS; c++)
      if (c * WARP + lane < HEAD_DV) sum[c] = open[c * WARP];
  }
#pragma unroll 1
  for (int base = first; base < end; base += WARP) {
    int count = min(end - base, (int)WARP), there = lane < count;
    long long mine = part + base + lane;
    float m_part = there ? __ldcg(a->part_m + mine) : MINUS_INFINITY;
    float l_part = there ? __ldcg(a->part_l + mine) : 0, most = m_part;
#pragma unroll
    for (int step = 1; step < WARP; step *= 2) {
      float other = __shfl_up_sync(FULL_WARP, most, step);
      if (lane >= step) most = larger(other, most);
    }
    if (base > first || goes_on) most = larger(m, most);
    float before = __shfl_up_sync(FULL_WARP, most, 1);
    if (lane == 0) before = m;
    float own = exp2_any(__fsub_rn(before, most)), other = exp2_any(__fsub_rn(m_part, most));
    m = __shfl_sync(FULL_WARP, most, count - 1);
#pragma unroll JOINED
    for (int i = 0; i < count; i++) {
      float keep = __shfl_sync(FULL_WARP, own, i), take = __shfl_sync(FULL_WARP, other, i);
      float more = __shfl_sync(FULL_WARP, l_part, i);
      int begins = base + i == first && !goes_on;
      l = begins ? more : __fmaf_rn(more, take, __fmul_rn(l, keep));
#pragma unroll
      for (int c = 0; c < LANE_COLUMNS; c++) {
        float value = __ldcg(a->part + (part + base + i) * PART_COLUMNS + c * WARP + lane);
        sum[c] = begins ? value : __fmaf_rn(value, take, __fmul_rn(sum[c], keep));
      }
    }
  }
  if (SUMS != SUMS_OPEN) row_store(a, row, sum, m, l);
#pragma unroll
  for (int c = 0; c < LANE_COLUMNS; c++)
    if (SUMS == SUMS_OPEN && c * WARP + lane < HEAD_DV) open[c * WARP] = sum[c];
  __syncwarp();
  if (SUMS != SUMS_NONE && lane == 0) a->sum_m[row->at] = m, a->sum_l[row->at] = l;
}

/* Called by all threads of a block after they have stored the parts of a task.  The block that ends
 * the last task of a tile joins the parts of the tile's rows. */
static __device__ inline void tile_end(const struct attention_args *a, const struct softmax_task *t,
                                       const struct softmax_sequence *s, int rows)
{
  int is_last = 0;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    is_last = atomicAdd(a->done + t->tile, 1) == t->tasks - 1;
    if (is_last) __threadfence();
  }
  if (!__syncthreads_or(is_last)) return;
  if (threadIdx.x == 0) a->done[t->tile] = 0;
  int count = min(rows, s->n_q * a->group - t->row);
#pragma unroll 1
  for (int r = threadIdx.x / WARP; r < count; r += WALK_WARPS) {
    struct softmax_row row = row_find(a, s, t->kv_head, t->row + r);
    parts_join(a, &row, s);
  }
}

#endif
