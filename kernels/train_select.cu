/* SPDX-License-Identifier: BSD-3-Clause
 * train_select: the largest positive scores of each row, in ascending order of atoms (N.43).
 *
 * grid    ceil(n / TRAIN_SELECT_WARPS)
 * block   TRAIN_SELECT_WARPS warps: one warp per row
 * shared  static: candidates, and counts of each digit, per warp
 * `most` entries are wanted.  Take the `most` groups of columns with the largest maxima.  No entry
 * is below the smallest of these maxima, so only groups that reach it have to be searched.  If
 * there are too many candidates in them, fewer than `most` positive maxima, or no maxima, the whole
 * row is searched. */
#include "cut.h"
#include "train_types.h"

struct row {
  const struct train_select_args *a;
  const float *values, *maxima;
  int *index; /* index and value: the row's entries, which are written */
  float *value;
};

/* The sort key of a score and its atom: the larger score first, and of equal scores the smaller
 * atom. */
static __device__ inline unsigned long long candidate_of(float value, int atom)
{
  return order_of(value, atom);
}

/* Write the entries of a row: the scores that reach the cut, in ascending order of atoms.  Returns
 * their number. */
static __device__ inline int row_position(const struct row *r, struct encoder_cut cut)
{
  int lane = threadIdx.x % WARP, n = 0;
  for (int first = 0; first < r->a->stride; first += WARP) {
    float value = r->values[first + lane];
    int key = __float_as_int(value);
    unsigned tied = __ballot_sync(FULL_WARP, key == cut.key);
    int kept = key > cut.key || (key == cut.key && lanes_before(tied) < cut.ties);
    unsigned mask = __ballot_sync(FULL_WARP, kept);
    if (kept) {
      r->index[n + lanes_before(mask)] = first + lane;
      r->value[n + lanes_before(mask)] = value;
    }
    n += __popc(mask);
    cut.ties = cut.ties > __popc(tied) ? cut.ties - __popc(tied) : 0;
  }
  return n;
}

/* Select by a search of all values. */
static __device__ inline int row_scan(const struct row *r, int *bins)
{
  struct encoder_cut cut = {0, 0};
  if (values_count(r->values, r->a->stride) > r->a->most)
    cut = cut_find(r->values, r->a->stride, r->a->most, bins);
  return row_position(r, cut);
}

/* Collect the scores whose key is at least `key`, in ascending order of atoms.  Only groups whose
 * maximum reaches `key` are read.  Returns the number of scores, or -1 if there are too many. */
static __device__ inline int groups_collect(const struct row *r, int key,
                                            unsigned long long *candidates)
{
  const struct train_select_args *a = r->a;
  int lane = threadIdx.x % WARP, n = 0;
  for (int first = 0; first < a->groups; first += WARP) {
    int has = first + lane < a->groups && __float_as_int(r->maxima[first + lane]) >= key;
    unsigned groups = __ballot_sync(FULL_WARP, has);
    for (; groups; groups &= groups - 1) {
      int begin = (first + __ffs(groups) - 1) * a->group;
      for (int c = begin + lane; c - lane < begin + a->group; c += WARP) {
        float value = c < a->stride ? r->values[c] : 0;
        unsigned mask = __ballot_sync(FULL_WARP, __float_as_int(value) >= key);
        if (n + __popc(mask) > TRAIN_CANDIDATES) return -1;
        if (__float_as_int(value) >= key)
          candidates[n + lanes_before(mask)] = candidate_of(value, c);
        n += __popc(mask);
      }
    }
  }
  __syncwarp();
  return n;
}

/* Select the first `most` of n candidates in the order of candidate_of().  Write them in ascending
 * order of atoms. */
static __device__ inline void candidates_scatter(const struct row *r,
                                                 const unsigned long long *candidates, int n)
{
  int lane = threadIdx.x % WARP, placed = 0;
  for (int first = 0; first < n; first += WARP) {
    int i = first + lane, before = 0;
    unsigned long long own = i < n ? candidates[i] : 0;
    for (int j = 0; j < n; j++) before += candidates[j] > own;
    int kept = i < n && before < r->a->most;
    unsigned mask = __ballot_sync(FULL_WARP, kept);
    if (kept) {
      r->index[placed + lanes_before(mask)] = (int)~(unsigned)own;
      r->value[placed + lanes_before(mask)] = __int_as_float((int)(own >> 32));
    }
    placed += __popc(mask);
  }
}

/* Select the entries of a row; returns their number. */
static __device__ inline int row_select(const struct row *r, unsigned long long *candidates,
                                        int *bins)
{
  const struct train_select_args *a = r->a;
  if (!r->maxima || values_count(r->maxima, a->groups) < a->most) return row_scan(r, bins);
  int n = groups_collect(r, cut_find(r->maxima, a->groups, a->most, bins).key, candidates);
  if (n < 0) return row_scan(r, bins);
  candidates_scatter(r, candidates, n);
  return a->most;
}

extern "C" __global__ void __launch_bounds__(TRAIN_SELECT_WARPS *WARP)
    train_select(const __grid_constant__ struct train_select_args a)
{
  __shared__ unsigned long long candidates[TRAIN_SELECT_WARPS][TRAIN_CANDIDATES];
  __shared__ int bins[TRAIN_SELECT_WARPS][DIGITS];
  int warp = threadIdx.x / WARP;
  long long at = (long long)blockIdx.x * TRAIN_SELECT_WARPS + warp;
  if (at >= a.n) return;
  struct row r = {&a, a.values + at * a.stride, a.maxima ? a.maxima + at * a.groups : 0,
                  a.index + at * a.most, a.value + at * a.most};
  int n = row_select(&r, candidates[warp], bins[warp]);
  if (threadIdx.x % WARP == 0) a.count[at] = n;
}
