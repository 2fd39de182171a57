/* SPDX-License-Identifier: BSD-3-Clause
 * Tiles of products by the matrix unit: 128 rows, 16 per warp, and VECTORS columns.  A lane has the
 * sums that wgmma.h describes.  Operands are narrowed, or stored in the precision.
 *
 * Floor: kernels.  Included by kernels that are compiled for a struct tensor_form:
 *
 * -D WGMMA      1: wgmma, and bulk copies by a producer warp (sm_90a); 0: mma.sync and cp.async
 * -D VECTORS, STAGES, CLUSTER
 * -D PRECISION  enum of tensor_types.h
 * -D STORED     1: operands are stored matrices (only with WGMMA).  DEEP_A, DEEP_B: 1: the rows, or
 *               the columns, are contiguous along their depth; 0: along their lines
 * IS_GRADIENT   defined by the including kernel
 *
 * Both ways of copying define
 *   stages_enter()  begins and returns 1; in a warp that does not multiply, does its work and
 *                   returns 0
 *   chain_add()     continues the sums over some stages of a tile
 *   stages_leave()  called by all warps that multiply, at the end */
#include "tensor_types.h"
#include "warp.h"

#define NARROWS (WGMMA && !STORED && PRECISION != 3) /* tensor_narrows() */

#if WGMMA
#include "barriers.h"
#include "cluster.h"
#include "tensor_beside.h"
#include "wgmma.h"
#else
#include "mma.h"
#endif

enum {
  EIGHTS = VECTORS / 8, /* groups of eight columns in a lane's sums */
  ROWS_BYTES = TENSOR_ROWS * TENSOR_ITEM,
  COLUMNS_BYTES = VECTORS * TENSOR_ITEM,
  STAGE_BYTES = ROWS_BYTES + COLUMNS_BYTES,
  /* Row tiles of a band.  They take each tile of columns at about the same time, from the cache. */
  BAND = 16
};

struct shared {
  char stage[STAGES][STAGE_BYTES];                /* rows, then columns */
  unsigned long long full[STAGES], empty[STAGES]; /* barriers of bulk copies (barriers.h) */
#if NARROWS
  char beside[TENSOR_BESIDE * TENSOR_BESIDE_BYTES];
#endif
};
static_assert(sizeof(struct shared) + 1024 == tensor_shared_bytes(VECTORS, STAGES, NARROWS),
              "tensor_types.h");

static __device__ inline struct shared *shared_own(char *memory)
{
  return (struct shared *)(memory + (1024 - shared_address(memory) % 1024) % 1024);
}

static __device__ inline int rank_own(void)
{
#if CLUSTER > 1
  return cluster_rank();
#else
  return 0;
#endif
}

/* The position of a tile, in tiles.  The blocks of a cluster do a group of tiles, one below the
 * other.  A cluster does one group after another. */
struct tile {
  int row, column;
};

static __device__ inline int groups_down(const struct tensor_args *a)
{
  return (a->row_tiles + CLUSTER - 1) / CLUSTER;
}

static __device__ inline int groups_of(const struct tensor_args *a)
{
  return groups_down(a) * a->column_tiles;
}

/* This block's tile in group `number`; its row may be past the last one. */
static __device__ inline struct tile tile_of(const struct tensor_args *a, int number)
{
  enum { HEIGHT = BAND / CLUSTER };
  int first = number / (HEIGHT * a->column_tiles) * HEIGHT, left = groups_down(a) - first;
  int height = left < HEIGHT ? left : HEIGHT, within = number - first * a->column_tiles;
  struct tile at = {(first + within % height) * CLUSTER + rank_own(), within / height};
  return at;
}

static __device__ inline const char *rows_at(const struct tensor_args *a, struct tile at, int stage)
{
  int row = at.row < a->row_tiles ? at.row : a->row_tiles - 1; /* its sums are not stored */
  return a->rows + ((long long)row * a->stages + stage) * ROWS_BYTES;
}

static __device__ inline int group_first(void)
{
  return blockIdx.x / CLUSTER;
}

static __device__ inline int group_hop(void)
{
  return gridDim.x / CLUSTER;
}

static __device__ inline const char *columns_at(const struct tensor_args *a, struct tile at,
                                                int stage)
{
  return a->columns + ((long long)at.column * a->stages + stage) * COLUMNS_BYTES;
}

#if WGMMA

static __device__ inline void rows_order(const struct tensor_args *a, char *to, struct tile at,
                                         int stage, unsigned long long *full)
{
#if !STORED
  bulk_copy(to, rows_at(a, at, stage), ROWS_BYTES, full);
#elif DEEP_A
  box_copy(to, &a->rows_map, stage * TENSOR_BOX, at.row * TENSOR_ROWS, full);
#else
#pragma unroll
  for (int i = 0; i < TENSOR_ROWS; i += TENSOR_BOX)
    box_copy(to + i * TENSOR_ITEM, &a->rows_map, at.row * TENSOR_ROWS + i, stage * TENSOR_BOX,
             full);
#endif
}

/* Each block copies a part of the columns, to all blocks of the cluster. */
static __device__ inline void columns_order(const struct tensor_args *a, char *to, struct tile at,
                                            int stage, unsigned long long *full)
{
  enum { PART = VECTORS / CLUSTER, ALL_BLOCKS = (1 << CLUSTER) - 1 };
  int first = rank_own() * PART;
  to += first * TENSOR_ITEM;
#if !STORED
  bulk_copy_shared(to, columns_at(a, at, stage) + first * TENSOR_ITEM, PART * TENSOR_ITEM, full,
                   ALL_BLOCKS);
#elif DEEP_B
  box_copy_shared(to, &a->columns_map, stage * TENSOR_BOX, at.column * VECTORS + first, full,
                  ALL_BLOCKS);
#else
#pragma unroll
  for (int i = 0; i < PART; i += TENSOR_BOX)
    box_copy_shared(to + i * TENSOR_ITEM, &a->columns_map, at.column * VECTORS + first + i,
                    stage * TENSOR_BOX, full, ALL_BLOCKS);
#endif
}

