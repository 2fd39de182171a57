/* SPDX-License-Identifier: BSD-3-Clause
 * normal_target: continues own columns of the target (N.20).
 *
 * grid    (k, ceil(columns / NORMAL_THREADS)): an atom, some columns
 * block   NORMAL_THREADS: one column each
 * shared  static: the next entries of the atom
 * sums    a chain of fma for each column, over the atom's entries, ascending
 *
 * The data of rows are loaded AHEAD entries before they are used.  Entries are loaded in lists, one
 * entry per thread.  While a list is in use, the next list has arrived, and the list after that is
 * being loaded. */
#include "types.h"

enum { AHEAD = 16, LISTS = 4 };

extern "C" __global__ void __launch_bounds__(NORMAL_THREADS)
    normal_target(const __grid_constant__ struct normal_args a)
{
  __shared__ struct normal_entry lists[LISTS * NORMAL_THREADS];
  const struct normal_entry none = {0, 0};
  int atom = blockIdx.x, own = threadIdx.x, column = blockIdx.y * NORMAL_THREADS + own;
  int there = column < a.columns;
  int n = a.start[atom + 1] - a.start[atom];
  const struct normal_entry *entries = a.entries + a.start[atom];
  const float *x = a.x + a.begin + (there ? column : 0);
  double *target = a.target + (long long)atom * a.columns + column, sum = there ? *target : 0;
  float value[AHEAD];
  if (n == 0) return;
#pragma unroll
  for (int l = 0; l < 2; l++) {
    int i = l * NORMAL_THREADS + own;
    lists[i] = i < n ? entries[i] : none;
  }
  __syncthreads();
#pragma unroll
  for (int u = 0; u < AHEAD; u++) value[u] = x[(long long)lists[u].row * a.p];
#pragma unroll 1
  for (int first = 0; first < n; first += NORMAL_THREADS) {
    int next = first + 2 * NORMAL_THREADS + own;
    struct normal_entry coming = next < n ? entries[next] : none;
    int end = n - first < NORMAL_THREADS ? n : first + NORMAL_THREADS;
#pragma unroll 1
    for (int i = first; i < end; i += AHEAD)
#pragma unroll
      for (int u = 0; u < AHEAD; u++) {
        float now = value[u], code = lists[(i + u) % (LISTS * NORMAL_THREADS)].code;
        int row = lists[(i + u + AHEAD) % (LISTS * NORMAL_THREADS)].row;
        value[u] = x[(long long)row * a.p];
        if (i + u < n) sum = fma((double)code, (double)now, sum);
      }
    lists[next % (LISTS * NORMAL_THREADS)] = coming;
    __syncthreads();
  }
  if (there) *target = sum;
}
