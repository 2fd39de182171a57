/* SPDX-License-Identifier: BSD-3-Clause
 * An atom's step: sums over its rows, column by column, where all of them are in the shared memory
 * of the blocks of its cluster.
 *
 * A block adds its own rows, a column a thread.  The rows of a sum block are a chain: where they go
 * on in the next block the sum so far goes there.  What is complete goes to the block that joins
 * the column (N.0), and from there to all.  Groups are sum blocks here.  In the place of rows that
 * are added (step_system.h) stand the complete sums of this block's columns, [2][groups][width],
 * then the sums of all columns so far, from the block before, and the whole sums.
 *
 * What a block waits for comes with a barrier of its own, which knows how many bytes these are.  A
 * block that is ahead sends what comes next at most: it needs all others for more.  A turn's
 * complete sums are overwritten in the turn after the next, when every block has sent what it made
 * of them: it has sent the next turn's, and waits for all of its threads in between. */
#ifndef STEP_HERE_H
#define STEP_HERE_H

#include "barriers.h"
#include "cluster.h"
#include "step_columns.h"

/* Columns that a block joins, of `all`. */
static __device__ inline int here_width(const struct step *s, int all)
{
  return (all + s->size - 1) / s->size;
}

/* The complete sums of a turn; those of a turn are not where those of the next one are. */
static __device__ inline double *here_parts(const struct step *s, int turn)
{
  return s->added + turn % 2 * s->a.groups * here_width(s, D * s->a.p);
}

static __device__ inline double *here_open(const struct step *s)
{
  return s->added + 2 * s->a.groups * here_width(s, D * s->a.p);
}

static __device__ inline double *here_sums(const struct step *s)
{
  return here_open(s) + D * s->a.p;
}

/* Is there room for all this, and has every block a row, so that none can be left behind by more
 * than a turn?  Of every block the same. */
static __device__ inline int here_is_room(const struct step *s)
{
  int reals = 2 * (s->a.groups * here_width(s, D * s->a.p) + D * s->a.p);
  return s->a.group_shift == 0 && s->n <= s->size * s->a.capacity && s->n >= s->size &&
         reals <= step_sum_rows(D, s->a.q) * step_sum_pitch(D, s->a.q);
}

/* Which block has the row at a position? */
static __device__ inline int block_at(const struct step *s, int position)
{
  return (int)((((long long)position + 1) * s->size - 1) / s->n);
}

/* Thread 0: the sum blocks of own rows, and whether the first begins in a block before. */
static __device__ inline void here_find(struct step *s)
{
  int own_first = 0, own_end = 0;
  s->present = 0;
  s->continues = 0;
  s->next = s->lo < s->hi && s->hi < s->n ? block_at(s, s->hi) : 0;
#pragma unroll 1
  for (int g = 0; g < s->a.groups; g++) {
    int first = s->start[g], end = s->start[g + 1];
    if (first == end) continue;
    s->present |= 1u << g;
    if (first >= s->hi || end <= s->lo || s->lo == s->hi) continue;
    if (own_end == 0) own_first = g;
    own_end = g + 1;
    if (first < s->lo) s->continues = 1;
  }
  s->own_first = own_first;
  s->own_end = own_end;
}

/* Thread 0: which of the sum blocks join, and in which order: as a stack of step_columns.h does. */
static __device__ inline void joins_find(struct step *s)
{
  int node[STEP_GROUPS], count = 0, last = -1;
  unsigned levels = 0;
  s->joins = 0;
  s->first_present = s->present ? __ffs((int)s->present) - 1 : 0;
#pragma unroll 1
  for (unsigned left = s->present; count > 1 || left; left &= left - 1) {
    int g = __ffs((int)left) - 1, block = g + s->a.group_first;
    int level = !left ? 32 : last < 0 ? 0 : 31 - __clz(last ^ block);
#pragma unroll 1
    while (levels && __ffs((int)levels) - 1 < level) {
      count--;
      s->left[s->joins] = (unsigned char)node[count - 1];
      s->right[s->joins++] = (unsigned char)node[count];
      levels &= levels - 1;
    }
    if (!left) break;
    if (last >= 0) levels |= 1u << level;
    node[count++] = g;
    last = block;
  }
}

