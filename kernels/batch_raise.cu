/* SPDX-License-Identifier: BSD-3-Clause
 * batch_raise: replaces the scores of atoms that have a code by the scores that they would have
 * without it (N.51).  If `relative`, each score is divided by the root of the row's squared norm
 * plus the floor (N.49).  For an atom that has a code, it is the norm of the row without this code.
 *
 * grid    any number of blocks
 * block   BATCH_THREADS: one row per block
 * shared  static: the row's entry of each atom, for RAISE_ATOMS atoms at a time */
#include "batch_types.h"
#include "warp.h"

/* The new score of an atom with score h and code c; s: the sum of squares of the residual row. */
static __device__ inline float score_raise(const struct batch_raise_args *a, double s, float h,
                                           float c)
{
  if (!a->relative) return __fadd_rn(h, c);
  double own = (double)c, with = (double)h;
  double without = fmax(fma(own, own, fma(2 * own, with, s)), 0.0);
  return (float)__ddiv_rn(with + own, __dsqrt_rn(without + a->floor));
}

/* entry[i] <- the number of the row's entry with atom first + i; -1: none.  i < RAISE_ATOMS. */
static __device__ inline void entries_find(const struct batch_raise_args *a, long long row,
                                           int first, int *entry)
{
  int thread = threadIdx.x;
  for (int i = thread; i < RAISE_ATOMS; i += BATCH_THREADS) entry[i] = -1;
  __syncthreads();
  if (!a->start) return;
  long long begin = a->start[row];
  int count = (int)(a->start[row + 1] - begin);
  for (int e = thread; e < count; e += BATCH_THREADS) {
    int at = a->index[begin + e] - first;
    if (at >= 0 && at < RAISE_ATOMS) entry[at] = e;
  }
  __syncthreads();
}

extern "C" __global__ void __launch_bounds__(BATCH_THREADS)
    batch_raise(const __grid_constant__ struct batch_raise_args a)
{
  __shared__ int entry[RAISE_ATOMS];
  for (long long row = blockIdx.x; row < a.n; row += gridDim.x) {
    const float *code = a.start ? a.code + a.start[row] : 0;
    float *scores = a.scores + row * a.stride;
    double s = a.relative ? a.squares[row] : 0, per = 1;
    if (a.relative) per = __ddiv_rn(1.0, __dsqrt_rn(s + a.floor));
    for (int first = 0; first < a.k; first += RAISE_ATOMS) {
      entries_find(&a, row, first, entry);
      int end = a.k - first < RAISE_ATOMS ? a.k - first : RAISE_ATOMS;
      for (int i = threadIdx.x; i < end; i += BATCH_THREADS) {
        float h = scores[first + i];
        if (entry[i] >= 0)
          scores[first + i] = score_raise(&a, s, h, code[entry[i]]);
        else if (a.relative)
          scores[first + i] = (float)(per * (double)h);
      }
      __syncthreads();
    }
  }
}
