/* SPDX-License-Identifier: BSD-3-Clause
 * Tiles of products of narrowed operands by the matrix unit: 128 rows, 16 a warp, and VECTORS
 * columns; a lane's sums are those of wgmma.h.
 *
 * Floor: kernels.  Included by kernels that are compiled for a struct tensor_form:
 *
 * -D WGMMA      1: wgmma and bulk copies, by a warp of their own (sm_90a), 0: mma.sync, cp.async
 * -D VECTORS, STAGES
 * -D PRECISION  enum of tensor_types.h
 *
 * With either way of copying there are
 *   stages_enter()  the walk begins; 0: this warp only copied, and is done
 *   chain_add()     sums go on over some stages of a tile */
#include "tensor_types.h"
#include "warp.h"

#if WGMMA
#include "barriers.h"
#include "wgmma.h"
#else
#include "mma.h"
#endif

enum {
  EIGHTS = VECTORS / 8, /* of a lane's sums */
  ROWS_BYTES = TENSOR_ROWS * TENSOR_ITEM,
  COLUMNS_BYTES = VECTORS * TENSOR_ITEM,
  STAGE_BYTES = ROWS_BYTES + COLUMNS_BYTES,
  BAND = 16 /* row tiles that go through the columns together: what they share is in the cache */
};

struct shared {
  char stage[STAGES][STAGE_BYTES];                /* rows, then columns */
  unsigned long long full[STAGES], empty[STAGES]; /* barriers of bulk copies */
};
static_assert(sizeof(struct shared) + 1024 == tensor_shared_bytes(VECTORS, STAGES),
              "tensor_types.h");

static __device__ inline struct shared *shared_own(char *memory)
{
  return (struct shared *)(memory + (1024 - shared_address(memory) % 1024) % 1024);
}

/* Tile `number` of the result; a block takes one after another, gridDim.x apart. */
struct tile {
  int row, column; /* tiles */
};

static __device__ inline int tiles_of(const struct tensor_args *a)
{
  return a->row_tiles * a->column_tiles;
}

static __device__ inline struct tile tile_of(const struct tensor_args *a, int number)
{
  int first = number / (BAND * a->column_tiles) * BAND, left = a->row_tiles - first;
  int height = left < BAND ? left : BAND, within = number - first * a->column_tiles;
  struct tile at = {first + within % height, within / height};
  return at;
}

static __device__ inline const char *rows_at(const struct tensor_args *a, struct tile at, int stage)
{
  return a->rows + ((long long)at.row * a->stages + stage) * ROWS_BYTES;
}

static __device__ inline const char *columns_at(const struct tensor_args *a, struct tile at,
                                                int stage)
{
  return a->columns + ((long long)at.column * a->stages + stage) * COLUMNS_BYTES;
}

#if WGMMA

/* The producer: a stage is ordered again as soon as both warpgroups are done with it. */
static __device__ inline void stages_produce(const struct tensor_args *a, struct shared *s)
{
  int serial = 0;
  for (int number = blockIdx.x; number < tiles_of(a); number += gridDim.x) {
    struct tile at = tile_of(a, number);
    for (int stage = 0; stage < a->stages; stage++, serial++) {
      int slot = serial % STAGES;
      if (serial >= STAGES)
        while (!barrier_passed(&s->empty[slot], (serial / STAGES + 1) % 2)) {}
      barrier_expect(&s->full[slot], STAGE_BYTES);
      bulk_copy(s->stage[slot], rows_at(a, at, stage), ROWS_BYTES, &s->full[slot]);
      bulk_copy(s->stage[slot] + ROWS_BYTES, columns_at(a, at, stage), COLUMNS_BYTES,
                &s->full[slot]);
    }
  }
}

static __device__ inline int stages_enter(const struct tensor_args *a, struct shared *s)
{
  if (threadIdx.x == 0) {
    for (int i = 0; i < STAGES; i++) {
      barrier_begin(&s->full[i], 1);
      barrier_begin(&s->empty[i], TENSOR_WARPS * WARP);
    }
    barriers_publish();
  }
  __syncthreads();
  if (threadIdx.x >= TENSOR_WARPS * WARP) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == TENSOR_WARPS * WARP) stages_produce(a, s);
    return 0;
  }
  asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
  return 1;
}

/* *serial counts the stages of a block. */
static __device__ inline void chain_add(const struct tensor_args *a, struct shared *s,
                                        float z[EIGHTS][4], struct tile at, int first, int count,
                                        int *serial)
{
  (void)a, (void)at, (void)first;
#pragma unroll 1
  for (int i = 0; i < count; i++, ++*serial) {
    int slot = *serial % STAGES;
    while (!barrier_passed(&s->full[slot], *serial / STAGES % 2)) {}
    unsigned long long rows = operand_of(s->stage[slot] + threadIdx.x / 128 * 64 * TENSOR_ITEM);
    unsigned long long columns = operand_of(s->stage[slot] + ROWS_BYTES);
    products_begin();
#pragma unroll
    for (int k = 0; k < TENSOR_PIECES / 2; k++)
      pieces_multiply(z, rows + 2 * k, columns + 2 * k, 1);
    products_commit();
    if (i == 0) continue;
    products_wait_one();
    barrier_arrive(&s->empty[(*serial - 1) % STAGES]);
  }
  products_wait(z);
  barrier_arrive(&s->empty[(*serial - 1) % STAGES]);
}

#else

static __device__ inline int stages_enter(const struct tensor_args *a, struct shared *s)
{
  (void)a, (void)s;
  return 1;
}

static __device__ inline void bytes_order(char *to, const char *from, int bytes)
{
  for (int i = 16 * threadIdx.x; i < bytes; i += 16 * TENSOR_WARPS * WARP)
    async_copy16(to + i, from + i);
}

/* All threads order a stage of the tile; an empty group beyond the last. */
static __device__ inline void stage_order(const struct tensor_args *a, struct shared *s,
                                          struct tile at, int stage, int end)
{
  char *to = s->stage[stage % STAGES];
  if (stage < end) {
    bytes_order(to, rows_at(a, at, stage), ROWS_BYTES);
    bytes_order(to + ROWS_BYTES, columns_at(a, at, stage), COLUMNS_BYTES);
  }
  async_commit();
}

static __device__ inline void chain_add(const struct tensor_args *a, struct shared *s,
                                        float z[EIGHTS][4], struct tile at, int first, int count,
                                        int *serial)
{
  int end = first + count;
  (void)serial;
  for (int i = 0; i < STAGES; i++) stage_order(a, s, at, first + i, end);
#pragma unroll 1
  for (int stage = first; stage < end; stage++) {
    const char *now = s->stage[stage % STAGES];
    ASYNC_WAIT(STAGES - 1);
    __syncthreads();
    stage_multiply(z, now, now + ROWS_BYTES);
    __syncthreads();
    stage_order(a, s, at, stage + STAGES, end);
  }
}

#endif

/* Where a lane's sums belong: row i is `row` + 8 i, and number (j, v) is column + 8 j + v. */
struct place {
  int row, column;
};

static __device__ inline struct place place_of(struct tile at)
{
  int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
  struct place p = {at.row * TENSOR_ROWS + warp * 16 + lane / 4,
                    at.column * VECTORS + 2 * (lane % 4)};
  return p;
}

/* 0x7FC00000 for every NaN. */
static __device__ inline float settled(float x)
{
  return x == x ? x : __int_as_float(0x7fc00000);
}
