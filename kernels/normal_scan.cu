/* SPDX-License-Identifier: BSD-3-Clause
 * normal_scan: replaces the count of each atom and chunk by the sum of the atom's counts in earlier
 * chunks.  start <- the sum over all chunks.
 *
 * grid    ceil(k / 32)
 * block   32 x 32: one atom per lane, a run of chunks per warp
 * shared  static: the count of each run */
#include "types.h"

enum { UNROLLED = 8 };

/* The number of entries of an atom in chunks first .. end - 1; its counters begin at `counts`. */
static __device__ inline int chunks_add(const int *counts, long long k, int first, int end)
{
  int sum = 0;
#pragma unroll 8
  for (int c = first; c < end; c++) sum += counts[c * k];
  return sum;
}

/* Each count <- `sum` plus all counts before it.  Returns `sum` plus all counts. */
static __device__ inline int chunks_scan(int *counts, long long k, int first, int end, int sum)
{
  for (int c = first; c < end; c += UNROLLED) {
    int n[UNROLLED];
#pragma unroll
    for (int u = 0; u < UNROLLED; u++) n[u] = c + u < end ? counts[(c + u) * k] : 0;
#pragma unroll
    for (int u = 0; u < UNROLLED; u++) {
      if (c + u < end) counts[(c + u) * k] = sum;
      sum += n[u];
    }
  }
  return sum;
}

extern "C" __global__ void __launch_bounds__(WARP *WARP)
    normal_scan(const __grid_constant__ struct normal_args a)
{
  __shared__ int sums[WARP][WARP];
  int atom = blockIdx.x * WARP + threadIdx.x, run = threadIdx.y, before = 0;
  int first = (int)((long long)a.chunks * run / WARP);
  int end = (int)((long long)a.chunks * (run + 1) / WARP);
  sums[run][threadIdx.x] = atom < a.k ? chunks_add(a.counts + atom, a.k, first, end) : 0;
  __syncthreads();
  for (int r = 0; r < run; r++) before += sums[r][threadIdx.x];
  if (atom >= a.k) return;
  before = chunks_scan(a.counts + atom, a.k, first, end, before);
  if (run == WARP - 1) a.start[atom] = before;
}
