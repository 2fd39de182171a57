/* SPDX-License-Identifier: BSD-3-Clause
 * attention_few: parts (N.27) of a head that has few rows; a block has all rows and one shard.
 *
 * grid    tasks, the longest first
 * block   WALK_THREADS.  For a block of positions, the first half of the threads makes the products
 *         of all rows, one position per thread, and their maxima, one warp per row.  At the same
 *         time the other half adds the block before to the sums: it makes weights, one position per
 *         thread, and adds values, one to four columns of all rows per thread
 * shared  few_shared_bytes(): keys and values as they are stored, cells, queries, products, weights
 * sums    as in attention_tile; the last warp has the sums of weights
 *
 * -D HEAD_D, HEAD_DV, CELLS, CAPPED: see walk.h; FEW: rows, few_rows(); STAGES: blocks of keys and
 *    of values in shared memory, a power of two
 * This kernel is bound by memory, so copies must always be running.  A warp of the first half
 * refills its keys as soon as it has read them; the second half does the same with values.  With
 * one stage, a block waits for its copies while other blocks of the multiprocessor compute.  If
 * there are no other blocks, it needs more stages.  The cells of a shard are looked up once, ahead
 * of all copies, and a thread looks up many addresses before it starts the first copy. */
#include "launches.h"
#include "walk.h"

enum {
  HALF = WALK_THREADS / 2, /* threads; equals WALK_BLOCK positions */
  KEY_PITCH = few_key_pitch(HEAD_D, CELLS),
  VALUE_PITCH = few_value_pitch(HEAD_DV, CELLS),
  PIECES = (HEAD_D * CELL_BYTES + 15) / 16, /* pieces of 16 bytes in a key */
  NUMBERS = 16 / CELL_BYTES,                /* numbers in a piece */
  CHAIN_PIECES = WALK_CHAIN / NUMBERS,
  QUERY_COLUMNS = PIECES * NUMBERS, /* padded with zeros */
  COLUMNS = HEAD_DV <= HALF       ? 1
            : HEAD_DV <= 2 * HALF ? 2
                                  : 4, /* columns of values per thread */
  TOGETHER = 16, /* copies whose cells are looked up before the first of them begins */
  PIECES_TOGETHER = CELL_BYTES == 4 && FEW >= 4 ? 1 : 2, /* pieces of a key; 2 of f32 would spill */
  TURNS = (FEW + 1) / 2                                  /* rows per warp that finds the maxima */
};

struct shared {
  char k[STAGES][WALK_BLOCK][KEY_PITCH], v[STAGES][WALK_BLOCK][VALUE_PITCH];
  int cell[WALK_SHARD];
  float q[FEW][QUERY_COLUMNS];
  float u[2][FEW][WALK_BLOCK]; /* u and m: of a block, and of the block before */
  float weight[WALK_BLOCK][FEW];
  float m[2][FEW], shrink[FEW]; /* shrink: the factor for earlier sums */
  int from[FEW], end[FEW];
};
static_assert(sizeof(struct shared) == few_shared_bytes(HEAD_D, HEAD_DV, CELLS, FEW, STAGES),
              "attention_types.h");

struct walk {
  const struct attention_args *a;
  const struct softmax_sequence *sequence;
  const struct softmax_task *task;
  int begin, end; /* positions of the shard that some row sees */
  int first;      /* start of the block that has the first of them */
  int rows;
};

/* Begin to copy a piece of 16 bytes of a cell.  Numbers past the last column become zeros. */
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

/* A group of threads that copies cells.  pitch, columns and threads are constants. */
struct copier {
  char *to;
  const void *cells;
  int pitch, columns, threads, thread;
};

/* Begin to copy positions `from` .. `from` + count - 1 of the block that begins at `first`, if
 * there is such a block.  A thread copies the same pieces of every step-th position.  For positions
 * past the last one the last one is copied, to save conditions.  count is a constant. */
