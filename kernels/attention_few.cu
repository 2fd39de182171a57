/* SPDX-License-Identifier: BSD-3-Clause
 * attention_few: parts (N.27) of few rows of a head, all of them over one shard a block.
 *
 * grid    tasks, the longest first
 * block   WALK_THREADS: a thread has a position and all rows in inner products, then one or two
 *         columns and some rows in sums of values
 * shared  few_shared_bytes(): keys and values as they are stored, cells, queries, weights
 * sums    as in attention_tile; the first warp has the sums of weights
 *
 * -D HEAD_D, HEAD_DV, CELLS, CAPPED: walk.h; FEW: rows, few_rows()
 *
 * Keys of the next positions come while values of these are read, and the other way round.  Where
 * the cells of a shard are is looked up once, ahead of all copies. */
#include "walk.h"

enum {
  POSITIONS = few_positions(HEAD_D, HEAD_DV, CELLS), /* at a time */
  BLOCKS = POSITIONS / WALK_BLOCK,
  KEY_PITCH = few_pitch(HEAD_D, CELLS),
  VALUE_PITCH = few_pitch(HEAD_DV, CELLS),
  QUERY_COLUMNS = KEY_PITCH / CELL_BYTES,   /* zeros behind */
  PIECES = (HEAD_D * CELL_BYTES + 15) / 16, /* of 16 bytes, of a key */
  NUMBERS = 16 / CELL_BYTES,                /* of a piece */
  /* Threads along columns, and the rows that a thread has of them. */
  WIDE = HEAD_DV <= 32   ? 32
         : HEAD_DV <= 64 ? 64
                         : 128,
  COLUMNS = (HEAD_DV + WIDE - 1) / WIDE,
  TEAMS = WALK_THREADS / WIDE < FEW ? WALK_THREADS / WIDE : FEW,
  ROWS = FEW / TEAMS
};

struct shared {
  char k[POSITIONS][KEY_PITCH], v[POSITIONS][VALUE_PITCH];
  int cell[WALK_SHARD + WALK_BLOCK];
  float q[FEW][QUERY_COLUMNS];
  float u[FEW][POSITIONS];
  float weight[POSITIONS][FEW];
  float shrink[2][FEW]; /* of each block */
  int from[FEW], end[FEW];
};

struct walk {
  const struct attention_args *a;
  const struct walk_sequence *sequence;
  const struct walk_task *task;
  int begin, end; /* positions that some row sees of the shard */
  int first;      /* where the block begins that has the first of them */
  int rows;
};

/* 16 bytes of a cell, or fewer numbers and zeros. */
static __device__ inline void piece_order(char *to, const char *from, int columns, int piece)
{
  if (columns * CELL_BYTES % 16 == 0) {
    async_copy16(to, from);
    return;
  }
#pragma unroll
  for (int i = 0; i < NUMBERS; i++) {
    int there = piece * NUMBERS + i < columns;
    if (CELL_BYTES == 4)
      ((unsigned *)to)[i] = there ? ((const unsigned *)from)[i] : 0;
    else
      ((unsigned short *)to)[i] = there ? ((const unsigned short *)from)[i] : 0;
  }
}

/* Begin to copy positions first .. first + POSITIONS - 1, if there are any; a thread has the same
 * piece of every few.  The last one that is there stands in for those behind it, so that no copy
 * has a condition.  columns and pitch are constants. */
static __device__ inline void cells_order(const struct walk *w, const struct shared *s, char *to,
                                          int pitch, const void *cells, int columns, int first)
{
  const int bytes = columns * CELL_BYTES, pieces = (bytes + 15) / 16;
  const int wide = pieces <= 4 ? 4 : pieces <= 8 ? 8 : pieces <= 16 ? 16 : pieces <= 32 ? 32 : 64;
  int j = threadIdx.x / wide, piece = threadIdx.x % wide, stride = w->a->kv_heads * bytes;
  const char *head = (const char *)cells + (long long)w->task->kv_head * bytes + piece * 16;
  const int *cell = s->cell + (first - w->first) + j;
  if (first < w->end && (pieces == wide || piece < pieces))
#pragma unroll
    for (int i = 0; i < POSITIONS; i += WALK_THREADS / wide)
      piece_order(to + (j + i) * pitch + piece * 16, head + (long long)cell[i] * stride, columns,
                  piece);
  async_commit();
}

