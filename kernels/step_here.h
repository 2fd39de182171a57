/* SPDX-License-Identifier: BSD-3-Clause
 * An atom's step: sums over its rows, column by column, if every block of the cluster has all of
 * its own rows in sight (step_types.h).
 *
 * A block adds its own rows, one column per thread.  The rows of a sum block are one chain.  If the
 * next block has some of these rows, the sum so far (the open sum) is sent there.  The complete sum
 * of a sum block is sent to the block that joins the column (N.0).  That block sends the whole sum
 * to all blocks.  Groups are single sum blocks here.  The memory for rows that are added
 * (step_sums.h) holds the complete sums of this block's columns, [2][groups][width]; then the open
 * sums of all columns from the block before; then the whole sums.
 * A block waits for numbers on a barrier that counts their bytes.  A turn is one call of
 * columns_here().  A block is at most one turn ahead of another, because each turn needs numbers
 * from all blocks.  The complete sums of a turn are overwritten two turns later.  This is safe: a
 * block sends sums of turn t + 2 after it has the whole sums of turn t + 1.  Every block
 * contributes to the whole sums of turn t + 1 after it has joined the complete sums of turn t. */
#ifndef STEP_HERE_H
#define STEP_HERE_H

#include "barriers.h"
#include "cluster.h"
#include "step_columns.h"

static_assert(STEP_GROUPS <= 16,
              "each has a lane of its own; those beyond a multiple of 32 join last");
static_assert((long long)STEP_GROUPS << 12 <= STEP_SEGMENT_ROWS, "rows in sight are one segment");
static_assert(((long long)STEP_GROUPS << 12) * (STEP_VECTOR_BYTES / 24) < 1ll << 31,
              "rows in sight have places below 2^31 in memory");

/* The largest number of columns that a block joins, if there are `all` columns. */
static __device__ inline int here_width(const struct step *s, int all)
{
  return (all + s->size - 1) / s->size;
}

/* The complete sums of a turn; two buffers alternate. */
static __device__ inline double *here_parts(const struct step *s, int turn)
{
  return s->added + turn % 2 * s->a.groups * s->width;
}

static __device__ inline double *here_open(const struct step *s)
{
  return s->added + 2 * s->a.groups * s->width;
}

static __device__ inline double *here_sums(const struct step *s)
{
  return here_open(s) + D * s->a.p;
}

/* Can all blocks have their rows in sight?  The sums must fit in memory, and the blocks together
 * must be able to name all rows.  Every block must have a row, so that none falls behind by more
 * than a turn.  All blocks give the same answer. */
static __device__ inline int here_is_room(const struct step *s)
{
  return step_in_sight(D, s->a.q, s->a.p, s->a.groups, s->a.group_shift, s->size) &&
         s->n <= s->size * s->a.named && s->n >= s->size;
}

/* Called by the first warp.  Assign the blocks of the cluster to sum blocks, so that chains go
 * through few blocks: first one block to each sum block, then each other block to the sum block
 * with the most rows per block.  Rows stay divided evenly (step.cu) in three cases: there are more
 * sum blocks than blocks; a block would have more rows than it can name; or a block would have more
 * rows than its warps take at once, and more than 1.5 times an even share. */
static __device__ inline void here_partition(struct step *s)
{
  int lane = threadIdx.x, is_group = lane < s->a.groups, first = is_group ? s->start[lane] : 0;
  int rows = is_group ? s->start[lane + 1] - first : 0, blocks = rows > 0;
  int count = __popc(__ballot_sync(FULL_WARP, blocks)), before = 0;
  if (count > s->size) return;
#pragma unroll 1
  for (; count < s->size; count++) {
    int load = blocks ? __float_as_int(__fdividef((float)rows, (float)blocks)) : 0;
    int most = __reduce_max_sync(FULL_WARP, load);
    blocks += lane == __ffs((int)__ballot_sync(FULL_WARP, load == most)) - 1;
  }
  int most = __reduce_max_sync(FULL_WARP, blocks ? (rows + blocks - 1) / blocks : 0);
  if (most > s->a.named || (most > WARPS * ABREAST && 2 * most * s->size > 3 * s->n)) return;
#pragma unroll 1
  for (int g = 0; g < s->a.groups; g++) {
    int others = __shfl_sync(FULL_WARP, blocks, g);
    if (g < lane) before += others;
  }
  int at = s->rank - before;
  if (at < 0 || at >= blocks) return;
  s->lo = first + rows * at / blocks;
  s->hi = first + rows * (at + 1) / blocks;
}