static __device__ inline void cells_order(const struct walk *w, const struct shared *s,
                                          const struct copier *c, int first, int from, int count)
{
  const int bytes = c->columns * CELL_BYTES, pieces = (bytes + 15) / 16;
  const int all = pieces <= 4 ? 4 : pieces <= 8 ? 8 : pieces <= 16 ? 16 : pieces <= 32 ? 32 : 64;
  const int wide = all < c->threads ? all : c->threads, step = c->threads / wide;
  int j = from + c->thread / wide;
  unsigned stride = w->a->kv_heads * bytes;
  const int *cell = s->cell + (first - w->first) + j;
  if (first < w->end)
#pragma unroll
    for (int piece = c->thread % wide, round = 0; round < all / wide; piece += wide, round++) {
      const char *head = (const char *)c->cells + (long long)w->task->kv_head * bytes + piece * 16;
      if (pieces < all && piece >= pieces) break;
#pragma unroll
      for (int i = 0; i < count; i += step * TOGETHER) {
        unsigned at[TOGETHER];
#pragma unroll
        for (int t = 0; t < TOGETHER; t++)
          if (i + t * step < count) at[t] = cell[i + t * step];
#pragma unroll
        for (int t = 0; t < TOGETHER; t++)
          if (i + t * step < count)
            piece_order(c->to + (j + i + t * step) * c->pitch + piece * 16,
                        head + (unsigned long long)at[t] * stride, c->columns, piece);
      }
    }
  async_commit();
}

/* First position of block b. */
static __device__ inline int block_first(const struct walk *w, int b)
{
  return w->first + b * WALK_BLOCK;
}

/* Begin to copy this warp's half of the keys of block b; no other warp reads them. */
static __device__ inline void keys_order(const struct walk *w, struct shared *s, int b)
{
  const struct copier c = {s->k[b % STAGES][0],    w->a->k, KEY_PITCH, HEAD_D, WARP,
                           (int)threadIdx.x % WARP};
  cells_order(w, s, &c, block_first(w, b), threadIdx.x / WARP * WARP, WARP);
}

static __device__ inline void values_order(const struct walk *w, struct shared *s, int b)
{
  const struct copier c = {s->v[b % STAGES][0],    w->a->v, VALUE_PITCH, HEAD_DV, HALF,
                           (int)threadIdx.x % HALF};
  cells_order(w, s, &c, block_first(w, b), 0, WALK_BLOCK);
}

static __device__ inline void softmax_begin(struct walk *w, const struct attention_args *a,
                                            struct shared *s)
{
  w->a = a;
  w->task = a->tasks + blockIdx.x;
  w->sequence = a->sequences + w->task->sequence;
  w->rows = w->sequence->n_q * a->group - w->task->row;
  int shard = w->task->shard * WALK_SHARD;
  struct softmax_row upper = row_find(a, w->sequence, w->task->kv_head, w->task->row);
  struct softmax_row lower = row_find(a, w->sequence, w->task->kv_head, w->task->row + w->rows - 1);
  w->begin = max(upper.from < upper.end ? upper.from : 0, shard);
  w->end = max(min(max(lower.end, upper.end), shard + WALK_SHARD), w->begin);
  const int *table = a->table ? a->table + w->sequence->cells : 0;
  int plain = a->table ? 0 : (int)w->sequence->cells;
  w->first = w->begin / WALK_BLOCK * WALK_BLOCK;
#pragma unroll 8
  for (int j = threadIdx.x; w->first + j / WALK_BLOCK * WALK_BLOCK < w->end; j += WALK_THREADS)
    s->cell[j] = plain + cell_find(a, table, max(min(w->first + j, w->end - 1), w->begin));
}

static __device__ inline void queries_load(const struct walk *w, struct shared *s)
{
  const struct attention_args *a = w->a;
  enum { FOURS = QUERY_COLUMNS / 4 };
#pragma unroll 2
  for (int i = threadIdx.x; i < FEW * FOURS; i += WALK_THREADS) {
    int r = i / FOURS, c = i % FOURS * 4, there = r < w->rows ? HEAD_D - c : 0;
    struct softmax_row row = row_find(a, w->sequence, w->task->kv_head, w->task->row + r);
    const float *q = a->q + row.at * HEAD_D + c;
#pragma unroll
    for (int k = 0; k < 4; k++) s->q[r][c + k] = k < there ? q[k] : 0;
  }
  int r = threadIdx.x;
  if (r >= FEW) return;
  struct softmax_row row = row_find(a, w->sequence, w->task->kv_head, w->task->row + r);
  s->from[r] = r < w->rows ? max(row.from, w->begin) : 0;
  s->end[r] = r < w->rows ? max(min(row.end, w->end), s->from[r]) : 0;
}

