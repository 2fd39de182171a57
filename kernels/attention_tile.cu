/* SPDX-License-Identifier: BSD-3-Clause
 * attention_tile: parts (N.27) of a head that has many rows; a block has a tile of rows and one
 * shard.
 *
 * grid    tasks, the longest first
 * block   WALK_THREADS.  A warp has 16 rows.  For products a lane has 4 rows by 8 positions; for
 *         values 4 rows by every eighth group of 4 columns
 * shared  tile_shared_bytes(HEAD_D): queries by columns, two stages, weights of 32 positions
 * sums    each chain stays in one lane: inner products over columns, values over positions; the sum
 *         of weights of a row is a chain of the lane that owns the row
 *
 * -D HEAD_D, HEAD_DV, CELLS, CAPPED: see walk.h
 *
 * Queries are read as vectors over rows, and keys as vectors over columns.  If both were vectors
 * over columns, the compiler would emit a lane's chain as one run of dependent fma. */
#include "attention_stages.h"

/* Lanes go along rows, so that there are no bank conflicts. */
static __device__ inline void queries_load(const struct walk *w, struct shared *s)
{
  const struct attention_args *a = w->a;
  int r = threadIdx.x % TILE_ROWS, last = w->sequence->n_q * a->group - 1;
  struct softmax_row row = row_find(a, w->sequence, w->task->kv_head, min(w->task->row + r, last));
  const float *q = a->q + row.at * HEAD_D;
#pragma unroll 4
  for (int c = threadIdx.x / TILE_ROWS * 4; c < COLUMNS; c += WALK_THREADS / TILE_ROWS * 4) {
    float4 four = make_float4(0, 0, 0, 0);
    if (HEAD_D % 4 == 0)
      four = __ldg((const float4 *)(q + c));
    else
      four = make_float4(q[c], c + 1 < HEAD_D ? q[c + 1] : 0, c + 2 < HEAD_D ? q[c + 2] : 0,
                         c + 3 < HEAD_D ? q[c + 3] : 0);
    s->q[c][r] = four.x;
    s->q[c + 1][r] = four.y;
    s->q[c + 2][r] = four.z;
    s->q[c + 3][r] = four.w;
  }
}

/* Find the positions that rows see.  Rows past the last row get the limits of the last row, so that
 * they need no mask; their results are not stored. */
static __device__ inline void rows_limits_find(struct walk *w)
{
  const struct attention_args *a = w->a;
  int lane = threadIdx.x % WARP, last = w->sequence->n_q * a->group - 1;
  w->group = lane % 4, w->spot = lane / 4;
  int own = 4 * w->group + 2 * (w->spot % 2) + w->spot / 2 % 2;
  int r = min(w->task->row + (int)(threadIdx.x / WARP) * 16 + own, last);
  struct softmax_row row = row_find(a, w->sequence, w->task->kv_head, r);
  w->from = max(row.from, w->begin), w->to = max(min(row.end, w->end), w->from);
  w->m = MINUS_INFINITY, w->l = 0;
  w->all_from = __reduce_max_sync(FULL_WARP, w->from);
  w->all_end = __reduce_min_sync(FULL_WARP, w->to);
  w->any_from = __reduce_min_sync(FULL_WARP, w->from < w->to ? w->from : w->end);
  w->any_end = __reduce_max_sync(FULL_WARP, w->from < w->to ? w->to : w->begin);
}

/* The lane that owns row r of this lane's group.  The owner keeps m and l of the row. */
static __device__ inline int owner(const struct walk *w, int r)
{
  return w->group + 4 * (r / 2) + 8 * (r % 2);
}

/* u += inner products of this lane's rows and positions over the columns of a stage. */
static __device__ inline void products_add(const struct walk *w, const struct shared *s, int slot,
                                           int first, float u[ROWS][SPOTS])
{
  int pieces = min(TILE_CHUNK, COLUMNS - first) / 4;
  const float *q = &s->q[first][threadIdx.x / WARP * 16 + 4 * w->group];
  const char *stages = (const char *)s->stage; /* a piece changes only bits 4 to 7 of the address */
  int at = ((slot * TILE_STAGE + w->spot * TILE_CHUNK) | w->spot * 4) * 4;
#pragma unroll 2
  for (int piece = 0; piece < pieces; piece++) {
    float4 key[SPOTS];
#pragma unroll
    for (int i = 0; i < SPOTS; i++)
      key[i] = *(const float4 *)(stages + (at ^ piece << 4) + i * 8 * TILE_CHUNK * 4);
#pragma unroll
    for (int c = 0; c < 4; c++) {
      float4 rows = *(const float4 *)(q + (piece * 4 + c) * TILE_ROWS);
#pragma unroll
      for (int i = 0; i < SPOTS; i++) {
        float x = c == 0 ? key[i].x : c == 1 ? key[i].y : c == 2 ? key[i].z : key[i].w;
        u[0][i] = __fmaf_rn(rows.x, x, u[0][i]);
        u[1][i] = __fmaf_rn(rows.y, x, u[1][i]);
        u[2][i] = __fmaf_rn(rows.z, x, u[2][i]);
        u[3][i] = __fmaf_rn(rows.w, x, u[3][i]);
      }
    }
  }
}