/* Thread 0: find the sum blocks of own rows, and whether the first of them has rows in the block
 * before. */
static __device__ inline void here_find(struct step *s)
{
  int own_first = 0, own_end = 0;
  s->present = 0;
  s->continues = 0;
#pragma unroll 1
  for (int g = 0; g < s->a.groups; g++) {
    int first = s->start[g], end = s->start[g + 1];
    if (first == end) continue;
    s->present |= 1u << g;
    if (first >= s->hi || end <= s->lo) continue;
    if (own_end == 0) own_first = g;
    own_end = g + 1;
    if (first < s->lo) s->continues = 1;
  }
  s->own_first = own_first;
  s->own_end = own_end;
}

/* Thread 0, once: initialise the barriers. */
static __device__ inline void here_begin(struct step *s)
{
#if __CUDA_ARCH__ >= 900
  for (int i = 0; i < HERE_BARRIERS; i++) barrier_begin(&s->barriers[i], 1);
  barriers_publish();
#endif
}

/* Tell barrier `which` how many numbers this block will receive in a turn.  If the cluster is a
 * single block, barriers are not used. */
static __device__ inline void here_expect(struct step *s, int which, int numbers)
{
#if __CUDA_ARCH__ >= 900
  if (threadIdx.x == 0 && s->size > 1) barrier_expect(&s->barriers[which], 8 * numbers);
#endif
}

static __device__ inline void here_send(struct step *s, int which, double *p, int rank, double x)
{
  if (s->size > 1)
    cluster_send(p, &s->barriers[which], rank, x);
  else
    *p = x;
}

/* Wait until the numbers of a turn have arrived.  Called by all threads. */
static __device__ inline void here_wait(struct step *s, int which, int turn)
{
#if __CUDA_ARCH__ >= 900
  if (s->size > 1) {
    while (!barrier_passed(&s->barriers[which], turn % 2)) {}
    return;
  }
#endif
  __syncthreads();
}

/* Continue a chain over own rows first .. end - 1.  row[0] and weight[0] belong to own row 0.
 * Between rows they are `pitch` and `stride` numbers apart.  The next numbers are loaded while the
 * current ones are added. */
static __device__ inline double chain_add(const double *row, int pitch, const double *weight,
                                          int stride, int first, int end, double chain)
{
  enum { AHEAD = 4 };
  double x[2][AHEAD], w[2][AHEAD];
  auto load = [&](int at, int i) {
#pragma unroll
    for (int r = 0; r < AHEAD; r++)
      if (i + r < end) {
        x[at][r] = row[(i + r) * pitch];
        w[at][r] = weight[(i + r) * stride];
      }
  };
  auto add = [&](int at, int i) {
#pragma unroll
    for (int r = 0; r < AHEAD; r++)
      if (i + r < end) chain = fma(x[at][r], w[at][r], chain);
  };
  load(0, first);
#pragma unroll 1
  for (int i = first; i < end; i += 2 * AHEAD) {
    load(1, i + AHEAD);
    add(0, i);
    load(0, i + 2 * AHEAD);
    add(1, i + AHEAD);
  }
  return chain;
}

/* A column of own rows, and the weights of the rows. */
struct own_column {
  const double *row, *far, *weight; /* far: the column in global memory, for rows not held */
  int stride;
};

