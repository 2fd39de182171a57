/* SPDX-License-Identifier: BSD-3-Clause
 * triad_sparse: the product of sparse rows and a matrix, or a gradient (N.42).  A list has the
 * entries of a sparse row or, for a gradient, of a sparse column.
 *
 * grid    (lists, at most TRIAD_MAX_LISTS at a time; ceil(width / (4 TRIAD_SPARSE_THREADS)))
 * block   TRIAD_SPARSE_THREADS: four columns each
 * shared  none
 * sums    a chain of fma over the entries of a list; for a gradient one chain per chunk of rows,
 *         added in f64 */
#include "triad_types.h"

enum { AHEAD = 4 }; /* entries whose numbers are loaded together */

/* Chains for four columns, and the sums of the chunks before. */
struct chains {
  float acc[4];
  double sum[4];
  int chunk;
};

static __device__ inline void chains_fold(struct chains *to)
{
#pragma unroll
  for (int v = 0; v < 4; v++) {
    to->sum[v] += (double)to->acc[v];
    to->acc[v] = 0;
  }
}

static __device__ inline void entry_add(struct chains *to, int is_gradient, int row, float value,
                                        float4 with)
{
  int its = is_gradient ? row / TRIAD_CHUNK_ROWS : 0;
  if (its != to->chunk) chains_fold(to);
  to->chunk = its;
  to->acc[0] = fmaf(value, with.x, to->acc[0]);
  to->acc[1] = fmaf(value, with.y, to->acc[1]);
  to->acc[2] = fmaf(value, with.z, to->acc[2]);
  to->acc[3] = fmaf(value, with.w, to->acc[3]);
}

/* Four columns of a row, from c on; missing ones are zeros. */
static __device__ inline float4 quad_read(const struct triad_list_args *t, int row, int c,
                                          int whole)
{
  const float *from = t->matrix + (long long)row * t->width + c;
  if (whole) return *(const float4 *)from;
  float4 four = {from[0], c + 1 < t->width ? from[1] : 0, c + 2 < t->width ? from[2] : 0,
                 c + 3 < t->width ? from[3] : 0};
  return four;
}

static __device__ inline void chains_store(const struct triad_list_args *t, struct chains *chains,
                                           long long list, int c)
{
  float *to = t->out + list * t->width + c;
  if (t->is_gradient) chains_fold(chains);
  for (int v = 0; v < 4 && c + v < t->width; v++)
    to[v] = t->is_gradient ? to[v] + (float)chains->sum[v] : chains->acc[v];
}

extern "C" __global__ void __launch_bounds__(TRIAD_SPARSE_THREADS)
    triad_sparse(const __grid_constant__ struct triad_list_args t)
{
  int c = 4 * (blockIdx.y * TRIAD_SPARSE_THREADS + threadIdx.x);
  int whole = t.width % 4 == 0 && (unsigned long long)t.matrix % 16 == 0;
  if (c >= t.width) return;
  for (long long i = blockIdx.x; i < t.count; i += gridDim.x) {
    struct chains chains = {{0, 0, 0, 0}, {0, 0, 0, 0}, 0};
    long long e = t.start[i], end = t.start[i + 1];
    for (; e + AHEAD <= end; e += AHEAD) {
      int row[AHEAD];
      float4 with[AHEAD];
#pragma unroll
      for (int u = 0; u < AHEAD; u++) row[u] = t.index[e + u];
#pragma unroll
      for (int u = 0; u < AHEAD; u++) with[u] = quad_read(&t, row[u], c, whole);
#pragma unroll
      for (int u = 0; u < AHEAD; u++)
        entry_add(&chains, t.is_gradient, row[u], t.value[e + u], with[u]);
    }
    for (; e < end; e++)
      entry_add(&chains, t.is_gradient, t.index[e], t.value[e],
                quad_read(&t, t.index[e], c, whole));
    chains_store(&t, &chains, i, c);
  }
}
