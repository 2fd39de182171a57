/* SPDX-License-Identifier: BSD-3-Clause
 * During a product or gradient, warps that do not multiply narrow the rows of the next launch: they
 * round f32 numbers to the precision.  cp.async copies the numbers to shared memory, two units per
 * warp at a time.  The narrowed numbers are stored as an operand of that launch.
 *
 * Floor: kernels.  Included by tensor_tile.h.
 *
 * A unit is 1024 numbers: 16 lines of a stage if lines are contiguous along their depth, otherwise
 * 32 lines of half a stage. */
#ifndef TENSOR_BESIDE_H
#define TENSOR_BESIDE_H

#include "async_copy.h"
#include "tensor_narrow.h"
#include "warp.h"

enum {
  UNIT_BYTES = TENSOR_UNIT * 4,
  UNIT_COPIES = UNIT_BYTES / 16 / WARP, /* copies per lane */
  UNIT_PIECES = TENSOR_UNIT / 8 / WARP,
  UNIT_LINES = 32 /* lines that two units cover */
};

static __device__ inline float number_get(unsigned from)
{
  float x;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(from) : "memory");
  return x;
}

static __device__ inline void four_get(unsigned from, float *x)
{
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3])
               : "r"(from)
               : "memory");
}

/* The place of the x-th 16 bytes of a line, if lines are contiguous along their depth.  A lane
 * reads two of them for a piece.  With these places, eight lanes read from all banks. */
static __device__ inline int four_at(int x)
{
  return x ^ (x >> 3 & 1);
}

/* The two units of 32 lines of a stage: first line, first depth, and the address of the result. */
struct units {
  int line, depth;
  char *to;
};

static __device__ inline struct units units_of(const struct tensor_narrow_args *a, int unit)
{
  enum { PER_TILE = TENSOR_ROWS / UNIT_LINES };
  int group = unit / 2, part = group / PER_TILE, first = group % PER_TILE * UNIT_LINES;
  int tile = part / a->stages, stage = part - tile * a->stages;
  struct units u = {tile * TENSOR_ROWS + first, stage * TENSOR_BOX,
                    a->out + ((long long)part * TENSOR_ROWS + first) * TENSOR_ITEM};
  return u;
}

/* Begin to copy a unit to `to`.  Past the last unit the group is empty. */
static __device__ inline void unit_order(const struct tensor_narrow_args *a, int unit, int units,
                                         unsigned to, int is_deep)
{
  int lane = threadIdx.x % WARP, half = unit % 2, across = is_deep ? 16 : 8; /* lanes per line */
  if (unit < units) {
    struct units u = units_of(a, unit);
    long long stride = is_deep ? a->line : a->depth;
    int inner = is_deep ? u.depth : u.line, outer = is_deep ? u.line : u.depth;
    outer += half * (is_deep ? 16 : 32);
    const float *from =
        (const float *)a->in + (outer + lane / across) * stride + inner + lane % across * 4;
    to += is_deep ? (lane & 16) * 16 + four_at(lane % 16) * 16 : lane * 16;
#pragma unroll
    for (int i = 0; i < UNIT_COPIES; i++)
      async_copy16_at(to + i * WARP * 16, from + i * (WARP / across) * stride);
  }
  async_commit();
}

/* This lane's pieces of a unit that has been copied, narrowed. */
static __device__ inline void pieces_take(unsigned from, int is_deep, uint4 *piece)
{
  int lane = threadIdx.x % WARP;
#pragma unroll
  for (int i = 0; i < UNIT_PIECES; i++) {
    float x[8];
    if (is_deep) {
      unsigned line = from + (i * 4 + lane / 8) * 256;
      four_get(line + four_at(lane % 8 * 2) * 16, x);
      four_get(line + four_at(lane % 8 * 2 + 1) * 16, x + 4);
    } else {
#pragma unroll
      for (int d = 0; d < 8; d++) x[d] = number_get(from + ((8 * i + d) * WARP + lane) * 4);
    }
    piece[i] = piece_of(x);
  }
}

/* Lane l has four pieces of line l.  Lanes exchange them through `own`, in shared memory, so that
 * four lanes write contiguous bytes. */
static __device__ inline void pieces_exchange(uint4 *own, uint4 *piece)
{
  int lane = threadIdx.x % WARP;
#pragma unroll
  for (int i = 0; i < UNIT_PIECES; i++) own[lane * 4 + (i ^ (lane >> 1 & 3))] = piece[i];
  __syncwarp();
#pragma unroll
  for (int i = 0; i < UNIT_PIECES; i++) {
    int line = 8 * i + lane / 4;
    piece[i] = own[line * 4 + (lane % 4 ^ (line >> 1 & 3))];
  }
  __syncwarp();
}

static __device__ inline void pieces_put(const struct tensor_narrow_args *a, int unit, int is_deep,
                                         const uint4 *piece)
{
  int lane = threadIdx.x % WARP, half = unit % 2;
  char *to = units_of(a, unit).to;
#pragma unroll
  for (int i = 0; i < UNIT_PIECES; i++) {
    int line = is_deep ? 16 * half + 4 * i + lane / 8 : 8 * i + lane / 4;
    int number = is_deep ? lane % 8 : 4 * half + lane % 4;
    *(uint4 *)(to + line * TENSOR_ITEM + (number ^ line % 8) * 16) = piece[i];
  }
}

/* Called by warp number `warp` of the TENSOR_BESIDE warps of a block.  memory: the shared memory of
 * these warps. */
static __device__ inline void narrow_beside(const struct tensor_narrow_args *a, char *memory,
                                            int warp, int is_deep)
{
  char *own = memory + warp * TENSOR_BESIDE_BYTES;
  unsigned begin = shared_address(own);
  int hop = gridDim.x * TENSOR_BESIDE,
      units = a->tiles * a->stages * (TENSOR_ROWS / UNIT_LINES) * 2;
  int unit = blockIdx.x * TENSOR_BESIDE + warp, slot = 0;
  unit_order(a, unit, units, begin, is_deep);
  unit_order(a, unit + hop, units, begin + UNIT_BYTES, is_deep);
#pragma unroll 1
  for (; unit < units; unit += hop, slot ^= UNIT_BYTES) {
    uint4 piece[UNIT_PIECES];
    ASYNC_WAIT(1);
    __syncwarp();
    pieces_take(begin + slot, is_deep, piece);
    __syncwarp();
    unit_order(a, unit + 2 * hop, units, begin + slot, is_deep);
    if (!is_deep) pieces_exchange((uint4 *)(own + 2 * UNIT_BYTES), piece);
    pieces_put(a, unit, is_deep, piece);
  }
  ASYNC_WAIT(0);
}

#endif
