/* SPDX-License-Identifier: BSD-3-Clause
 * triad_sparse: sparse rows times a matrix, or gradients where a list is a column (N.42).
 *
 * grid    (lists, at most TRIAD_MAX_LISTS at a time; ceil(width / TRIAD_THREADS))
 * block   TRIAD_THREADS: a column each
 * shared  none
 * sums    a chain of fma over the entries of a list; of a gradient one for each chunk of rows,
 *         added in f64 */
#include "triad_types.h"

enum { AHEAD = 8 }; /* entries whose numbers are fetched together */

/* A chain, and the chains of the chunks before it. */
struct chain {
  float acc;
  double sum;
  int chunk;
};

static __device__ inline void entry_add(struct chain *to, int is_gradient, int row, float value,
                                        float with)
{
  int its = is_gradient ? row / TRIAD_CHUNK_ROWS : 0;
  if (its != to->chunk) {
    to->sum += (double)to->acc;
    to->acc = 0;
    to->chunk = its;
  }
  to->acc = fmaf(value, with, to->acc);
}

extern "C" __global__ void __launch_bounds__(TRIAD_THREADS)
    triad_sparse(const __grid_constant__ struct triad_list_args t)
{
  int c = blockIdx.y * TRIAD_THREADS + threadIdx.x;
  if (c >= t.width) return;
  for (long long i = blockIdx.x; i < t.count; i += gridDim.x) {
    float *to = t.out + i * t.width + c;
    struct chain chain = {0, 0, 0};
    long long e = t.start[i], end = t.start[i + 1];
    for (; e + AHEAD <= end; e += AHEAD) {
      int row[AHEAD];
      float with[AHEAD];
#pragma unroll
      for (int u = 0; u < AHEAD; u++) row[u] = t.index[e + u];
#pragma unroll
      for (int u = 0; u < AHEAD; u++) with[u] = t.matrix[(long long)row[u] * t.width + c];
#pragma unroll
      for (int u = 0; u < AHEAD; u++)
        entry_add(&chain, t.is_gradient, row[u], t.value[e + u], with[u]);
    }
    for (; e < end; e++) {
      int row = t.index[e];
      entry_add(&chain, t.is_gradient, row, t.value[e], t.matrix[(long long)row * t.width + c]);
    }
    double sum = chain.sum + (double)chain.acc;
    *to = t.is_gradient ? *to + (float)sum : chain.acc;
  }
}