/* The producer refills a stage as soon as all warps of the cluster that multiply have read it. */
static __device__ inline void stages_produce(const struct tensor_args *a, struct shared *s)
{
  int serial = 0;
  for (int number = group_first(); number < groups_of(a); number += group_hop()) {
    struct tile at = tile_of(a, number);
    for (int stage = 0; stage < a->stages; stage++, serial++) {
      int slot = serial % STAGES;
      if (serial >= STAGES)
        while (!barrier_passed(&s->empty[slot], (serial / STAGES + 1) % 2)) {}
      barrier_expect(&s->full[slot], STAGE_BYTES);
      rows_order(a, s->stage[slot], at, stage, &s->full[slot]);
      columns_order(a, s->stage[slot] + ROWS_BYTES, at, stage, &s->full[slot]);
    }
  }
}

static __device__ inline int stages_enter(const struct tensor_args *a, struct shared *s)
{
  if (threadIdx.x == 0) {
    for (int i = 0; i < STAGES; i++) {
      barrier_begin(&s->full[i], 1);
      barrier_begin(&s->empty[i], CLUSTER > 1 ? TENSOR_WARPS * CLUSTER : TENSOR_WARPS * WARP);
    }
    barriers_publish();
  }
  if (CLUSTER > 1)
    cluster_barrier();
  else
    __syncthreads();
  if (threadIdx.x >= TENSOR_WARPS * WARP) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 56;");
    if (threadIdx.x == TENSOR_WARPS * WARP) stages_produce(a, s);
#if NARROWS
    int beside = threadIdx.x / WARP - TENSOR_WARPS - 1;
    if (beside >= 0) narrow_beside(&a->next, s->beside, beside, !IS_GRADIENT);
#endif
    return 0;
  }
  asm volatile("setmaxnreg.inc.sync.aligned.u32 224;");
  return 1;
}

/* A block must not end while another one may still arrive at its barriers. */
static __device__ inline void stages_leave(void)
{
  if (CLUSTER > 1) cluster_barrier();
}

/* This warp has read a slot. */
static __device__ inline void slot_leave(struct shared *s, int slot)
{
#if CLUSTER > 1
  int rank = threadIdx.x % WARP;
  if (rank < CLUSTER) barrier_arrive_at(cluster_address(&s->empty[slot], rank));
#else
  barrier_arrive(&s->empty[slot]);
#endif
}

/* The operand descriptor of a stage: of a warpgroup's rows, or of the columns. */
static __device__ inline unsigned long long operand_at(const char *at, int is_deep)
{
  return is_deep ? operand_of(at) : operand_turned(at);
}

/* Continue the sums over `count` stages; *serial counts the stages of the block. */
static __device__ inline void chain_add(const struct tensor_args *a, struct shared *s,
                                        float z[EIGHTS][4], struct tile at, int first, int count,
                                        int *serial)
{
  (void)at, (void)first;
#pragma unroll 1
  for (int i = 0; i < count; i++, ++*serial) {
    int slot = *serial % STAGES;
    while (!barrier_passed(&s->full[slot], *serial / STAGES % 2)) {}
    const char *own = s->stage[slot] + threadIdx.x / 128 * 64 * TENSOR_ITEM;
    unsigned long long rows = operand_at(own, DEEP_A);
    unsigned long long columns = operand_at(s->stage[slot] + ROWS_BYTES, DEEP_B);
    products_begin();
#pragma unroll
    for (int k = 0; k < TENSOR_PIECES / 2; k++)
      pieces_multiply(z, rows + k * (DEEP_A ? DEEP_HOP : TURNED_HOP),
                      columns + k * (DEEP_B ? DEEP_HOP : TURNED_HOP), 1);
    products_commit();
    if (i == 0) continue;
    products_wait_one();
    slot_leave(s, (*serial - 1) % STAGES);
  }
  products_wait(z);
  slot_leave(s, (*serial - 1) % STAGES);
}

#else

static __device__ inline int stages_enter(const struct tensor_args *a, struct shared *s)
{
  (void)a, (void)s;
  return 1;
}

static __device__ inline void stages_leave(void)
{
}

static __device__ inline void bytes_order(char *to, const char *from, int bytes)
{
  for (int i = 16 * threadIdx.x; i < bytes; i += 16 * TENSOR_WARPS * WARP)
    async_copy16(to + i, from + i);
}

/* All threads begin to copy a stage of the tile.  From stage `end` on the group is empty. */
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

/* The place of a lane's sums in the result.  Sum z[j][2 i + v], with i and v 0 or 1, is in row row
 * + 8 i and column column + 8 j + v. */
struct place {
  int row, column;
};

static __device__ inline struct place position_of(struct tile at)
{
  int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
  struct place p = {at.row * TENSOR_ROWS + warp * 16 + lane / 4,
                    at.column * VECTORS + 2 * (lane % 4)};
  return p;
}

/* Two results as they are stored, the first one in the low bits; NaN is 0x7FFF. */
static __device__ inline unsigned two_stored(float first, float second)
{
  unsigned bits;
#if PRECISION == 2
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(second), "f"(first));
#else
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(second), "f"(first));
#endif
  return bits;
}

/* x, with 0x7FC00000 for every NaN. */
static __device__ inline float settled(float x)
{
  return x == x ? x : __int_as_float(0x7fc00000);
}
