/* SPDX-License-Identifier: BSD-3-Clause
 * attention_few: parts (N.27) of few rows of a head, all of them over one shard a block.
 *
 * grid    tasks, the longest first
 * block   WALK_THREADS: the first half makes weights of a block of positions, a thread two of them
 *         with half of the rows, then a warp a row; the other half adds values of the block
 *         before, a thread one to four columns with all rows
 * shared  few_shared_bytes(): keys and values as they are stored, cells, queries, weights
 * sums    as in attention_tile; the last warp has the sums of weights
 *
 * -D HEAD_D, HEAD_DV, CELLS, CAPPED: walk.h; FEW: rows, few_rows()
 *
 * Each half copies what it reads next as soon as it has read what is there: several blocks share a
 * multiprocessor, and some of them compute while others wait.  Where the cells of a shard are is
 * looked up once, ahead of all copies. */
#include "walk.h"

enum {
  HALF = WALK_THREADS / 2, /* threads; WALK_BLOCK positions */
  KEY_PITCH = few_pitch(HEAD_D, CELLS),
  VALUE_PITCH = few_pitch(HEAD_DV, CELLS),
  QUERY_COLUMNS = KEY_PITCH / CELL_BYTES,   /* zeros behind */
  PIECES = (HEAD_D * CELL_BYTES + 15) / 16, /* of 16 bytes, of a key */
  NUMBERS = 16 / CELL_BYTES,                /* of a piece */
  COLUMNS = HEAD_DV <= HALF       ? 1
            : HEAD_DV <= 2 * HALF ? 2
                                  : 4, /* of values, a thread */
  BLOCKS = HEAD_DV > 128 ? 2
           : FEW <= 4    ? 5
                         : 4, /* a multiprocessor */
  TURNS = (FEW + 1) / 2    /* rows a warp that makes weights */
};

