/* SPDX-License-Identifier: BSD-3-Clause
 * mixer_step: moves the states of a gated delta net over all tokens of a call (N.63).
 *
 * grid    sequences times heads times ceil(HEAD_DV / mixer_width(COLUMNS, THREADS))
 * block   THREADS: a team of MIXER_TEAM threads has COLUMNS columns of v
 * shared  mixer_shared_bytes()
 * sums    thread t of a team has lanes 4 t .. 4 t + 3 of (N.60).  It adds its own lanes first.
 *         Then it adds the sums of the threads whose numbers differ in the lowest bit, in the
 *         second, and in the highest
 *
 * -D HEAD_D, HEAD_DV: columns of a head; BY_COLUMN: 1: every key column has a decay;
 *    COLUMNS, THREADS, CHUNK: struct mixer_form
 *
 * A state is read once, stays in registers, and is written once.  It is read while the launch
 * before this one may still run.  That is safe: mixer_norm does not change states, and lets this
 * launch begin only after all earlier launches have ended.  The data of tokens are copied to shared
 * memory one chunk ahead.  If a team has several columns, its threads exchange halves of their
 * sums: in the end each thread has the sum of one column, its own. */
#include "async_copy.h"
#include "launches.h"
#include "mixer_types.h"
#include "warp.h"

enum {
  PIECES = mixer_pieces(HEAD_D),
  LINE = PIECES * MIXER_LANES,
  PITCH = mixer_pitch(HEAD_D),
  TEAMS = THREADS / MIXER_TEAM,
  WIDTH = mixer_width(COLUMNS, THREADS),
  BLOCKS = (HEAD_DV + WIDTH - 1) / WIDTH, /* blocks for a head */
  ALL = (CHUNK + MIXER_QUAD - 1) / MIXER_QUAD * MIXER_QUAD
};

struct stage {
  float k[CHUNK][LINE], q[CHUNK][LINE];
#if BY_COLUMN
  float decay[CHUNK][LINE];
#else
  float decay[ALL];
#endif
  float v[CHUNK][WIDTH];
  float beta[ALL];
};
static_assert(2 * sizeof(struct stage) ==
                  mixer_shared_bytes(HEAD_D, BY_COLUMN, COLUMNS, THREADS, CHUNK),
              "mixer_types.h");

/* The sequence, head and columns of a block. */
struct block {
  const struct mixer_step_args *a;
  long long token; /* the first one */
  int tokens, head, key_head;
  int first; /* first column of v */
};

/* The index of this thread's first number in a piece of a line. */
static __device__ inline int team_column(int piece)
{
  return piece * MIXER_LANES + (int)threadIdx.x % MIXER_TEAM * MIXER_QUAD;
}

/* Does number e of a thread's piece exist?  A constant except in the last piece. */
static __device__ inline int is_there(int piece, int e)
{
  return (piece + 1) * MIXER_LANES <= HEAD_D || team_column(piece) + e < HEAD_D;
}

static __device__ inline void line_order(float to[CHUNK][LINE], const float *from, int stride,
                                         int count)
{
  enum { FOURS = PITCH / MIXER_QUAD };
  for (int i = threadIdx.x; i < count * FOURS; i += THREADS) {
    int t = i / FOURS, c = i % FOURS * MIXER_QUAD;
    async_copy16(&to[t][c], from + (long long)t * stride + c);
  }
}

/* Begin to copy the data of up to CHUNK tokens of a sequence, from token `first` on. */
static __device__ inline void stage_order(const struct block *b, struct stage *s, int first)
{
  const struct mixer_step_args *a = b->a;
  int count = min((int)CHUNK, b->tokens - first);
  long long token = b->token + first, key = (token * a->heads_k + b->key_head) * PITCH;
  long long line = token * a->heads + b->head;
  if (count > 0) {
    line_order(s->k, a->k + key, a->heads_k * PITCH, count);
    line_order(s->q, a->q + key, a->heads_k * PITCH, count);
#if BY_COLUMN
    line_order(s->decay, a->decay + line * PITCH, a->heads * PITCH, count);
#endif
    for (int i = threadIdx.x; i < count * WIDTH; i += THREADS) {
      int t = i / WIDTH, c = i % WIDTH, j = b->first + c;
      if (j < HEAD_DV)
        async_copy4_at(shared_address(&s->v[t][c]),
                       a->v + (token + t) * a->channels + (long long)b->head * HEAD_DV + j);
    }
    int t = threadIdx.x;
    if (t < count) {
#if !BY_COLUMN
      async_copy4_at(shared_address(&s->decay[t]), a->decay + line + (long long)t * a->heads);
#endif
      async_copy4_at(shared_address(&s->beta[t]), a->beta + line + (long long)t * a->heads);
    }
  }
  async_commit();
}