/* Thread 0, once: the barriers. */
static __device__ inline void here_begin(struct step *s)
{
#if __CUDA_ARCH__ >= 900
  for (int i = 0; i < HERE_BARRIERS; i++) barrier_begin(&s->barriers[i], 1);
  barriers_publish();
#endif
}

/* Say how many numbers a turn brings to this block.  One that is alone, in no cluster, has none of
 * a cluster's instructions. */
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

/* They are there, for all threads. */
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

/* The sum blocks first .. end - 1 of own rows, in column v; one that goes on here, and then is the
 * only one, from `chain`. */
static __device__ inline void column_add_own(struct step *s, int turn, int j, int v, int width,
                                             int first, int end, double chain)
{
  enum { AHEAD = 8 };
  int p = s->a.p, pitch = s->pitch, stride = j < 0 ? D : 1, lo = s->lo, hi = s->hi;
  int vector = D == 1 || j >= 0 ? 0 : v / p;
  const double *row = in_shared(s->rows) + v - vector * p;
  const double *weight = in_shared(j < 0 ? s->t : s->weight) + vector;
  const int *start = in_shared(s->start);
  double *parts = here_parts(s, turn) + v % width;
#pragma unroll 1
  for (int g = end - 1; g >= first; g--, chain = 0) { /* what others wait for comes first */
    int begin = start[g], over = start[g + 1];
    if (begin == over) continue;
    int to = min_of(over, hi) - lo;
#pragma unroll 1
    for (int i = begin > lo ? begin - lo : 0; i < to; i += AHEAD) {
      double x[AHEAD], w[AHEAD];
#pragma unroll
      for (int r = 0; r < AHEAD; r++)
        if (i + r < to) {
          x[r] = row[(i + r) * pitch];
          w[r] = weight[(i + r) * stride];
        }
#pragma unroll
      for (int r = 0; r < AHEAD; r++)
        if (i + r < to) chain = fma(x[r], w[r], chain);
    }
    if (over > hi)
      here_send(s, HERE_OPEN, here_open(s) + v, s->next, chain);
    else
      here_send(s, HERE_PARTS, parts + g * width, v / width, chain);
  }
}

/* The complete sums of a column, which stand `width` apart, joined by the tree: in the place of the
 * first. */
static __device__ inline void here_join(const struct step *s, double *sums, int width)
{
  sums = (double *)in_shared(sums);
#pragma unroll 1
  for (int i = 0; i < s->joins; i++) {
    double *to = sums + s->left[i] * width;
    *to = *to + sums[s->right[i] * width];
  }
}

/* The sums over all rows, weighted by their codes (j < 0: D of them) or by their products with
 * direction j, to here_sums() of every block.  turn: how often this was done before. */
static __device__ __noinline__ void columns_here(struct step *shared, int turn, int j)
{
  struct step *s = step_shared(shared);
  int all = (j < 0 ? D : 1) * s->a.p, width = here_width(s, all), first = s->rank * width;
  int count = all - first < width ? max_of(all - first, 0) : width, own = s->own_first;
  here_expect(s, HERE_OPEN, s->continues ? all : 0);
  here_expect(s, HERE_PARTS, __popc(s->present) * count);
  here_expect(s, HERE_SUMS, all);
#pragma unroll 1
  for (int part = 0; part < 2; part++) { /* what begins here, and what goes on here */
    int begin = part ? own : own + s->continues, end = part ? own + s->continues : s->own_end;
    if (part) here_wait(s, HERE_OPEN, turn);
#pragma unroll 1
    for (int v = threadIdx.x; v < all && begin < end; v += THREADS)
      column_add_own(s, turn, j, v, width, begin, end, part ? here_open(s)[v] : 0);
  }
  here_wait(s, HERE_PARTS, turn);
#pragma unroll 1
  for (int w = threadIdx.x; w < count; w += THREADS) here_join(s, here_parts(s, turn) + w, width);
  __syncthreads();
  const double *whole = in_shared(here_parts(s, turn) + s->first_present * width);
#pragma unroll 1
  for (int i = threadIdx.x; i < count * s->size; i += THREADS) {
    int to = i / count, w = i % count;
    here_send(s, HERE_SUMS, here_sums(s) + first + w, to, whole[w]);
  }
  here_wait(s, HERE_SUMS, turn);
}

#endif