/* The numbers of a piece of 16 bytes. */
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

/* u[r] <- the product of a key and row r, as a chain from +0, over pieces first .. end - 1. */
static __device__ inline void chain_make(const struct shared *s, const char *k_at, int first,
                                         int end, float u[FEW])
{
#pragma unroll
  for (int r = 0; r < FEW; r++) u[r] = 0;
#pragma unroll(PIECES_TOGETHER)
  for (int piece = first; piece < end; piece++) {
    float k[NUMBERS];
    piece_widen(k_at + piece * 16, k);
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
}

/* The inner products of this thread's position of block b with all rows. */
static __device__ inline void products_make(const struct walk *w, struct shared *s, int b)
{
  int position = threadIdx.x;
  const char *k = s->k[b % STAGES][position];
  float u[FEW], more[FEW];
  chain_make(s, k, 0, min(CHAIN_PIECES, PIECES), u);
#pragma unroll 1
  for (int first = CHAIN_PIECES; first < PIECES; first += CHAIN_PIECES) {
    chain_make(s, k, first, min(first + CHAIN_PIECES, PIECES), more);
#pragma unroll
    for (int r = 0; r < FEW; r++) u[r] = __fadd_rn(u[r], more[r]);
  }
#pragma unroll
  for (int r = 0; r < FEW; r++) {
#if CAPPED
    u[r] = tanh_any(__fmul_rn(u[r], w->a->inner));
#endif
    s->u[b % 2][r][position] = u[r];
  }
}

static __device__ inline float warp_largest(float value)
{
#pragma unroll
  for (int step = WARP / 2; step > 0; step /= 2)
    value = larger(value, __shfl_xor_sync(FULL_WARP, value, step));
  return value;
}

/* Update *m, the maximum of the warp's row r, with the products of block b. */
static __device__ inline void largest_find(const struct walk *w, struct shared *s, int r, int b,
                                           float *m)
{
  int first = block_first(w, b), lane = threadIdx.x % WARP;
  int from = s->from[r] - first, end = s->end[r] - first;
  float u[2];
#pragma unroll
  for (int i = 0; i < 2; i++) {
    int j = i * WARP + lane;
    u[i] = j >= from && j < end ? s->u[b % 2][r][j] : MINUS_INFINITY;
  }
  float largest = warp_largest(larger(u[0], u[1]));
  int seen = from < WALK_BLOCK && end > max(from, 0);
  if (seen) *m = larger(*m, __fmul_rn(largest, w->a->exponent));
  if (lane == 0) s->m[b % 2][r] = *m;
}

/* Store the weights of this thread's position of block b for all rows; UNSEEN if a row does not see
 * the position.  Thread r of the half also makes the factor for earlier sums of row r.  *before is
 * the row's m before this block; it becomes the m after it. */
static __device__ inline void weights_make(const struct walk *w, struct shared *s, int b,
                                           float *before)
{
  int first = block_first(w, b), turn = b % 2, j = threadIdx.x - HALF;
#pragma unroll
  for (int r = 0; r < FEW; r++) {
    int seen = first + j >= s->from[r] && first + j < s->end[r];
    float p = exp2_any(__fmaf_rn(s->u[turn][r][j], w->a->exponent, -s->m[turn][r]));
    s->weight[j][r] = seen ? p : UNSEEN;
  }
  if (j >= FEW) return;
  float m = s->m[turn][j];
  s->shrink[j] = m == *before ? 1 : exp2_any(__fsub_rn(*before, m));
  *before = m;
}

/* out <- the numbers of this thread's columns; columns past the last one are undefined. */
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

/* Add the first `count` positions of a block, whose values are at v, to acc and l.  all (a
 * constant): 1: all rows see all positions.  sums: 1: this warp has l. */
static __device__ inline void values_add(const struct shared *s, const char *v, int count, int all,
                                         int sums, float acc[FEW][COLUMNS], float *l)
{
  int column = threadIdx.x % HALF * COLUMNS;
  v += (column < HEAD_DV ? column : 0) * CELL_BYTES;
  const float *weight = s->weight[0], *own = weight + threadIdx.x % FEW;
#pragma unroll 16
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

/* A barrier for one half of the threads. */
static __device__ inline void half_sync(int half)
{
  asm volatile("bar.sync %0, %1;" ::"r"(half + 1), "n"(WALK_THREADS / 2) : "memory");
}

/* Add the values of block b.  Then begin to copy the values of block b + STAGES to the same
 * stage. */
static __device__ inline void values_accumulate(const struct walk *w, struct shared *s, int b,
                                                float acc[FEW][COLUMNS], float *l, float *before)
{
  int first = block_first(w, b), count = min(w->end - first, (int)WALK_BLOCK);
  int all = count == WALK_BLOCK, sums = threadIdx.x >= WALK_THREADS - WARP;
  const char *v = s->v[b % STAGES][0];
  weights_make(w, s, b, before);
  ASYNC_WAIT(STAGES - 1);
  half_sync(1);
#pragma unroll
  for (int r = 0; r < FEW; r++) {
    all &= r >= w->rows || (s->from[r] <= first && s->end[r] >= first + count);
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) acc[r][c] = __fmul_rn(acc[r][c], s->shrink[r]);
  }
  *l = __fmul_rn(*l, s->shrink[threadIdx.x % FEW]);
  if (!all)
    values_add(s, v, count, 0, sums, acc, l);
  else if (sums)
    values_add(s, v, WALK_BLOCK, 1, 1, acc, l);
  else
    values_add(s, v, WALK_BLOCK, 1, 0, acc, l);
  half_sync(1);
  values_order(w, s, b + STAGES);
}

/* Store the parts.  The first half of the threads has the maxima, the second half the sums. */
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
    struct softmax_row row = row_find(a, w->sequence, w->task->kv_head, w->task->row + r);
    long long part = row.part + shard;
#pragma unroll
    for (int c = 0; c < COLUMNS; c++)
      if (thread >= 0 && column + c < PART_COLUMNS)
        a->part[part * PART_COLUMNS + column + c] = acc[r][c];
    if ((int)threadIdx.x == r % 2 * WARP) a->part_m[part] = m[r / 2];
    if (threadIdx.x >= WALK_THREADS - WARP && lane == r) a->part_l[part] = l;
  }
}