/* End a chain of columns.  After the first of two chains, u starts again; after the second it
 * becomes their sum.  Half of the first chain is kept in shared memory, where weights are stored
 * later, to save registers. */
static __device__ inline void chain_end(int stage, float *spare, float before[ROWS / 2][SPOTS],
                                        float u[ROWS][SPOTS])
{
  int ends_first = stage == WALK_CHAIN / TILE_CHUNK - 1, ends_last = stage == KEY_STAGES - 1;
  spare += threadIdx.x % WARP;
#pragma unroll
  for (int r = 0; r < ROWS / 2; r++)
#pragma unroll
    for (int i = 0; i < SPOTS; i++) {
      float *low = &u[r][i], *high = &u[r + ROWS / 2][i], *place = spare + (r * SPOTS + i) * WARP;
      if (ends_first) *place = *low, before[r][i] = *high, *low = *high = 0;
      if (ends_last) *low = __fadd_rn(*place, *low), *high = __fadd_rn(before[r][i], *high);
    }
}

/* The maximum of the row that this lane owns, from each lane's maxima of its rows.  Lanes exchange
 * two of four maxima, then one of two. */
static __device__ inline float largest_gather(const struct walk *w, const float most[ROWS])
{
  int high = w->spot % 2, odd = w->spot / 2 % 2;
  float two[2], one;
#pragma unroll
  for (int i = 0; i < 2; i++) {
    float other = __shfl_xor_sync(FULL_WARP, high ? most[i] : most[i + 2], 4);
    two[i] = larger(high ? most[i + 2] : most[i], other);
  }
  one = __shfl_xor_sync(FULL_WARP, odd ? two[0] : two[1], 8);
  one = larger(odd ? two[1] : two[0], one);
  return larger(one, __shfl_xor_sync(FULL_WARP, one, 16));
}

/* Bit r * SPOTS + i: this lane's row r sees its position i of the block. */
static __device__ inline unsigned seen_find(const struct walk *w, int block)
{
  unsigned seen = 0;
#pragma unroll
  for (int r = 0; r < ROWS; r++) {
    int from = __shfl_sync(FULL_WARP, w->from, owner(w, r)) - block * WALK_BLOCK - w->spot;
    int to = __shfl_sync(FULL_WARP, w->to, owner(w, r)) - block * WALK_BLOCK - w->spot;
#pragma unroll
    for (int i = 0; i < SPOTS; i++)
      if (8 * i >= from && 8 * i < to) seen |= 1u << (r * SPOTS + i);
  }
  return seen;
}

/* u <- the weights; UNSEEN if a row does not see a position.  m becomes the new maximum, and l and
 * acc are rescaled to it.  masked is a constant. */
static __device__ inline void weights_make(struct walk *w, int block, unsigned seen, int masked,
                                           float u[ROWS][SPOTS], float acc[ROWS][4 * GROUPS])
{
  float most[ROWS], m[ROWS];
#if CAPPED
#pragma unroll
  for (int r = 0; r < ROWS; r++)
#pragma unroll
    for (int i = 0; i < SPOTS; i++) u[r][i] = tanh_any(__fmul_rn(u[r][i], w->a->inner));
#endif
  if (masked) {
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
      for (int i = 0; i < SPOTS; i++)
        if (!(seen >> (r * SPOTS + i) & 1)) u[r][i] = MINUS_INFINITY;
  }
#pragma unroll
  for (int r = 0; r < ROWS; r++) {
    most[r] = u[r][0];
#pragma unroll
    for (int i = 1; i < SPOTS; i++) most[r] = larger(most[r], u[r][i]);
  }
  float exponent = w->a->exponent, before = w->m;
  int sees = w->from < (block + 1) * WALK_BLOCK && w->to > max(w->from, block * WALK_BLOCK);
  float next = larger(before, __fmul_rn(largest_gather(w, most), exponent));
  w->m = sees ? next : before;
  float shrink = sees ? exp2_any(__fsub_rn(before, next)) : 1;
  w->l = __fmul_rn(w->l, shrink);
#pragma unroll
  for (int r = 0; r < ROWS; r++) m[r] = __shfl_sync(FULL_WARP, w->m, owner(w, r));
  if (__any_sync(FULL_WARP, shrink != 1)) {
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
      float factor = __shfl_sync(FULL_WARP, shrink, owner(w, r));
#pragma unroll
      for (int c = 0; c < 4 * GROUPS; c++) acc[r][c] = __fmul_rn(acc[r][c], factor);
    }
  }
  int far = 0;