/* Load this thread's part of a column of a state. */
static __device__ inline void column_read(const float *from, float s[PIECES][MIXER_QUAD])
{
#pragma unroll
  for (int p = 0; p < PIECES; p++) {
    if (HEAD_D % MIXER_QUAD == 0) {
      float4 four = {0, 0, 0, 0};
      if (is_there(p, 0)) four = *(const float4 *)(from + team_column(p));
      s[p][0] = four.x, s[p][1] = four.y, s[p][2] = four.z, s[p][3] = four.w;
    } else {
#pragma unroll
      for (int e = 0; e < MIXER_QUAD; e++) s[p][e] = is_there(p, e) ? from[team_column(p) + e] : 0;
    }
  }
}

static __device__ inline void column_write(float *to, const float s[PIECES][MIXER_QUAD])
{
#pragma unroll
  for (int p = 0; p < PIECES; p++) {
    if (HEAD_D % MIXER_QUAD == 0) {
      float4 four = {s[p][0], s[p][1], s[p][2], s[p][3]};
      if (is_there(p, 0)) *(float4 *)(to + team_column(p)) = four;
    } else {
#pragma unroll
      for (int e = 0; e < MIXER_QUAD; e++)
        if (is_there(p, e)) to[team_column(p) + e] = s[p][e];
    }
  }
}

static __device__ inline void line_read(const float line[LINE], float x[PIECES][MIXER_QUAD])
{
#pragma unroll
  for (int p = 0; p < PIECES; p++) {
    float4 four = *(const float4 *)&line[team_column(p)];
    x[p][0] = four.x, x[p][1] = four.y, x[p][2] = four.z, x[p][3] = four.w;
  }
}

/* The sum of this thread's lanes, added in pairs. */
static __device__ inline float lanes_own(const float s[PIECES][MIXER_QUAD],
                                         const float x[PIECES][MIXER_QUAD])
{
  float lane[MIXER_QUAD] = {0, 0, 0, 0};
#pragma unroll
  for (int p = 0; p < PIECES; p++)
#pragma unroll
    for (int e = 0; e < MIXER_QUAD; e++)
      if (is_there(p, e)) lane[e] = __fmaf_rn(s[p][e], x[p][e], lane[e]);
  return __fadd_rn(__fadd_rn(lane[0], lane[1]), __fadd_rn(lane[2], lane[3]));
}

/* The column whose sum thread t of a team has in the end.  Of the threads with the same column, the
 * lowest one owns it. */
static __device__ inline constexpr int own_column(int t)
{
  int column = 0;
  for (int n = COLUMNS / 2, step = 1; n; n /= 2, step *= 2) column += t & step ? n : 0;
  return column;
}

static __device__ inline constexpr int owner_of(int column)
{
  int t = 0;
  while (own_column(t) != column) t++;
  return t;
}

/* Add the sums of the team's threads.  sum: this thread's sums for all columns.  Returns the whole
 * sum of this thread's own column. */
static __device__ inline float team_sum(float sum[COLUMNS])
{
  int t = threadIdx.x;
#pragma unroll
  for (int n = COLUMNS / 2, step = 1; step < MIXER_TEAM; n /= 2, step *= 2) {
    if (n == 0) sum[0] = __fadd_rn(sum[0], __shfl_xor_sync(FULL_WARP, sum[0], step));
#pragma unroll
    for (int i = 0; i < n; i++) {
      int upper = t & step;
      float mine = upper ? sum[n + i] : sum[i], other = upper ? sum[i] : sum[n + i];
      sum[i] = __fadd_rn(mine, __shfl_xor_sync(FULL_WARP, other, step));
    }
  }
  return sum[0];
}

