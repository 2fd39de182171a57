/* SPDX-License-Identifier: BSD-3-Clause
 * Candidate lists.  There is a list for each row, which one warp keeps.  Candidates are appended; a
 * full list is pruned (N.2).
 *
 * -D CAPACITY  entries that a list can hold: a multiple of 32, at least 2 top_k.
 * The including file defines FRESH, the number of candidates that a lane brings to one call.
 * A key is the bit pattern of a magnitude (warp.h); -1 means that there is no candidate.
 * Pruning keeps the best top_k entries and some more.  Any threshold that at least top_k entries
 * reach is valid, and a rough one is found in fewer steps. */
#ifndef LISTS_H
#define LISTS_H

#include "warp.h"

enum { HELD = CAPACITY / WARP, MAX_ATOM = 0x7fffffff };

/* The number of this lane's `count` keys that are at least the threshold. */
static __device__ inline int keys_from(const int *key, int count, int threshold)
{
  int n = 0;
#pragma unroll
  for (int i = 0; i < count; i++) n += key[i] >= threshold;
  return n;
}

static __device__ inline int ties_to(const int *key, const int *atom, int count, int bits, int last)
{
  int n = 0;
#pragma unroll
  for (int i = 0; i < count; i++) n += key[i] == bits && atom[i] <= last;
  return n;
}

/* A bound: the list keeps entries whose key is above `bits`, and those whose key equals `bits` and
 * whose atom is at most `last`. */
struct bound {
  int bits, last;
};

static __device__ inline int is_kept(struct bound b, int key, int atom)
{
  return key > b.bits || (key == b.bits && atom <= b.last);
}

/* Find a bound that keeps at least top_k and at most max_kept of the `all` entries.  A lane has
 * `count` keys; those of entries are at least `low`, and the others are -1. */
static __device__ inline struct bound bound_find(const int *key, const int *atom, int count,
                                                 int low, int all, int top_k, int max_kept)
{
  int high = 0;
#pragma unroll
  for (int i = 0; i < count; i++) high = key[i] > high ? key[i] : high;
  high = __reduce_max_sync(FULL_WARP, high) + 1;
  while (all > max_kept && high - low > 1) {
    int middle = low + (high - low) / 2;
    int n = __reduce_add_sync(FULL_WARP, keys_from(key, count, middle));
    if (n >= top_k) {
      low = middle;
      all = n;
    } else {
      high = middle;
    }
  }
  struct bound b = {low, MAX_ATOM};
  if (all <= max_kept) return b;
  int above = __reduce_add_sync(FULL_WARP, keys_from(key, count, high));
  int none = -1;
  while (all > max_kept) {
    int middle = none + (int)((unsigned)(b.last - none) / 2);
    int n = above + __reduce_add_sync(FULL_WARP, ties_to(key, atom, count, low, middle));
    if (n >= top_k) {
      b.last = middle;
      all = n;
    } else {
      none = middle;
    }
  }
  return b;
}

/* Move the entries that the bound keeps to the front of the list; returns their number.  value, key
 * and atom are those of the list's entries, lane by lane.  If is_named, the atom that is stored is
 * atom[]; otherwise it is the name in the list.  An entry moves to its own index or to a lower one,
 * which has been read already. */
static __device__ inline int list_prune(struct candidate *list, const float *value, const int *key,
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

/* A lane brings FRESH candidates, each with a name, which its entry stores.  Append the candidates
 * that may still be selected; returns the new length of the list.  *threshold is the smallest key
 * that may still be selected.  If atom_of is 0, the smaller name wins a tie.  Otherwise names are
 * slots, and the smaller atom_of[name] wins.
 * ascending: names of later calls are larger, and so lose ties. */
static __device__ inline int list_absorb(struct candidate *list, int length, int *threshold,
                                         int top_k, int ascending, const int *atom_of,
                                         const float *value, const int *key, const int *name)
{
  int lane = threadIdx.x % WARP;
  struct bound b = {*threshold, MAX_ATOM};
  int all = length + __reduce_add_sync(FULL_WARP, keys_from(key, FRESH, *threshold));
  int both[HELD + FRESH], atom[HELD + FRESH];
  float held[HELD];
#pragma unroll
  for (int i = 0; i < FRESH; i++) {
    both[HELD + i] = key[i] >= *threshold ? key[i] : -1;
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
    int low = *threshold > 0 ? *threshold - 1 : 0, more = (CAPACITY - top_k) / 4;
    int max_kept = top_k + (more < top_k ? more : top_k);
    b = bound_find(both, atom, HELD + FRESH, low, all, top_k, max_kept);
    *threshold = b.bits + ascending;
    length = list_prune(list, held, both, atom, !atom_of, b);
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