static __device__ inline struct own_column column_of(const struct step *s, int j, int v)
{
  int vector = D == 1 || j >= 0 ? 0 : v / s->a.p, c = v - vector * s->a.p;
  return {in_shared(s->rows) + c, s->a.residual + c, in_shared(j < 0 ? s->t : s->weight) + vector,
          j < 0 ? D : 1};
}

/* Continue a chain over own rows first .. end - 1 that are not held in shared memory. */
template <int AHEAD>
static __device__ inline double far_add(const struct step *s, const struct own_column *c, int first,
                                        int end, double chain)
{
  const int *number = in_shared(s->row);
  int p = s->a.p;
#pragma unroll 1
  for (int i = first; i < end; i += AHEAD) {
    double x[AHEAD];
#pragma unroll
    for (int r = 0; r < AHEAD; r++) x[r] = __ldcg(c->far + number[min_of(i + r, end - 1)] * p);
#pragma unroll
    for (int r = 0; r < AHEAD; r++)
      if (i + r < end) chain = fma(x[r], c->weight[(i + r) * c->stride], chain);
  }
  return chain;
}

/* Continue a chain over own rows, held or not. */
static __device__ inline double own_add(const struct step *s, const struct own_column *c, int first,
                                        int end, double chain)
{
  int held = s->held;
  chain = chain_add(c->row, s->pitch, c->weight, c->stride, first, min_of(end, held), chain);
  return far_add<8>(s, c, max_of(first, held), end, chain);
}

/* Send the chain of sum block g after the last own row.  If the next block has more rows of this
 * sum block, the chain goes there; otherwise it goes to the block that joins column v. */
static __device__ inline void own_send(struct step *s, int turn, int v, int width, int g,
                                       double chain)
{
  double *part = here_parts(s, turn) + g * width + v % width;
  if (s->start[g + 1] > s->hi)
    here_send(s, HERE_OPEN, here_open(s) + v, s->rank + 1, chain);
  else
    here_send(s, HERE_PARTS, part, v / width, chain);
}

/* Add the sum blocks that begin among own rows, the last one first, because the next block may wait
 * for its chain. */
static __device__ inline void columns_begin(struct step *s, int turn, int j, int all, int width)
{
  const int *start = in_shared(s->start);
#pragma unroll 1
  for (int v = threadIdx.x; v < all; v += THREADS) {
    struct own_column c = column_of(s, j, v);
#pragma unroll 1
    for (int g = s->own_end - 1; g >= s->own_first + s->continues; g--) {
      int begin = start[g] - s->lo, end = min_of(start[g + 1], s->hi) - s->lo;
      if (begin < end) own_send(s, turn, v, width, g, own_add(s, &c, begin, end, 0));
    }
  }
}

/* Continue, in column v, the sum block that also has rows in the block before.  Its rows here are
 * own rows 0 .. end - 1.  The thread loads the last of these rows before it waits for the open
 * chain. */
static __device__ inline double chain_continue(struct step *s, int turn, int j, int v, int end)
{
  enum { LAST = 12, AHEAD = 4 };
  struct own_column c = column_of(s, j, v);
  int last = max_of(end - LAST, 0), held = s->held, p = s->a.p, pitch = s->pitch;
  const int *number = in_shared(s->row);
  double x[LAST];
#pragma unroll
  for (int r = 0; r < LAST; r++)
    if (last + r < min_of(end, held)) x[r] = c.row[(last + r) * pitch];
#pragma unroll
  for (int r = 0; r < LAST && held < end; r++)
    if (last + r >= held && last + r < end) x[r] = __ldcg(c.far + number[last + r] * p);
  here_wait(s, HERE_OPEN, turn); /* only in a cluster: a block that is alone has whole chains */
  double chain = here_open(s)[v];
  chain = chain_add(c.row, pitch, c.weight, c.stride, 0, min_of(last, held), chain);
  chain = far_add<4>(s, &c, held, last, chain);
#pragma unroll
  for (int first = 0; first < LAST; first += AHEAD) {
    double w[AHEAD];
#pragma unroll
    for (int r = first; r < first + AHEAD; r++)
      if (last + r < end) w[r - first] = c.weight[(last + r) * c.stride];
#pragma unroll
    for (int r = first; r < first + AHEAD; r++)
      if (last + r < end) chain = fma(x[r], w[r - first], chain);
  }
  return chain;
}