#pragma unroll
  for (int r = 0; r < ROWS; r++)
#pragma unroll
    for (int i = 0; i < SPOTS; i++) {
      u[r][i] = __fmaf_rn(u[r][i], exponent, -m[r]);
      if (masked && !(seen >> (r * SPOTS + i) & 1)) u[r][i] = 0;
      far |= !(fabsf(u[r][i]) <= EXP2_NEAR);
    }
  if (__any_sync(FULL_WARP, far)) {
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
      for (int i = 0; i < SPOTS; i++) u[r][i] = exp2_any(u[r][i]);
  } else {
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
      for (int i = 0; i < SPOTS; i++) u[r][i] = exp2_near(u[r][i]);
  }
  if (masked) {
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
      for (int i = 0; i < SPOTS; i++)
        if (!(seen >> (r * SPOTS + i) & 1)) u[r][i] = UNSEEN;
  }
}

/* Store the weights of half of a block's positions for all lanes of the warp. */
static __device__ inline void weights_store(const struct walk *w, float to[HALF][16], int half,
                                            const float u[ROWS][SPOTS])
{
  __syncwarp();
#pragma unroll
  for (int i = 0; i < SPOTS; i++)
    if (i / (SPOTS / 2) == half)
      *(float4 *)&to[i % (SPOTS / 2) * 8 + w->spot][4 * w->group] =
          make_float4(u[0][i], u[1][i], u[2][i], u[3][i]);
  __syncwarp();
}

/* Add `count` positions, with their weights and values, to acc and l. */
static __device__ inline void values_add(struct walk *w, const float weight[][16],
                                         const float *values, int count, int masked,
                                         float acc[ROWS][4 * GROUPS])
{
  const float *v = values + 4 * w->spot, *p = &weight[0][4 * w->group];
  const float *own = &weight[0][4 * w->group + 2 * (w->spot % 2) + w->spot / 2 % 2];
  float l = w->l;
  if (masked) {
#pragma unroll 1
    for (int j = 0; j < count; j++) {
      float4 four = *(const float4 *)(p + j * 16);
      float rows[ROWS] = {four.x, four.y, four.z, four.w}, mine = own[j * 16];
      if (!(mine < 0)) l = __fadd_rn(l, mine);
#pragma unroll
      for (int g = 0; g < GROUPS; g++) {
        float4 value = *(const float4 *)(v + j * PART_COLUMNS + g * 32);
#pragma unroll
        for (int r = 0; r < ROWS; r++)
          if (!(rows[r] < 0)) {
            acc[r][4 * g] = __fmaf_rn(rows[r], value.x, acc[r][4 * g]);
            acc[r][4 * g + 1] = __fmaf_rn(rows[r], value.y, acc[r][4 * g + 1]);
            acc[r][4 * g + 2] = __fmaf_rn(rows[r], value.z, acc[r][4 * g + 2]);
            acc[r][4 * g + 3] = __fmaf_rn(rows[r], value.w, acc[r][4 * g + 3]);
          }
      }
    }
  } else {
#pragma unroll UNROLLED
    for (int j = 0; j < count; j++) {
      float4 four = *(const float4 *)(p + j * 16);
      float rows[ROWS] = {four.x, four.y, four.z, four.w};
      l = __fadd_rn(l, own[j * 16]);
#pragma unroll
      for (int g = 0; g < GROUPS; g++) {
        float4 value = *(const float4 *)(v + j * PART_COLUMNS + g * 32);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
          acc[r][4 * g] = __fmaf_rn(rows[r], value.x, acc[r][4 * g]);
          acc[r][4 * g + 1] = __fmaf_rn(rows[r], value.y, acc[r][4 * g + 1]);
          acc[r][4 * g + 2] = __fmaf_rn(rows[r], value.z, acc[r][4 * g + 2]);
          acc[r][4 * g + 3] = __fmaf_rn(rows[r], value.w, acc[r][4 * g + 3]);
        }
      }
    }
  }
  w->l = l;
}

