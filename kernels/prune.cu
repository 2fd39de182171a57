/* SPDX-License-Identifier: BSD-3-Clause
 * prune: finds each row's threshold from its list of candidates (doc/certified.md, C.6), and proves
 * that the estimate of threshold.cu was not too high.  Then it writes the pairs of row and atom for
 * rescore.cu.  Without that proof it writes why the row takes the direct path, which scores all
 * atoms exactly.
 *
 * grid    ceil(n / SCREEN_ROW_WARPS) blocks of SCREEN_ROW_WARPS warps; one warp per row
 * shared  dynamic: [SCREEN_ROW_WARPS][capacity] keys of the lists
 * -D TEST_HOOKS (test_hooks.h) */
#include "screen_types.h"
#include "test_hooks.h"
#include "warp.h"

static __device__ inline int slot_of(const struct screen_args *a, int position)
{
  return (int)((long long)position * a->turn % a->slots);
}

/* The keys of a row: their number, the least and the largest. */
struct keys {
  int count, least, largest;
};

/* key[count] <- the key of each list entry: the bits of its size, or -1 if the job excludes the
 * atom.  Returns a summary of all keys that are not -1. */
static __device__ inline struct keys keys_collect(const struct screen_args *a, long long row,
                                                  int count, int *key)
{
  const struct candidate *list = a->lists + row * a->capacity;
  const int *excluded = a->excluded + row * a->excluded_stride;
  struct keys k = {0, KEY_INFINITE, 0};
  for (int i = threadIdx.x % WARP; i < count; i += WARP) {
    struct candidate c = list[i];
    int allowed = 1;
    if (a->excluded_count) {
      int atom = a->atom_of[slot_of(a, c.atom)];
      for (int e = 0; e < a->excluded_count; e++) allowed &= excluded[e] != atom;
    }
    int own = magnitude(c.value);
    key[i] = allowed ? own : -1;
    k.count += allowed;
    if (allowed && own < k.least) k.least = own;
    if (allowed && own > k.largest) k.largest = own;
  }
  __syncwarp();
  k.count = __reduce_add_sync(FULL_WARP, k.count);
  k.least = __reduce_min_sync(FULL_WARP, k.least);
  k.largest = __reduce_max_sync(FULL_WARP, k.largest);
  return k;
}

static __device__ inline int keys_reach(const int *key, int count, int threshold)
{
  int n = 0;
  for (int i = threadIdx.x % WARP; i < count; i += WARP) n += key[i] >= threshold;
  return __reduce_add_sync(FULL_WARP, n);
}

/* The least key that is not below `low`. */
static __device__ inline int keys_least(const int *key, int count, int low)
{
  int least = KEY_INFINITE;
  for (int i = threadIdx.x % WARP; i < count; i += WARP)
    if (key[i] >= low && key[i] < least) least = key[i];
  return __reduce_min_sync(FULL_WARP, least);
}

/* The top_k-th largest key.  k is the summary of the keys; there are top_k or more. */
static __device__ inline int keys_rank(const int *key, int count, int top_k, struct keys k)
{
  int low = k.least, high = k.largest + 1, reached = k.count;
  while (high - low > 1 && reached > top_k) {
    int middle = low + (high - low) / 2, some = keys_reach(key, count, middle);
    if (some < top_k) {
      high = middle;
    } else {
      low = middle;
      reached = some;
    }
  }
  return keys_least(key, count, low);
}

/* The totals of a block: its rows by path; the pairs of its certified rows, and where these pairs
 * begin. */
struct block {
  int paths[PATHS], max_pairs, pairs, start;
};

static __device__ inline void block_begin(struct block *b)
{
  for (int i = 0; i < PATHS; i++) b->paths[i] = 0;
  b->max_pairs = b->pairs = 0;
}

/* Returns the path of the row.  If this is PATH_CERTIFIED, *threshold <- the row's threshold, and
 * *held <- the number of list entries that reach it.  Any other path says why the row takes the
 * direct path. */