static __device__ inline void keys_order(const struct walk *w, struct shared *s, int first)
{
  cells_order(w, s, s->k[0], KEY_PITCH, w->a->k, HEAD_D, first);
}

static __device__ inline void values_order(const struct walk *w, struct shared *s, int first)
{
  cells_order(w, s, s->v[0], VALUE_PITCH, w->a->v, HEAD_DV, first);
}

static __device__ inline void walk_begin(struct walk *w, const struct attention_args *a,
                                         struct shared *s)
{
  w->a = a;
  w->task = a->tasks + blockIdx.x;
  w->sequence = a->sequences + w->task->sequence;
  w->rows = w->sequence->n_q * a->group - w->task->row;
  int shard = w->task->shard * WALK_SHARD;
  struct walk_row upper = row_find(a, w->sequence, w->task->kv_head, w->task->row);
  struct walk_row lower = row_find(a, w->sequence, w->task->kv_head, w->task->row + w->rows - 1);
  w->begin = max(upper.from < upper.end ? upper.from : 0, shard);
  w->end = max(min(max(lower.end, upper.end), shard + WALK_SHARD), w->begin);
  const int *table = a->table ? a->table + w->sequence->cells : 0;
  int plain = a->table ? 0 : (int)w->sequence->cells;
  w->first = w->begin / WALK_BLOCK * WALK_BLOCK;
#pragma unroll 4
  for (int j = threadIdx.x; w->first + j / POSITIONS * POSITIONS < w->end; j += WALK_THREADS)
    s->cell[j] = plain + cell_find(a, table, max(min(w->first + j, w->end - 1), w->begin));
}

static __device__ inline void queries_load(const struct walk *w, struct shared *s)
{
  const struct attention_args *a = w->a;
  for (int i = threadIdx.x; i < FEW * QUERY_COLUMNS; i += WALK_THREADS) {
    int r = i / QUERY_COLUMNS, c = i % QUERY_COLUMNS;
    float q = 0;
    if (r < w->rows && c < HEAD_D) {
      struct walk_row row = row_find(a, w->sequence, w->task->kv_head, w->task->row + r);
      q = a->q[row.at * HEAD_D + c];
    }
    s->q[r][c] = q;
  }
  for (int r = threadIdx.x; r < FEW; r += WALK_THREADS) {
    struct walk_row row = {0, 0, 0, 0};
    if (r < w->rows) row = row_find(a, w->sequence, w->task->kv_head, w->task->row + r);
    s->from[r] = max(row.from, w->begin);
    s->end[r] = max(min(row.end, w->end), s->from[r]);
  }
}

/* A piece of 16 bytes as numbers. */
static __device__ inline void piece_widen(const char *from, float out[NUMBERS])
{
  uint4 piece = *(const uint4 *)from;
  const unsigned words[4] = {piece.x, piece.y, piece.z, piece.w};
#pragma unroll
  for (int i = 0; i < 4; i++) {
    if (CELL_BYTES == 4)
      out[i] = __uint_as_float(words[i]);
    else
      out[2 * i] = widen(words[i] & 0xffff), out[2 * i + 1] = widen(words[i] >> 16);
  }
}

