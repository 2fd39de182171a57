/* SPDX-License-Identifier: BSD-3-Clause
 * triad_gradient: gradients of matrices (N.41), added to the output.
 *
 * grid    blocks, at most BESIDE per multiprocessor: block b has tiles b, b + blocks, .., or the
 *         share of its team (struct triad_teams)
 * block   triad_threads()
 * shared  triad_gradient_shared(): SLOTS stages, and the sums of a chunk
 * sums    over depths, which are the rows of a batch.  A chunk of TRIAD_CHUNK_ROWS depths is a
 *         chain of fma.  Chunks are added in f64, in ascending order, to totals in global memory,
 *         which are mostly in the cache
 *
 * The sums of a chunk stay in shared memory while the next chunk is summed.  Meanwhile each thread
 * adds TOGETHER of its own kept sums to the totals every TOGETHER stages.  Each total belongs to
 * one thread, so threads do not wait for each other. */
#include "triad_teams.h"

enum { CHUNK = TRIAD_CHUNK_ROWS, TOGETHER = 4 /* sums added per TOGETHER stages */ };

static_assert((int)OWN * (int)DEPTHS <= (int)CHUNK && (int)OWN % (int)TOGETHER == 0,
              "a stage of the next chunk for each sum");

/* A thread's sums of the last chunk (kept), and its totals of the chunks before that (all).  In
 * both arrays the thread's numbers are THREADS apart. */
struct sums {
  float *kept;
  double *all;
  int added; /* number of kept sums that are already in the totals, at most OWN */
};

static __device__ inline void chunk_keep(struct sums *s, const float (*acc)[COLUMNS_OWN])
{
#pragma unroll
  for (int n = 0; n < OWN; n++) s->kept[n * THREADS] = acc[n / COLUMNS_OWN][n % COLUMNS_OWN];
  s->added = 0;
}

/* *to <- x if is_first, otherwise *to + x.  The thread does not wait for the result.  The cache is
 * asked to keep *to. */
static __device__ inline void sum_put(double *to, double x, int is_first)
{
  unsigned long long keep;
  asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(keep));
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %3, 0;\n"
               "@p st.global.L2::cache_hint.f64 [%0], %1, %2;\n"
               "@!p red.global.add.L2::cache_hint.f64 [%0], %1, %2; }" ::"l"(to),
               "d"(x), "l"(keep), "r"(is_first)
               : "memory");
}

/* Add TOGETHER of the kept sums to the totals.  The sums of the first chunk start the totals: 0 is
 * added to them, because a sum that begins from +0 is never -0. */
static __device__ inline void sums_add(struct sums *s, int is_first)
{
  const float *kept = s->kept + s->added * THREADS;
  double *all = s->all + s->added * THREADS;
#pragma unroll
  for (int n = 0; n < TOGETHER; n++) sum_put(all + n * THREADS, 0 + kept[n * THREADS], is_first);
  s->added += TOGETHER;
}

/* A quad of the output; 0 where it does not exist. */
static __device__ inline float4 quad_read(const struct triad_args *t, int row, int column)
{
  const float *from = t->c + row * t->c_row + column;
  if (WHOLE) return *(const float4 *)from;
  int left = row < t->rows ? t->columns - column : 0;
  float4 four = {left > 0 ? from[0] : 0, left > 1 ? from[1] : 0, left > 2 ? from[2] : 0,
                 left > 3 ? from[3] : 0};
  return four;
}

static __device__ inline void quad_write(const struct triad_args *t, int row, int column,
                                         float4 four)
{
  float *to = t->c + row * t->c_row + column;
  if (WHOLE) {
    *(float4 *)to = four;
    return;
  }
  int left = row < t->rows ? t->columns - column : 0;
  if (left > 0) to[0] = four.x;
  if (left > 1) to[1] = four.y;
  if (left > 2) to[2] = four.z;
  if (left > 3) to[3] = four.w;
}

/* The total of all chunks before the last one. */
static __device__ inline double sum_before(const struct triad_args *t, const struct sums *s, int n)
{
  return t->depth > CHUNK ? __ldcg(s->all + n * THREADS) : 0;
}

static __device__ inline float output_of(float there, double before, float last)
{
  return settled(there + (float)(before + last));
}

/* Add the sums of the last chunk to the totals, and the totals to the output.  A few rows are done
 * at a time, so that their loads run together. */