static __device__ inline void columns_continue(struct step *s, int turn, int j, int all, int width)
{
  int g = s->own_first, end = min_of(s->start[g + 1], s->hi) - s->lo;
#pragma unroll 1
  for (int v = threadIdx.x; v < all; v += THREADS)
    own_send(s, turn, v, width, g, chain_continue(s, turn, j, v, end));
}

/* Join the sum blocks by the tree of (N.0), two columns per warp, and send the sums to all blocks.
 * Lane l has the sum block whose number modulo 32 is l; sum blocks without rows are skipped.  The
 * order of two addends does not matter. */
static __device__ inline void columns_join(struct step *s, int turn, int width, int count)
{
  int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, shift = s->a.group_first % WARP;
  unsigned present = __funnelshift_l(s->present, s->present, shift);
  int first = __ffs((int)present) - 1, last = 31 - __clz((int)present),
      is_mine = present >> lane & 1;
  double *parts = (double *)in_shared(here_parts(s, turn));
  double *part = parts + ((lane - shift) & (WARP - 1)) * width;
#pragma unroll 1
  for (int w = 2 * warp; w < count; w += 2 * WARPS) {
    int other = min_of(w + 1, count - 1);
    double x = is_mine ? part[w] : 0, y = is_mine ? part[other] : 0;
#pragma unroll 1
    for (int half = 1; (first ^ last) >= half; half *= 2) {
      int at = lane & -half, mine = (present >> at & ((1u << half) - 1)) != 0;
      int theirs = (present >> (at ^ half) & ((1u << half) - 1)) != 0;
      double xx = __shfl_xor_sync(FULL_WARP, x, half), yy = __shfl_xor_sync(FULL_WARP, y, half);
      x = !theirs ? x : mine ? x + xx : xx;
      y = !theirs ? y : mine ? y + yy : yy;
    }
    if (lane == first) part[w] = x;
    if (lane == first) part[other] = y;
  }
  __syncthreads();
  const double *whole = parts + ((first - shift) & (WARP - 1)) * width;
  double *sums = here_sums(s) + s->rank * width;
#pragma unroll 1
  for (int to = warp; to < s->size; to += WARPS)
#pragma unroll 1
    for (int w = lane; w < count; w += WARP) here_send(s, HERE_SUMS, sums + w, to, whole[w]);
}

/* Sums over all rows, weighted by their codes (j < 0, D sums) or by their products with direction
 * j, into here_sums() of every block.  turn: the number of earlier calls. */
static __device__ __noinline__ void columns_here(struct step *shared, int turn, int j)
{
  struct step *s = step_shared(shared);
  int all = (j < 0 ? D : 1) * s->a.p, width = D == 1 || j < 0 ? s->width : here_width(s, all);
  int first = s->rank * width;
  int count = all - first < width ? max_of(all - first, 0) : width;
  if (s->continues) here_expect(s, HERE_OPEN, all);
  here_expect(s, HERE_PARTS, __popc(s->present) * count);
  here_expect(s, HERE_SUMS, all);
  columns_begin(s, turn, j, all, width);
  if (s->continues) columns_continue(s, turn, j, all, width);
  here_wait(s, HERE_PARTS, turn);
  columns_join(s, turn, width, count);
  here_wait(s, HERE_SUMS, turn);
}

#endif