/* u <- the inner products of a position. */
static __device__ inline void products_make(const struct walk *w, struct shared *s, int position)
{
  float u[FEW] = {0};
#pragma unroll 2
  for (int piece = 0; piece < PIECES; piece++) {
    float k[NUMBERS];
    piece_widen(s->k[position] + piece * 16, k);
#pragma unroll
    for (int c = 0; c < NUMBERS; c += 4)
#pragma unroll
      for (int r = 0; r < FEW; r++) {
        float4 q = *(const float4 *)&s->q[r][piece * NUMBERS + c];
        u[r] = __fmaf_rn(q.x, k[c], u[r]);
        u[r] = __fmaf_rn(q.y, k[c + 1], u[r]);
        u[r] = __fmaf_rn(q.z, k[c + 2], u[r]);
        u[r] = __fmaf_rn(q.w, k[c + 3], u[r]);
      }
  }
#pragma unroll
  for (int r = 0; r < FEW; r++) {
#if CAPPED
    u[r] = tanh_any(__fmul_rn(u[r], w->a->inner));
#endif
    s->u[r][position] = u[r];
  }
}

static __device__ inline float warp_largest(float value)
{
#pragma unroll
  for (int step = WARP / 2; step > 0; step /= 2)
    value = larger(value, __shfl_xor_sync(FULL_WARP, value, step));
  return value;
}

/* A warp's row, block by block: weights of the positions from `first` on, UNSEEN where it does not
 * see them, and what the sums before each block are multiplied by.  *m: so far. */
static __device__ inline void weights_make(const struct walk *w, struct shared *s, int r, int first,
                                           float *m)
{
  int lane = threadIdx.x % WARP, from = s->from[r] - first, end = s->end[r] - first;
#pragma unroll
  for (int b = 0; b < BLOCKS; b++) {
    float u[2], exponent = w->a->exponent, shrink = 1;
    int seen[2], sees = from < (b + 1) * WALK_BLOCK && end > max(from, b * WALK_BLOCK);
#pragma unroll
    for (int i = 0; i < 2; i++) {
      int j = b * WALK_BLOCK + i * WARP + lane;
      seen[i] = j >= from && j < end;
      u[i] = seen[i] ? s->u[r][j] : MINUS_INFINITY;
    }
    float largest = warp_largest(larger(u[0], u[1]));
    if (sees) {
      float next = larger(*m, __fmul_rn(largest, exponent));
      shrink = exp2_any(__fsub_rn(*m, next));
      *m = next;
    }
#pragma unroll
    for (int i = 0; i < 2; i++) {
      float p = exp2_any(__fmaf_rn(u[i], exponent, -*m));
      s->weight[b * WALK_BLOCK + i * WARP + lane][r] = seen[i] ? p : UNSEEN;
    }
    if (lane == 0) s->shrink[b][r] = shrink;
  }
}

static __device__ inline float value_read(const struct shared *s, int j, int c)
{
  if (c >= HEAD_DV) return 0;
  if (CELLS == CELLS_F32) return ((const float *)s->v[j])[c];
  return widen(((const unsigned short *)s->v[j])[c]);
}

/* acc and l <- with positions j .. end - 1 of those that are here.  all: all rows see them. */
static __device__ inline void values_add(const struct shared *s, int j, int end, int all,
                                         float acc[ROWS][COLUMNS], float *l)
{
  int team = threadIdx.x / WIDE, column = threadIdx.x % WIDE, lane = threadIdx.x;
  if (team >= TEAMS) return;
#pragma unroll 4
  for (; j < end; j++) {
    float p[ROWS], value[COLUMNS];
#pragma unroll
    for (int r = 0; r < ROWS; r++) p[r] = s->weight[j][team * ROWS + r];
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) value[c] = value_read(s, j, column + c * WIDE);
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
      for (int c = 0; c < COLUMNS; c++)
        if (all || !(p[r] < 0)) acc[r][c] = __fmaf_rn(p[r], value[c], acc[r][c]);
    if (lane < WARP) {
      float mine = s->weight[j][lane % FEW];
      if (all || !(mine < 0)) *l = __fadd_rn(*l, mine);
    }
  }
}

