/* SPDX-License-Identifier: BSD-3-Clause
 * triad_gradient: gradients of matrices (N.41), added to what is there.
 *
 * grid    blocks, at most BESIDE a multiprocessor: block b has tiles b, b + blocks, ..
 * block   triad_threads()
 * shared  triad_gradient_shared(): TRIAD_SLOTS stages, and the sums of a chunk
 * sums    chunks of TRIAD_CHUNK_ROWS depths, a chain of fma each, are added in f64, ascending; what
 *         a block's tile has so far is in memory, which the cache holds
 *
 * What a chunk has summed stays in shared memory while the next one is added, stage by stage, to
 * what memory has.  There a thread's sums are its own: nobody else adds, and it waits for none. */
#include "triad_pipe.h"

enum { OWN = ROWS_OWN * COLUMNS_OWN }; /* sums of a thread, THREADS apart wherever they are */

static_assert((int)OWN * (int)DEPTHS <= (int)TRIAD_CHUNK_ROWS,
              "a stage of the next chunk for each");

static __device__ inline void chunk_keep(const float (*acc)[COLUMNS_OWN], float *kept)
{
#pragma unroll
  for (int n = 0; n < OWN; n++) kept[n * THREADS] = acc[n / COLUMNS_OWN][n % COLUMNS_OWN];
}

/* A sum that is kept is added; of the first chunk it is all that there is. */
static __device__ inline void sum_add(double *sums, const float *kept, int n, int is_first)
{
  double own = kept[n * THREADS];
  if (is_first)
    __stcg(sums + n * THREADS, 0 + own);
  else
    atomicAdd(sums + n * THREADS, own);
}

static __device__ inline void output_add(const struct triad_args *t, int row, int column,
                                         double sum)
{
  if (row >= t->rows || column >= t->columns) return;
  float *to = t->c + row * t->c_row + column;
  *to = settled(*to + (float)sum);
}

/* The last chunk's sums are added, and all to what is there. */
static __device__ inline void tile_end(const struct triad_args *t, struct place at,
                                       struct corner corner, const double *sums, const float *kept)
{
#pragma unroll 8
  for (int n = 0; n < OWN; n++) {
    double before = t->depth > TRIAD_CHUNK_ROWS ? __ldcg(sums + n * THREADS) : 0;
    output_add(t, corner.row + row_at(at, n / COLUMNS_OWN),
               corner.column + column_at(at, n % COLUMNS_OWN), before + kept[n * THREADS]);
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, BESIDE)
    triad_gradient(const __grid_constant__ struct triad_args t)
{
  extern __shared__ __align__(16) char memory[];
  struct place at = place_own();
  struct stage *stages = (struct stage *)memory;
  float *kept = (float *)(stages + SLOTS) + threadIdx.x;
  double *sums = t.sums + (long long)blockIdx.x * OWN * THREADS + threadIdx.x;
  for (int tile = blockIdx.x; tile < t.tiles; tile += gridDim.x) {
    struct corner corner = corner_of(tile, t.tiles / t.across, t.across);
    struct pipe pipe;
    pipe_begin(&pipe, &t, stages, at, corner, 0, t.depth);
#pragma unroll 1
    for (int first = 0; first < t.depth; first += TRIAD_CHUNK_ROWS) {
      float acc[ROWS_OWN][COLUMNS_OWN] = {0};
      int end = t.depth - first > TRIAD_CHUNK_ROWS ? first + TRIAD_CHUNK_ROWS : t.depth, n = 0;
#pragma unroll 1
      for (int k = first; k < end; k += DEPTHS, n++) {
        stage_add(&pipe, acc);
        if (first && n < OWN) sum_add(sums, kept, n, first == TRIAD_CHUNK_ROWS);
      }
      for (; first && n < OWN; n++) sum_add(sums, kept, n, first == TRIAD_CHUNK_ROWS);
      chunk_keep(acc, kept);
    }
    __syncthreads(); /* stages of the next tile come to the places of these */
    tile_end(&t, at, corner, sums, kept);
  }
}