extern "C" __global__ void __launch_bounds__(WALK_THREADS, few_blocks(HEAD_DV, FEW, STAGES))
    attention_few(const __grid_constant__ struct attention_args a)
{
  extern __shared__ __align__(16) char memory[];
  struct shared *s = (struct shared *)memory;
  float acc[FEW][COLUMNS] = {{0}}, l = 0, m[TURNS], before = MINUS_INFINITY;
  struct walk w;
  int warp = threadIdx.x / WARP, half = threadIdx.x / HALF;
#pragma unroll
  for (int i = 0; i < TURNS; i++) m[i] = MINUS_INFINITY;
  softmax_begin(&w, &a, s);
  launches_wait(); /* earlier launches write nothing that is read before this line */
  launch_next();
  __syncthreads();
#pragma unroll 1
  for (int b = 0; b < STAGES; b++)
    if (half == 0)
      keys_order(&w, s, b);
    else
      values_order(&w, s, b);
  queries_load(&w, s);
  __syncthreads();
  int blocks = (w.end - w.first + WALK_BLOCK - 1) / WALK_BLOCK;
  if (w.end <= w.begin) blocks = 0;
#pragma unroll 1
  for (int b = 0; b <= blocks; b++) {
    if (half == 0 && b < blocks) {
      ASYNC_WAIT(STAGES - 1);
      __syncwarp();
      products_make(&w, s, b);
      __syncwarp();
      keys_order(&w, s, b + STAGES);
      half_sync(half);
#pragma unroll
      for (int i = 0; i < TURNS; i++)
        if (warp + 2 * i < FEW) largest_find(&w, s, warp + 2 * i, b, &m[i]);
      half_sync(half); /* the barrier below is enough, but a race checker would not see that */
    }
    if (half == 1 && b > 0) values_accumulate(&w, s, b - 1, acc, &l, &before);
    __syncthreads();
  }
  ASYNC_WAIT(0);
  parts_store(&w, s, acc, l, m);
  tile_end(&a, w.task, w.sequence, FEW);
}