/* Move the columns of a team by token t of a stage; returns o of this thread's own column. */
static __device__ inline float token_step(const struct stage *st, int t,
                                          float s[COLUMNS][PIECES][MIXER_QUAD])
{
  float k[PIECES][MIXER_QUAD], q[PIECES][MIXER_QUAD], sum[COLUMNS];
  int own = (int)threadIdx.x / MIXER_TEAM * COLUMNS + own_column(threadIdx.x % MIXER_TEAM);
  line_read(st->k[t], k);
#if BY_COLUMN
  float decay[PIECES][MIXER_QUAD];
  line_read(st->decay[t], decay);
#else
  float decay = st->decay[t];
#endif
#pragma unroll
  for (int c = 0; c < COLUMNS; c++) {
#pragma unroll
    for (int p = 0; p < PIECES; p++)
#pragma unroll
      for (int e = 0; e < MIXER_QUAD; e++)
#if BY_COLUMN
        s[c][p][e] = __fmul_rn(s[c][p][e], decay[p][e]);
#else
        s[c][p][e] = __fmul_rn(s[c][p][e], decay);
#endif
    sum[c] = lanes_own(s[c], k);
  }
  float delta = __fmul_rn(st->beta[t], __fsub_rn(st->v[t][own], team_sum(sum)));
  line_read(st->q[t], q);
#pragma unroll
  for (int c = 0; c < COLUMNS; c++) {
    float d = COLUMNS == 1 ? delta : __shfl_sync(FULL_WARP, delta, owner_of(c), MIXER_TEAM);
#pragma unroll
    for (int p = 0; p < PIECES; p++)
#pragma unroll
      for (int e = 0; e < MIXER_QUAD; e++) s[c][p][e] = __fmaf_rn(k[p][e], d, s[c][p][e]);
    sum[c] = lanes_own(s[c], q);
  }
  return team_sum(sum);
}

static __device__ inline struct block block_make(const struct mixer_step_args *a,
                                                 const struct mixer_sequence *s)
{
  int at = blockIdx.x / BLOCKS % a->heads, head = a->first + at;
  int key_head = a->tiled ? head % a->heads_k : head / a->group;
  struct block b = {a, s->token, s->tokens, at, key_head, (int)(blockIdx.x % BLOCKS) * WIDTH};
  return b;
}

extern "C" __global__ void __launch_bounds__(THREADS,
                                             mixer_resident(CHUNK, PIECES, BY_COLUMN) / THREADS)
    mixer_step(const __grid_constant__ struct mixer_step_args a)
{
  extern __shared__ __align__(16) char memory[];
  struct stage *stages = (struct stage *)memory;
  const struct mixer_sequence sequence = a.sequences[blockIdx.x / BLOCKS / a.heads];
  const struct block b = block_make(&a, &sequence);
  int team = (int)threadIdx.x / MIXER_TEAM * COLUMNS, t = threadIdx.x % MIXER_TEAM;
  float s[COLUMNS][PIECES][MIXER_QUAD];
  const float *pool = sequence.is_gathered ? a.scratch : a.pool;
#pragma unroll
  for (int c = 0; c < COLUMNS; c++) {
    int j = b.first + team + c;
    long long line = ((long long)sequence.in * a.heads + b.head) * HEAD_DV + j;
    if (sequence.in >= 0 && j < HEAD_DV)
      column_read(pool + line * HEAD_D, s[c]);
    else
#pragma unroll
      for (int p = 0; p < PIECES; p++)
#pragma unroll
        for (int e = 0; e < MIXER_QUAD; e++) s[c][p][e] = 0;
  }
  launches_wait();
  stage_order(&b, &stages[0], 0);
  int own = b.first + team + own_column(t);
  int writes = own < HEAD_DV && t == owner_of(own_column(t));
  float *o = a.o + (b.token * a.heads + b.head) * HEAD_DV + own;
#pragma unroll 1
  for (int first = 0, turn = 0; first < b.tokens; first += CHUNK, turn ^= 1) {
    const struct stage *here = &stages[turn];
    ASYNC_WAIT(0);
    __syncthreads();
    stage_order(&b, &stages[turn ^ 1], first + CHUNK);
    int count = min((int)CHUNK, b.tokens - first);
#pragma unroll 2
    for (int i = 0; i < count; i++) {
      float sum = token_step(here, i, s);
      if (writes) *o = sum;
      o += a.heads * HEAD_DV;
    }
  }
  ASYNC_WAIT(0);
#pragma unroll
  for (int c = 0; c < COLUMNS; c++) {
    int j = b.first + team + c;
    long long line = ((long long)sequence.out * a.heads + b.head) * HEAD_DV + j;
    if (sequence.out >= 0 && j < HEAD_DV) column_write(a.out + line * HEAD_D, s[c]);
  }
}
