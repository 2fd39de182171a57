/* SPDX-License-Identifier: BSD-3-Clause
 * color_conflicts: for each given atom, the set of the marks of all atoms in its rows (N.6).
 *
 * grid    atoms
 * block   COLOR_CONFLICTS_THREADS, one row per warp
 * shared  4 bytes for each of `words`: the set
 *
 * A set does not depend on the order in which marks are set. */
#include "step_types.h"
#include "warp.h"

/* Set a bit unless it is set.  Most bits are set already, and a read is cheaper than an atomic. */
static __device__ inline void mark_set(unsigned *set, unsigned mark, int words)
{
  unsigned bit = 1u << mark % 32;
  if (mark / 32 < words && !(*(volatile unsigned *)(set + mark / 32) & bit))
    atomicOr(set + mark / 32, bit);
}

extern "C" __global__ void __launch_bounds__(COLOR_CONFLICTS_THREADS)
    color_conflicts(const __grid_constant__ struct color_conflicts_args a)
{
  extern __shared__ unsigned set[];
  int atom = a.atoms[blockIdx.x];
  for (int word = threadIdx.x; word < a.words; word += COLOR_CONFLICTS_THREADS) set[word] = 0;
  __syncthreads();
  for (long long i = a.start[atom] + threadIdx.x / WARP; i < a.start[atom + 1];
       i += COLOR_CONFLICTS_THREADS / WARP) {
    const int *row = a.slots + a.entry[i] / a.s * a.s;
    for (int e = threadIdx.x % WARP; e < a.s; e += WARP) mark_set(set, a.marks[row[e]], a.words);
  }
  __syncthreads();
  unsigned *to = a.sets + (long long)blockIdx.x * a.words;
  for (int word = threadIdx.x; word < a.words; word += COLOR_CONFLICTS_THREADS)
    to[word] = set[word];
}
