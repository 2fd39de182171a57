/* SPDX-License-Identifier: BSD-3-Clause
 * residual: the residuals of rows in f64 at the start of a sweep (N.16); also widens the codes.
 *
 * grid    any number of blocks
 * block   RESIDUAL_THREADS
 * sums    of a column: a chain of fma over the row's vectors, in support order */
#include "step_types.h"

/* Up to RESIDUAL_LIST vectors of a row and their negated codes, in shared memory. */
struct list {
  long long from[RESIDUAL_LIST];
  double code[RESIDUAL_LIST];
};

static __device__ inline int list_fill(struct list *l, const struct residual_args *a, long long row,
                                       int first)
{
  int all = a->s * a->d, count = all - first < RESIDUAL_LIST ? all - first : RESIDUAL_LIST;
  __syncthreads();
  for (int v = threadIdx.x; v < count; v += RESIDUAL_THREADS) {
    long long at = row * all + first + v;
    int atom = a->slots[row * a->s + (first + v) / a->d];
    double code = a->rounded[at];
    a->codes[at] = code;
    l->code[v] = -code;
    l->from[v] = ((long long)atom * a->d + (first + v) % a->d) * a->p;
  }
  __syncthreads();
  return count;
}

extern "C" __global__ void __launch_bounds__(RESIDUAL_THREADS)
    residual(const __grid_constant__ struct residual_args a)
{
  __shared__ struct list list;
  for (long long row = blockIdx.x; row < a.n; row += gridDim.x) {
    int all = a.s * a.d;
    if (all == 0)
      for (int c = threadIdx.x; c < a.p; c += RESIDUAL_THREADS)
        a.residual[row * a.p + c] = a.x[row * a.p + c];
    for (int first = 0; first < all; first += RESIDUAL_LIST) {
      int count = list_fill(&list, &a, row, first);
      for (int c = threadIdx.x; c < a.p; c += RESIDUAL_THREADS) {
        double r = first ? a.residual[row * a.p + c] : (double)a.x[row * a.p + c];
#pragma unroll 8
        for (int v = 0; v < count; v++) r = fma(a.frames[list.from[v] + c], list.code[v], r);
        a.residual[row * a.p + c] = r;
      }
    }
  }
}