static __device__ inline void tile_end(const struct triad_args *t, struct place at,
                                       const struct corner *corner, const struct sums *s)
{
  enum { ROWS = 2, QUADS = ROWS * COLUMN_QUADS };
#pragma unroll 1
  for (int i = 0; i < ROWS_OWN; i += ROWS) {
    float4 there[QUADS];
    double before[4 * QUADS];
#pragma unroll
    for (int q = 0; q < QUADS; q++)
      there[q] = quad_read(t, corner->row + row_at(at, i + q / COLUMN_QUADS),
                           corner->column + column_at(at, q % COLUMN_QUADS * 4));
#pragma unroll
    for (int n = 0; n < 4 * QUADS; n++) before[n] = sum_before(t, s, i * COLUMNS_OWN + n);
#pragma unroll
    for (int q = 0; q < QUADS; q++) {
      const double *b = before + 4 * q;
      const float *last = s->kept + (i * COLUMNS_OWN + 4 * q) * THREADS;
      float4 all = {output_of(there[q].x, b[0], last[0]),
                    output_of(there[q].y, b[1], last[THREADS]),
                    output_of(there[q].z, b[2], last[2 * THREADS]),
                    output_of(there[q].w, b[3], last[3 * THREADS])};
      quad_write(t, corner->row + row_at(at, i + q / COLUMN_QUADS),
                 corner->column + column_at(at, q % COLUMN_QUADS * 4), all);
    }
  }
}

/* Sum depths begin .. stop - 1 of the chunk that begins at `first`.  At the same time add the kept
 * sums of the previous chunk to the totals. */
static __device__ inline void chunk_add(struct pipe *pipe, struct sums *s, int first, int begin,
                                        int stop, float (*acc)[COLUMNS_OWN])
{
#pragma unroll 1
  for (int k = begin; k < stop; k += DEPTHS) {
    stage_add(pipe, acc);
    if (s->added < OWN && k / DEPTHS % TOGETHER == 0) sums_add(s, first == CHUNK);
  }
#pragma unroll 1
  while (s->added < OWN) sums_add(s, first == CHUNK);
}

static __device__ inline void piece_add(const struct triad_args *t, struct place at,
                                        const struct piece *p, char *memory)
{
  struct stage *stages = (struct stage *)memory;
  int begin = p->begin, end = p->end, is_passed = TEAMS && end < t->depth;
  int slot = TEAMS && begin ? gridDim.x + blockIdx.x - t->teams.blocks
                            : is_passed * gridDim.x + blockIdx.x;
  struct sums sums = {(float *)(stages + SLOTS) + threadIdx.x,
                      t->sums + (long long)slot * OWN * THREADS + threadIdx.x, OWN};
  float acc[ROWS_OWN][COLUMNS_OWN] = {0};
  if (TEAMS && begin) chains_take(t, acc);
  struct pipe pipe;
  pipe_begin(&pipe, t, stages, at, p->corner, begin, end);
#pragma unroll 1
  for (int first = begin / CHUNK * CHUNK; begin < end; first += CHUNK) {
    int stop = end - first > CHUNK ? first + CHUNK : end;
    chunk_add(&pipe, &sums, first, begin, stop, acc);
    begin = stop;
    if (is_passed && stop % CHUNK) break;
    chunk_keep(&sums, acc);
#pragma unroll
    for (int n = 0; n < OWN; n++) acc[n / COLUMNS_OWN][n % COLUMNS_OWN] = 0;
  }
  pipe_end();
  if (!is_passed) {
    tile_end(t, at, &p->corner, &sums);
    return;
  }
  while (sums.added < OWN) sums_add(&sums, end == CHUNK);
  chains_pass(t, acc);
}

extern "C" __global__ void __launch_bounds__(THREADS, BESIDE)
    triad_gradient(const __grid_constant__ struct triad_args t)
{
  extern __shared__ __align__(16) char memory[];
  __shared__ struct piece piece;
  struct place at = position_own();
#pragma unroll 1
  for (int i = 0;; i++) {
    int tile = blockIdx.x + i * gridDim.x;
    if (threadIdx.x == 0) {
      struct piece whole = {corner_of(tile, t.tiles / t.across, t.across), 0,
                            tile < t.tiles ? t.depth : 0};
      piece = TEAMS && t.teams.count ? piece_shared(&t, i) : whole;
    }
    __syncthreads();
    if (piece.begin == piece.end) return;
    piece_add(&t, at, &piece, memory);
    __syncthreads(); /* the stages of the next tile overwrite these */
  }
}