struct shared {
  char k[WALK_BLOCK][KEY_PITCH], v[WALK_BLOCK][VALUE_PITCH];
  int cell[WALK_SHARD];
  float q[FEW][QUERY_COLUMNS];
  float u[FEW][WALK_BLOCK];
  float weight[2][WALK_BLOCK][FEW]; /* of a block, and of the one before */
  float shrink[2][FEW];
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

/* Begin to copy a block of positions from `first` on, if there are any; a thread of a half has the
 * same piece of every few.  The last one that is there stands in for those behind it, so that no
 * copy has a condition.  columns and pitch are constants. */
static __device__ inline void cells_order(const struct walk *w, const struct shared *s, char *to,
                                          int pitch, const void *cells, int columns, int first)
{
  const int bytes = columns * CELL_BYTES, pieces = (bytes + 15) / 16;
  const int wide = pieces <= 4 ? 4 : pieces <= 8 ? 8 : pieces <= 16 ? 16 : pieces <= 32 ? 32 : 64;
  int thread = threadIdx.x % HALF, j = thread / wide, piece = thread % wide;
  int stride = w->a->kv_heads * bytes;
  const char *head = (const char *)cells + (long long)w->task->kv_head * bytes + piece * 16;
  const int *cell = s->cell + (first - w->first) + j;
  if (first < w->end && (pieces == wide || piece < pieces))
#pragma unroll 8
    for (int i = 0; i < WALK_BLOCK; i += HALF / wide)
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
  for (int j = threadIdx.x; w->first + j / WALK_BLOCK * WALK_BLOCK < w->end; j += WALK_THREADS)
    s->cell[j] = plain + cell_find(a, table, max(min(w->first + j, w->end - 1), w->begin));
}

static __device__ inline void queries_load(const struct walk *w, struct shared *s)
{
  const struct attention_args *a = w->a;
#pragma unroll
  for (int r = 0; r < FEW; r++) {
    struct walk_row row = {0, 0, 0, 0};
    int there = r < w->rows;
    if (there) row = row_find(a, w->sequence, w->task->kv_head, w->task->row + r);
    const float *q = a->q + row.at * HEAD_D;
    for (int c = threadIdx.x; c < QUERY_COLUMNS; c += WALK_THREADS)
      s->q[r][c] = there && c < HEAD_D ? q[c] : 0;
    if (threadIdx.x == 0) {
      s->from[r] = max(row.from, w->begin);
      s->end[r] = max(min(row.end, w->end), s->from[r]);
    }
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

/* u <- the inner products of a thread's positions: of two with half of the rows, so that what is
 * read of a query serves both; of one with a single row. */
static __device__ inline void products_make(const struct walk *w, struct shared *s)
{
  enum { TWO = FEW > 1, ROWS = TWO ? FEW / 2 : 1, SPOTS = TWO ? 2 : 1 };
  int position = TWO ? threadIdx.x % WARP : threadIdx.x, row = TWO ? threadIdx.x / WARP * ROWS : 0;
  float u[SPOTS][ROWS] = {{0}};
#pragma unroll 2
  for (int piece = 0; piece < PIECES; piece++) {
    float k[SPOTS][NUMBERS];
#pragma unroll
    for (int i = 0; i < SPOTS; i++) piece_widen(s->k[position + i * WARP] + piece * 16, k[i]);
#pragma unroll
    for (int c = 0; c < NUMBERS; c += 4)
#pragma unroll
      for (int r = 0; r < ROWS; r++) {
        float4 q = *(const float4 *)&s->q[row + r][piece * NUMBERS + c];
#pragma unroll
        for (int i = 0; i < SPOTS; i++) {
          u[i][r] = __fmaf_rn(q.x, k[i][c], u[i][r]);
          u[i][r] = __fmaf_rn(q.y, k[i][c + 1], u[i][r]);
          u[i][r] = __fmaf_rn(q.z, k[i][c + 2], u[i][r]);
          u[i][r] = __fmaf_rn(q.w, k[i][c + 3], u[i][r]);
        }
      }
  }
#pragma unroll
  for (int i = 0; i < SPOTS; i++)
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
#if CAPPED
      u[i][r] = tanh_any(__fmul_rn(u[i][r], w->a->inner));
#endif
      s->u[row + r][position + i * WARP] = u[i][r];
    }
}

static __device__ inline float warp_largest(float value)
{
#pragma unroll
  for (int step = WARP / 2; step > 0; step /= 2)
    value = larger(value, __shfl_xor_sync(FULL_WARP, value, step));
  return value;
}

/* A warp's row: weights of a block of positions from `first` on, UNSEEN where it does not see them,
 * and what the sums before are multiplied by.  *m: so far. */
static __device__ inline void weights_make(const struct walk *w, struct shared *s, int r, int first,
                                           int turn, float *m)
{
  int lane = threadIdx.x % WARP, from = s->from[r] - first, end = s->end[r] - first;
  int sees = from < WALK_BLOCK && end > max(from, 0), seen[2];
  float u[2], exponent = w->a->exponent, shrink = 1;
#pragma unroll
  for (int i = 0; i < 2; i++) {
    int j = i * WARP + lane;
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
    s->weight[turn][i * WARP + lane][r] = seen[i] ? p : UNSEEN;
  }
  if (lane == 0) s->shrink[turn][r] = shrink;
}

/* The columns of a thread, as numbers; those behind the last one are anything. */
static __device__ inline void values_read(const char *from, float out[COLUMNS])
{
#pragma unroll
  for (int c = 0; c < COLUMNS; c++) {
    if (CELLS == CELLS_F32)
      out[c] = ((const float *)from)[c];
    else if (COLUMNS == 1)
      out[c] = widen(*(const unsigned short *)from);
    else
      out[c] = widen(((const unsigned *)from)[c / 2] >> c % 2 * 16 & 0xffff);
  }
}

/* acc and l <- with the first `count` positions of a block.  all: all rows see them. */
static __device__ inline void values_add(const struct shared *s, int turn, int count, int all,
                                         float acc[FEW][COLUMNS], float *l)
{
  const char *v = s->v[0] + threadIdx.x % HALF * COLUMNS * CELL_BYTES;
  const float *weight = s->weight[turn][0], *own = weight + threadIdx.x % FEW;
  int sums = threadIdx.x >= WALK_THREADS - WARP;
#pragma unroll 8
  for (int j = 0; j < count; j++) {
    float p[FEW], value[COLUMNS];
#pragma unroll
    for (int r = 0; r < FEW; r++) p[r] = weight[j * FEW + r];
    values_read(v + j * VALUE_PITCH, value);
#pragma unroll
    for (int r = 0; r < FEW; r++)
#pragma unroll
      for (int c = 0; c < COLUMNS; c++)
        if (all || !(p[r] < 0)) acc[r][c] = __fmaf_rn(p[r], value[c], acc[r][c]);
    if (sums) {
      float mine = own[j * FEW];
      if (all || !(mine < 0)) *l = __fadd_rn(*l, mine);
    }
  }
}

/* The values of the block of positions from `first` on. */
static __device__ inline void values_walk(const struct walk *w, const struct shared *s, int first,
                                          int turn, float acc[FEW][COLUMNS], float *l)
{
  int count = min(w->end - first, (int)WALK_BLOCK), all = 1;
#pragma unroll
  for (int r = 0; r < FEW; r++) {
    all &= r >= w->rows || (s->from[r] <= first && s->end[r] >= first + count);
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) acc[r][c] = __fmul_rn(acc[r][c], s->shrink[turn][r]);
  }
  *l = __fmul_rn(*l, s->shrink[turn][threadIdx.x % FEW]);
  if (all && count == WALK_BLOCK)
    values_add(s, turn, WALK_BLOCK, 1, acc, l);
  else
    values_add(s, turn, count, 0, acc, l);
}

/* What each half has of the parts. */
static __device__ inline void parts_store(const struct walk *w, const struct shared *s,
                                          const float acc[FEW][COLUMNS], float l,
                                          const float m[TURNS])
{
  const struct attention_args *a = w->a;
  int thread = (int)threadIdx.x - HALF, column = thread * COLUMNS, lane = threadIdx.x % WARP;
  int shard = w->task->shard - w->sequence->first_shard;
#pragma unroll
  for (int r = 0; r < FEW; r++) {
    if (r >= w->rows || s->from[r] >= s->end[r]) continue;
    struct walk_row row = row_find(a, w->sequence, w->task->kv_head, w->task->row + r);
    long long part = row.part + shard;
#pragma unroll
    for (int c = 0; c < COLUMNS; c++)
      if (thread >= 0 && column + c < PART_COLUMNS)
        a->part[part * PART_COLUMNS + column + c] = acc[r][c];
    if ((int)threadIdx.x == r % 2 * WARP) a->part_m[part] = m[r / 2];
    if (threadIdx.x >= WALK_THREADS - WARP && lane == r) a->part_l[part] = l;
  }
}

/* One half of the threads waits for itself. */
static __device__ inline void half_sync(int half)
{
  asm volatile("bar.sync %0, %1;" ::"r"(half + 1), "n"(WALK_THREADS / 2) : "memory");
}

extern "C" __global__ void __launch_bounds__(WALK_THREADS, BLOCKS)
    attention_few(const __grid_constant__ struct attention_args a)
{
  extern __shared__ __align__(16) char memory[];
  struct shared *s = (struct shared *)memory;
  float acc[FEW][COLUMNS] = {{0}}, l = 0, m[TURNS];
  struct walk w;
  int warp = threadIdx.x / WARP, half = threadIdx.x / HALF;
#pragma unroll
  for (int i = 0; i < TURNS; i++) m[i] = MINUS_INFINITY;
  walk_begin(&w, &a, s);
  __syncthreads();
  if (half == 0)
    keys_order(&w, s, w.first);
  else
    values_order(&w, s, w.first);
  queries_load(&w, s);
  __syncthreads();
  int blocks = (w.end - w.first + WALK_BLOCK - 1) / WALK_BLOCK;
  if (w.end <= w.begin) blocks = 0;
#pragma unroll 1
  for (int b = 0; b <= blocks; b++) {
    int first = w.first + b * WALK_BLOCK;
    if (half == 0 && b < blocks) {
      ASYNC_WAIT(0);
      half_sync(half);
      products_make(&w, s);
      half_sync(half);
      keys_order(&w, s, first + WALK_BLOCK);
#pragma unroll
      for (int i = 0; i < TURNS; i++)
        if (warp + 2 * i < FEW) weights_make(&w, s, warp + 2 * i, first, b % 2, &m[i]);
    }
    if (half == 1 && b > 0) {
      ASYNC_WAIT(0);
      half_sync(half);
      values_walk(&w, s, first - WALK_BLOCK, (b - 1) % 2, acc, &l);
      half_sync(half);
      values_order(&w, s, first);
    }
    __syncthreads();
  }
  ASYNC_WAIT(0);
  parts_store(&w, s, acc, l, m);
  tile_end(&a, w.task, w.sequence, FEW, s->cell);
}
