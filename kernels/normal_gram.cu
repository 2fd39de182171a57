/* SPDX-License-Identifier: BSD-3-Clause
 * normal_gram: continues own rows of the Gram matrix (N.20).
 *
 * grid    (count, ceil(k / NORMAL_RANGE)): an own atom, a range of columns
 * block   one warp
 * shared  min(k, NORMAL_RANGE) reals: the range of the row
 * sums    a chain of fma for each entry of the matrix, over the atom's entries, ascending
 *
 * The rows that have the atom are taken one after another, with one lane for each of a row's
 * entries, which have different atoms.  Rows and entries are loaded long before they are used,
 * because the chain of an atom that nearly all rows have determines the time. */
#include "forms.h"
#include "warp.h"

enum { AHEAD = 16 };

/* The position in an atom's entries.  If rows have more than WARP entries, a row takes several
 * steps. */
struct walk {
  const struct normal_entry *at, *end;
  int step_entry, step_row; /* steps of the next entry and of the next row to be loaded */
  int steps;                /* steps of a row */
};

/* A lane's part of a step. */
struct part {
  int place; /* index in the range; negative, or at least its width, if outside */
  float code, other;
};

static __device__ inline struct normal_entry entry_order(struct walk *w)
{
  struct normal_entry e = {-1, 0};
  if (w->at < w->end) e = *w->at;
  if (++w->step_entry == w->steps) {
    w->step_entry = 0;
    w->at++;
  }
  return e;
}

static __device__ inline struct part part_order(const struct normal_args *a, struct walk *w,
                                                struct normal_entry e, int low)
{
  struct part part = {-1, e.code, 0};
  int j = w->step_row * WARP + threadIdx.x;
  long long at = (long long)e.row * a->s + j;
  if (e.row >= 0 && j < a->s) {
    part.place = a->slots[at] - low;
    part.other = a->codes[at];
  }
  if (++w->step_row == w->steps) w->step_row = 0;
  return part;
}

static __device__ inline void entries_accumulate(const struct normal_args *a, struct walk w,
                                                 int low, int width, double *sums)
{
  long long steps = (w.end - w.at) * w.steps;
  struct normal_entry entry[AHEAD];
  struct part part[AHEAD];
#pragma unroll
  for (int u = 0; u < AHEAD; u++) entry[u] = entry_order(&w);
#pragma unroll
  for (int u = 0; u < AHEAD; u++) {
    part[u] = part_order(a, &w, entry[u], low);
    entry[u] = entry_order(&w);
  }
#pragma unroll 1
  for (long long i = 0; i < steps; i += AHEAD)
#pragma unroll
    for (int u = 0; u < AHEAD; u++) {
      struct part now = part[u];
      part[u] = part_order(a, &w, entry[u], low);
      entry[u] = entry_order(&w);
      if ((unsigned)now.place < (unsigned)width)
        sums[now.place] = fma((double)now.code, (double)now.other, sums[now.place]);
      __syncwarp();
    }
}

extern "C" __global__ void __launch_bounds__(WARP)
    normal_gram(const __grid_constant__ struct normal_args a)
{
  extern __shared__ __align__(16) double sums[];
  int atom = normal_own_atom(blockIdx.x, a.first, a.step), low = blockIdx.y * NORMAL_RANGE;
  int width = a.k - low < NORMAL_RANGE ? a.k - low : NORMAL_RANGE;
  int begin = a.start[atom], end = a.start[atom + 1];
  double *gram = a.gram + (long long)blockIdx.x * a.k + low;
  if (begin == end) return;
#pragma unroll 8
  for (int i = threadIdx.x; i < width; i += WARP) sums[i] = gram[i];
  __syncwarp();
  struct walk w = {a.entries + begin, a.entries + end, 0, 0, (a.s + WARP - 1) / WARP};
  entries_accumulate(&a, w, low, width, sums);
#pragma unroll 8
  for (int i = threadIdx.x; i < width; i += WARP) gram[i] = sums[i];
}