/* The values of the positions from `first` on. */
static __device__ inline void values_walk(const struct walk *w, const struct shared *s, int first,
                                          float acc[ROWS][COLUMNS], float *l)
{
  int team = threadIdx.x / WIDE, count = min(w->end - first, (int)POSITIONS), all = 1;
#pragma unroll
  for (int r = 0; r < FEW; r++)
    all &= r >= w->rows || (s->from[r] <= first && s->end[r] >= first + count);
#pragma unroll
  for (int b = 0; b < BLOCKS; b++) {
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
      for (int c = 0; c < COLUMNS; c++)
        acc[r][c] = __fmul_rn(acc[r][c], s->shrink[b][team % TEAMS * ROWS + r]);
    if (threadIdx.x < WARP) *l = __fmul_rn(*l, s->shrink[b][threadIdx.x % FEW]);
    int end = min(count, (b + 1) * WALK_BLOCK);
    if (all)
      values_add(s, b * WALK_BLOCK, end, 1, acc, l);
    else
      values_add(s, b * WALK_BLOCK, end, 0, acc, l);
  }
}

static __device__ inline void parts_store(const struct walk *w, const struct shared *s,
                                          const float acc[ROWS][COLUMNS], float l,
                                          const float m[(FEW + WALK_WARPS - 1) / WALK_WARPS])
{
  const struct attention_args *a = w->a;
  int team = threadIdx.x / WIDE, column = threadIdx.x % WIDE;
  int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
  int shard = w->task->shard - w->sequence->first_shard;
#pragma unroll
  for (int r = 0; r < FEW; r++) {
    if (r >= w->rows || s->from[r] >= s->end[r]) continue;
    struct walk_row row = row_find(a, w->sequence, w->task->kv_head, w->task->row + r);
    long long part = row.part + shard;
    if (team == r / ROWS)
#pragma unroll
      for (int c = 0; c < COLUMNS; c++)
        if (column + c * WIDE < PART_COLUMNS)
          a->part[part * PART_COLUMNS + column + c * WIDE] = acc[r % ROWS][c];
    if (warp == r % WALK_WARPS && lane == 0) a->part_m[part] = m[r / WALK_WARPS];
    if (threadIdx.x == r) a->part_l[part] = l;
  }
}

extern "C" __global__ void __launch_bounds__(WALK_THREADS, 4)
    attention_few(const __grid_constant__ struct attention_args a)
{
  extern __shared__ __align__(16) char memory[];
  enum { TURNS = (FEW + WALK_WARPS - 1) / WALK_WARPS };
  struct shared *s = (struct shared *)memory;
  float acc[ROWS][COLUMNS] = {{0}}, l = 0, m[TURNS];
  struct walk w;
  int warp = threadIdx.x / WARP;
  for (int i = 0; i < TURNS; i++) m[i] = MINUS_INFINITY;
  walk_begin(&w, &a, s);
  __syncthreads();
  keys_order(&w, s, w.first);
  values_order(&w, s, w.first);
  queries_load(&w, s);
#pragma unroll 1
  for (int first = w.first; first < w.end; first += POSITIONS) {
    ASYNC_WAIT(1);
    __syncthreads();
    if ((int)threadIdx.x < POSITIONS) products_make(&w, s, threadIdx.x);
    __syncthreads();
    keys_order(&w, s, first + POSITIONS);
#pragma unroll
    for (int i = 0; i < TURNS; i++)
      if (warp + i * WALK_WARPS < FEW) weights_make(&w, s, warp + i * WALK_WARPS, first, &m[i]);
    ASYNC_WAIT(1);
    __syncthreads();
    values_walk(&w, s, first, acc, &l);
    __syncthreads();
    values_order(&w, s, first + POSITIONS);
  }
  ASYNC_WAIT(0);
  parts_store(&w, s, acc, l, m);
  tile_end(&a, w.task, w.sequence, FEW, s->cell);
}
