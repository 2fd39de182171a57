/* SPDX-License-Identifier: BSD-3-Clause
 * joint_add: adds a batch of rows to S (N.18).
 * grid    (k, the largest number of borders of an atom): an atom, and one of its columns of S
 * block   JOINT_THREADS: the entries of the column that a row changes
 * sums    a chain of fma for each entry, over the rows of the batch that have the atom, ascending
 *
 * No other block changes the column, so the block takes the rows in their order.  The offsets of
 * the next row are loaded during the work on this one.  E'E of different atoms is read
 * from above the diagonal of S, where it is stored. */
#include "joint_types.h"

/* A row of the atom's list, and the atom's position in it. */
struct visit {
  struct joint_offsets place;
  const int *at, *border;
  int own;
};

static __device__ inline struct visit visit_load(const struct joint_args *a, long long i)
{
  struct visit v;
  int row = a->list_row[i];
  v.own = a->list_at[i];
  v.place = a->places[row];
  v.at = a->at + v.place.entry + row;
  v.border = a->border + v.place.border;
  return v;
}

/* Update column b of the atom in S: its entries on or below the diagonal that the row changes. */
static __device__ inline void row_add(const struct joint_args *a, const struct visit *v, int b)
{
  const double *t = a->t + v->place.border, *y = a->y + v->place.y;
  int column = v->at[v->own] + b, next = v->at[v->own + 1], padded = v->place.padded;
  int to = v->border[column];
  double t_b = t[column];
  for (int i = column + threadIdx.x; i < v->place.width; i += JOINT_THREADS) {
    int from = v->border[i];
    double *entry = a->s + from + to * a->stride;
    const double *ee = i < next ? a->own + (long long)(from / a->d) * a->max_q + b / a->d
                                : a->s + to / a->d + from / a->d * a->stride;
    double sum = fma(*ee, t[i] * t_b, *entry);
#pragma unroll 8
    for (int l = 0; l < v->place.m; l++)
      sum = fma(-y[(long long)l * padded + i], y[(long long)l * padded + column], sum);
    *entry = sum;
  }
}

extern "C" __global__ void __launch_bounds__(JOINT_THREADS, 8)
    joint_add(const __grid_constant__ struct joint_args a)
{
  int atom = blockIdx.x, b = blockIdx.y;
  long long i = a.list_start[atom], end = a.list_start[atom + 1];
  if (i == end || b >= (a.direction[atom + 1] - a.direction[atom]) * a.d) return;
  struct visit now = visit_load(&a, i), next = now;
#pragma unroll 1
  for (; i < end; i++) {
    if (i + 1 < end) next = visit_load(&a, i + 1);
    row_add(&a, &now, b);
    now = next;
    __syncthreads();
  }
}
