/* SPDX-License-Identifier: BSD-3-Clause
 * Selection of route: from the scores of a tile to the candidate lists of its rows.
 *
 * A warp has 16 rows, 8 per half warp.  Few scores pass the threshold of a list.  So a tile is
 * tested with one comparison per score, and only rows that passed cost more. */
#ifndef SELECT_H
#define SELECT_H

#define FRESH (CAPACITY > 256 ? 4 : ATOMS_THREAD / 2) /* long lists need the registers */
#include "lists.h"
#include "positive.h"
#include "stages.h"

/* Find the rows that have a score that may be selected, and store their scores in scratch.  Bit i
 * of the result is 1 if row i of either half warp has such a score; row i of both half warps is
 * then stored. */
static __device__ inline unsigned scores_keep(const float z[8][ATOMS_THREAD], const int *threshold,
                                              float *scratch)
{
  unsigned rows = 0;
  int lane = threadIdx.x % WARP;
#pragma unroll
  for (int i = 0; i < 8; i++) {
    float bound = bound_of(threshold[lane / 16 * 8 + i]);
    int any = 0;
#pragma unroll
    for (int j = 0; j < ATOMS_THREAD; j++) any |= is_wanted(z[i][j], bound);
    if (__any_sync(FULL_WARP, any)) {
#pragma unroll
      for (int j = 0; j < ATOMS_THREAD; j++)
        scratch[(i * ATOMS_THREAD + j) * WARP + lane] = z[i][j];
      rows |= 1u << i;
    }
  }
  return rows;
}

/* The rows of a warp in the current row tile. */
struct target {
  long long row;           /* number of the warp's first row */
  int first, part;         /* first slot of the atom tile; this block's lists are [row][part] */
  int *threshold, *length; /* [16] */
  const float *scratch;
};

static __device__ inline struct candidate *target_list(const struct route_args *a,
                                                       const struct target *t, int row)
{
  return a->lists + ((t->row + row) * a->parts + t->part) * CAPACITY;
}

/* Is the atom of this slot one of the row's excluded atoms? */
static __device__ inline int is_excluded(const struct route_args *a, long long row, int slot)
{
  const int *excluded = a->excluded + row_named(a, row) * a->excluded_stride;
  int found = 0, atom = a->atom_of[slot];
  for (int e = 0; e < a->excluded_count; e++) found |= excluded[e] == atom;
  return found;
}

/* Set the keys of excluded atoms to -1.  A lane has FRESH slots. */
static __device__ inline void keys_exclude(const struct route_args *a, long long row,
                                           const int *slot, int *key)
{
  const int *excluded = a->excluded + row_named(a, row) * a->excluded_stride;
  int atom[FRESH];
#pragma unroll
  for (int i = 0; i < FRESH; i++) atom[i] = key[i] >= 0 ? a->atom_of[slot[i]] : -1;
#pragma unroll 1
  for (int e = 0; e < a->excluded_count; e++) {
    int no = excluded[e];
#pragma unroll
    for (int i = 0; i < FRESH; i++)
      if (atom[i] == no) key[i] = -1;
  }
}

static __device__ inline void score_bad(const struct route_args *a, long long row, int slot)
{
  atomicMin(a->bad, (unsigned long long)row_named(a, row) << 32 | (unsigned)a->atom_of[slot]);
}

/* Index in the tile of atom j of this lane: 64 (j / 4) + 4 (lane % 16) + j % 4. */
static __device__ inline int tile_offset(int j)
{
  return j / 4 * 64 + threadIdx.x % 16 * 4 + j % 4;
}

/* The whole warp adds WARP FRESH scores of one row, from atom `first` of the tile on, to the row's
 * list. */
static __device__ inline void scores_absorb(const struct route_args *a, const struct target *t,
                                            int row, int first)
{
  int lane = threadIdx.x % WARP, key[FRESH], slot[FRESH], threshold = t->threshold[row];
  float value[FRESH];
#pragma unroll
  for (int i = 0; i < FRESH; i++) {
    int offset = first + i * WARP + lane, j = offset / 64 * 4 + offset % 4;
    value[i] =
        value_of(t->scratch[(row % 8 * ATOMS_THREAD + j) * WARP + row / 8 * 16 + offset / 4 % 16]);
    slot[i] = t->first + offset;
    key[i] = slot[i] < a->slots ? magnitude(value[i]) : -1;
    if (key[i] >= KEY_INFINITE) {
      score_bad(a, t->row + row, slot[i]);
      key[i] = -1;
    }
  }
  if (a->excluded_count) keys_exclude(a, t->row + row, slot, key);
  int length = list_absorb(target_list(a, t, row), t->length[row], &threshold, a->top_k,
                           a->ascending, a->ascending ? 0 : a->atom_of, value, key, slot);
  __syncwarp();
  if (lane == 0) {
    t->threshold[row] = threshold;
    t->length[row] = length;
  }
  __syncwarp();
}

/* Add all scores of one row; the list is pruned if necessary. */
static __device__ inline void row_absorb(const struct route_args *a, const struct target *t,
                                         int row)
{
#pragma unroll 1
  for (int first = 0; first < ATOMS; first += FRESH * WARP) scores_absorb(a, t, row, first);
}

/* Each half warp appends the scores of its row i that may be selected.  If they do not fit in the
 * list, the whole warp adds the row with row_absorb() instead. */
static __device__ inline void rows_append(const struct route_args *a, const struct target *t, int i)
{
  int lane = threadIdx.x % WARP, half = lane / 16, row = half * 8 + i, length = t->length[row];
  float bound = bound_of(t->threshold[row]);
  const float *score = t->scratch + i * ATOMS_THREAD * WARP + lane;
  unsigned wanted = 0, half_lanes = 0xffffu << 16 * half;
#pragma unroll
  for (int j = 0; j < ATOMS_THREAD; j++) wanted |= (unsigned)is_wanted(score[j * WARP], bound) << j;
  unsigned sums = __reduce_add_sync(FULL_WARP, __popc(wanted) << 16 * half);
  int sum = (int)(sums >> 16 * half & 0xffff);
  unsigned full = __ballot_sync(FULL_WARP, length + sum > CAPACITY);
#pragma unroll 1
  for (int h = 0; h < 2; h++)
    if (full >> 16 * h & 1) row_absorb(a, t, 8 * h + i);
  if (full & half_lanes) wanted = 0;
  struct candidate *list = target_list(a, t, row);
  while (__any_sync(FULL_WARP, wanted)) {
    int j = __ffs(wanted) - 1, slot = t->first + tile_offset(j);
    struct candidate c = {wanted ? value_of(score[j * WARP]) : 0, slot};
    int kept = wanted && slot < a->slots;
    if (kept && magnitude(c.value) >= KEY_INFINITE) {
      score_bad(a, t->row + row, slot);
      kept = 0;
    }
    if (kept && a->excluded_count) kept = !is_excluded(a, t->row + row, slot);
    unsigned mask = __ballot_sync(FULL_WARP, kept) & half_lanes;
    if (kept) list[length + lanes_before(mask)] = c;
    length += __popc(mask);
    wanted &= wanted - 1;
  }
  __syncwarp();
  if (lane % 16 == 0 && !(full & half_lanes)) t->length[row] = length;
}

#endif
