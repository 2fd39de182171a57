/* SPDX-License-Identifier: BSD-3-Clause
 * Candidate lists of one row each, kept by one warp: appended to, cut when full (N.2).
 *
 * -D CAPACITY  entries a list, a multiple of 32, at least 2 take.
 * The file that includes this defines FRESH, the candidates a lane of one call.
 *
 * A key is a magnitude's (warp.h); -1 is no candidate.
 * A cut keeps the best `take` and some more, since any threshold with at least `take` entries above
 * it is sound and a rough one is found in fewer steps. */
#ifndef LISTS_H
#define LISTS_H

#include "warp.h"

enum { HELD = CAPACITY / WARP, ATOM_MOST = 0x7fffffff };

/* Over the warp: how many of count keys a lane are at least `least`. */
static __device__ inline int keys_from(const int *key, int count, int least)
{
  int n = 0;
#pragma unroll
  for (int i = 0; i < count; i++) n += key[i] >= least;
  return n;
}

static __device__ inline int ties_to(const int *key, const int *atom, int count, int bits, int last)
{
  int n = 0;
#pragma unroll
  for (int i = 0; i < count; i++) n += key[i] == bits && atom[i] <= last;
  return n;
}

/* What a list keeps: keys above bits, and keys equal to bits with atoms up to last. */
struct bound {
  int bits, last;
};

static __device__ inline int is_kept(struct bound b, int key, int atom)
{
  return key > b.bits || (key == b.bits && atom <= b.last);
}

/* A bound that leaves take .. most of the `all` entries: count keys a lane, none below low. */
static __device__ inline struct bound bound_find(const int *key, const int *atom, int count,
                                                 int low, int all, int take, int most)
{
  int high = 0;
#pragma unroll
  for (int i = 0; i < count; i++) high = key[i] > high ? key[i] : high;
  high = __reduce_max_sync(FULL_WARP, high) + 1;
  while (all > most && high - low > 1) {
    int middle = low + (high - low) / 2;
    int n = __reduce_add_sync(FULL_WARP, keys_from(key, count, middle));
    if (n >= take) {
      low = middle;
      all = n;
    } else {
      high = middle;
    }
  }
  struct bound b = {low, ATOM_MOST};
  if (all <= most) return b;
  int above = __reduce_add_sync(FULL_WARP, keys_from(key, count, high));
  int none = -1;
  while (all > most) {
    int middle = none + (int)((unsigned)(b.last - none) / 2);
    int n = above + __reduce_add_sync(FULL_WARP, ties_to(key, atom, count, low, middle));
    if (n >= take) {
      b.last = middle;
      all = n;
    } else {
      none = middle;
    }
  }
  return b;
}

/* Close up the entries that the bound keeps; returns how many.  value and key are the list's, lane
 * by lane; the name is atom, or else what stands in the list.  An entry moves to its own place or
 * to one before, which has been read. */
static __device__ inline int list_cut(struct candidate *list, const float *value, const int *key,
                                      const int *atom, int is_named, struct bound b)
{
  int length = 0;
#pragma unroll
  for (int i = 0; i < HELD; i++) {
    int kept = is_kept(b, key[i], atom[i]);
    struct candidate c = {value[i], atom[i]};
    if (kept && !is_named) c.atom = list[i * WARP + threadIdx.x % WARP].atom;
    unsigned mask = __ballot_sync(FULL_WARP, kept);
    __syncwarp();
    if (kept) list[length + lanes_before(mask)] = c;
    length += __popc(mask);
  }
  return length;
}

/* Append those of FRESH keys a lane that may still be chosen; returns the new length.  *least is
 * the smallest key that is wanted.  `ascending`: names of later calls are larger than all of these,
 * so that they lose ties.  Names decide ties: atoms, or slots that atom_of turns into atoms. */
static __device__ inline int list_absorb(struct candidate *list, int length, int *least, int take,
                                         int ascending, const int *atom_of, const float *value,
                                         const int *key, const int *name)
{
  int lane = threadIdx.x % WARP;
  struct bound b = {*least, ATOM_MOST};
  int all = length + __reduce_add_sync(FULL_WARP, keys_from(key, FRESH, *least));
  int both[HELD + FRESH], atom[HELD + FRESH];
  float held[HELD];
#pragma unroll
  for (int i = 0; i < FRESH; i++) {
    both[HELD + i] = key[i] >= *least ? key[i] : -1;
    atom[HELD + i] = atom_of && both[HELD + i] >= 0 ? atom_of[name[i]] : name[i];
  }
  if (all > CAPACITY) {
#pragma unroll
    for (int i = 0; i < HELD; i++) {
      int at = i * WARP + lane;
      struct candidate none = {0, -1}, old = at < length ? list[at] : none;
      held[i] = old.value;
      both[i] = at < length ? magnitude(old.value) : -1;
      atom[i] = atom_of && at < length ? atom_of[old.atom] : old.atom;
    }
    int low = *least > 0 ? *least - 1 : 0, room = (CAPACITY - take) / 4;
    int most = take + (room < take ? room : take);
    b = bound_find(both, atom, HELD + FRESH, low, all, take, most);
    *least = b.bits + ascending;
    length = list_cut(list, held, both, atom, !atom_of, b);
  }
#pragma unroll
  for (int i = 0; i < FRESH; i++) {
    int kept = is_kept(b, both[HELD + i], atom[HELD + i]);
    unsigned mask = __ballot_sync(FULL_WARP, kept);
    struct candidate c = {value[i], name[i]};
    if (kept) list[length + lanes_before(mask)] = c;
    length += __popc(mask);
  }
  __syncwarp();
  return length;
}

#endif