static __device__ inline int row_prune(const struct screen_args *a, int row, int *key,
                                       int *threshold, int *held)
{
  int count = a->counts[row];
  if (a->path[row] != PATH_CERTIFIED) return a->path[row];
  if (count > a->capacity) return PATH_LIST;
  struct keys k = keys_collect(a, row, count, key);
  if (k.count < a->top_k) return PATH_ESTIMATE;
  /* Factors for sizes that were truncated to 16 bits, and for roots of f32 sums
   * (doc/certified.md). */
  float exact = 1 - test_of(a).bound, nth = __int_as_float(keys_rank(key, count, a->top_k, k));
  float tau = nth * (1 - 0x1p-17f * exact) - 2 * a->reach[row];
  float size = fmaxf(tau * (1 - 0x1p-13f * exact), 0);
  if (!(a->threshold[row] <= size)) return PATH_ESTIMATE;
  /* With a threshold of 0 the row may need atoms with value +0, but lists have no sizes of 0. */
  if (a->positive && !(size > 0)) return PATH_ESTIMATE;
  *threshold = __float_as_int(size);
  *held = keys_reach(key, count, *threshold);
  return PATH_CERTIFIED;
}

/* Write the pairs of a row from index `start` on: one for each list entry that reaches the
 * threshold. */
static __device__ inline void pairs_write(const struct screen_args *a, int row, int start,
                                          const int *key, int threshold)
{
  const struct candidate *list = a->lists + (long long)row * a->capacity;
  int lane = threadIdx.x % WARP, count = a->counts[row];
  for (int first = 0; first < count; first += WARP) {
    int i = first + lane, kept = i < count && key[i] >= threshold;
    unsigned mask = __ballot_sync(FULL_WARP, kept);
    struct screen_pair pair = {row, kept ? slot_of(a, list[i].atom) : 0};
    if (kept) a->pairs[start + lanes_before(mask)] = pair;
    start += __popc(mask);
  }
}

/* The pairs of a row do not fit from `start` on: fill the array from there with pairs of no row. */
static __device__ inline void pairs_clear(const struct screen_args *a, int start)
{
  struct screen_pair none = {-1, 0};
  for (int i = start + threadIdx.x % WARP; i < a->pairs_capacity; i += WARP) a->pairs[i] = none;
}

/* One thread adds the totals of the block, since atomics of every row would wait for each other. */
static __device__ inline void block_total(const struct screen_args *a, struct block *b)
{
  for (int i = 0; i < PATHS; i++)
    if (b->paths[i]) atomicAdd(&a->totals->rows[i], b->paths[i]);
  if (!b->pairs) return;
  b->start = atomicAdd(&a->totals->pairs, b->pairs);
  atomicMax(&a->totals->max_pairs, b->max_pairs);
}

extern "C" __global__ void __launch_bounds__(SCREEN_ROW_WARPS *WARP)
    prune(const __grid_constant__ struct screen_args a)
{
  extern __shared__ int keys[];
  __shared__ struct block b;
  int row = blockIdx.x * SCREEN_ROW_WARPS + threadIdx.x / WARP, lane = threadIdx.x % WARP;
  int *key = keys + threadIdx.x / WARP * a.capacity, threshold = 0, held = 0, before = 0, path = -1;
  if (threadIdx.x == 0) block_begin(&b);
  __syncthreads();
  if (row < a.n) path = row_prune(&a, row, key, &threshold, &held);
  if (path >= 0 && lane == 0) {
    atomicAdd(&b.paths[path], 1);
    atomicMax(&b.max_pairs, held);
    before = atomicAdd(&b.pairs, held);
  }
  __syncthreads();
  if (threadIdx.x == 0) block_total(&a, &b);
  __syncthreads();
  if (path < 0) return;
  int start = b.start + __shfl_sync(FULL_WARP, before, 0);
  if (path == PATH_CERTIFIED && start > a.pairs_capacity - held) {
    pairs_clear(&a, start);
    path = PATH_LIST;
    if (lane == 0) atomicAdd(&a.totals->crowded, 1);
    if (lane == 0) atomicAdd(&a.totals->crowded_pairs, held);
  }
  if (path == PATH_CERTIFIED)
    pairs_write(&a, row, start, key, threshold);
  else
    held = 0;
  if (lane) return;
  a.path[row] = path;
  a.start[row] = start;
  a.held[row] = held;
  if (path != PATH_CERTIFIED) a.left[atomicAdd(&a.totals->left, 1)] = row;
}