/* Add a block of positions; *slot: the stage that is read next. */
static __device__ inline void block_accumulate(struct walk *w, struct shared *s, int block,
                                               int *slot, float acc[ROWS][4 * GROUPS])
{
  enum { UNIT = POSITIONS < HALF ? POSITIONS : HALF };
  int first = block * WALK_BLOCK, warp = threadIdx.x / WARP;
  int sees = w->any_from < first + WALK_BLOCK && w->any_end > max(w->any_from, first);
  int masked = w->all_from > first || w->all_end < first + WALK_BLOCK;
  float u[ROWS][SPOTS] = {{0}};
  float before[ROWS / 2][SPOTS];
#pragma unroll 1
  for (int stage = 0; stage < STAGES; stage++) {
    int begin = (stage - KEY_STAGES) * POSITIONS;
    stage_wait();
    if (sees && stage < KEY_STAGES) {
      products_add(w, s, *slot, stage * TILE_CHUNK, u);
      if (CHAINS == 2) chain_end(stage, s->weight[warp][0], before, u);
    }
    if (sees && stage >= KEY_STAGES)
#pragma unroll 1
      for (int at = begin; at < begin + POSITIONS; at += UNIT) {
        if (at % HALF == 0) weights_store(w, s->weight[warp], at / HALF, u);
        values_add(w, s->weight[warp] + at % HALF, s->stage[*slot] + at % POSITIONS * PART_COLUMNS,
                   UNIT, masked, acc);
      }
    stage_done(w, s);
    *slot ^= 1;
    if (!sees || stage != KEY_STAGES - 1) continue;
    if (masked)
      weights_make(w, block, seen_find(w, block), 1, u, acc);
    else
      weights_make(w, block, 0, 0, u, acc);
  }
}

static __device__ inline void parts_store(const struct walk *w, const float acc[ROWS][4 * GROUPS])
{
  const struct attention_args *a = w->a;
  int first = w->task->row + threadIdx.x / WARP * 16 + 4 * w->group;
  int rows = w->sequence->n_q * a->group, own = 2 * (w->spot % 2) + w->spot / 2 % 2;
#pragma unroll
  for (int r = 0; r < ROWS; r++) {
    int from = __shfl_sync(FULL_WARP, w->from, owner(w, r));
    int to = __shfl_sync(FULL_WARP, w->to, owner(w, r));
    if (first + r >= rows || from >= to) continue;
    struct softmax_row row = row_find(a, w->sequence, w->task->kv_head, first + r);
    long long part = row.part + w->task->shard - w->sequence->first_shard;
#pragma unroll
    for (int g = 0; g < GROUPS; g++)
      *(float4 *)(a->part + part * PART_COLUMNS + g * 32 + 4 * w->spot) =
          make_float4(acc[r][4 * g], acc[r][4 * g + 1], acc[r][4 * g + 2], acc[r][4 * g + 3]);
    if (r == own && w->spot < 4) a->part_m[part] = w->m, a->part_l[part] = w->l;
  }
}

/* Begin a task.  begin and end: the positions of the shard that some row of the tile sees.  Both
 * limits of a row ascend with the row, so the limits of the first and the last row are enough. */
static __device__ inline void softmax_begin(struct walk *w, const struct attention_args *a)
{
  w->a = a;
  w->task = a->tasks + blockIdx.x;
  w->sequence = a->sequences + w->task->sequence;
  int last = min(w->task->row + TILE_ROWS, w->sequence->n_q * a->group) - 1;
  struct softmax_row upper = row_find(a, w->sequence, w->task->kv_head, w->task->row);
  struct softmax_row lower = row_find(a, w->sequence, w->task->kv_head, last);
  int from = upper.from < upper.end ? upper.from : 0;
  w->begin = max(from, w->task->shard * WALK_SHARD);
  w->end = max(min(max(lower.end, upper.end), (w->task->shard + 1) * WALK_SHARD), w->begin);
  long long cells = a->table ? 0 : w->sequence->cells * a->kv_heads;
  w->k = (const char *)a->k + (cells + w->task->kv_head) * HEAD_D * CELL_BYTES;
  w->v = (const char *)a->v + (cells + w->task->kv_head) * HEAD_DV * CELL_BYTES;
  w->block = w->begin / WALK_BLOCK, w->which = w->slot = 0;
}

extern "C" __global__ void __launch_bounds__(WALK_THREADS, BLOCKS)
    attention_tile(const __grid_constant__ struct attention_args a)
{
  extern __shared__ __align__(16) char memory[];
  struct shared *s = (struct shared *)memory;
  float acc[ROWS][4 * GROUPS] = {{0}};
  struct walk w;
  int slot = 0;
  softmax_begin(&w, &a);
#pragma unroll 1
  for (int i = 0; i < 2; i++) stage_order(&w, s);
  queries_load(&w, s);
  rows_limits_find(&w);
#pragma unroll 1
  for (int b = w.begin / WALK_BLOCK; b * WALK_BLOCK < w.end; b++)
    block_accumulate(&w, s, b, &slot, acc);
  ASYNC_WAIT(0);
  parts_store(&w, acc);
  tile_end(&a, w.task, w.sequence, TILE_ROWS);
}
