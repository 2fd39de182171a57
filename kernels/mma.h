/* SPDX-License-Identifier: BSD-3-Clause
 * Products of the matrix unit by mma.sync (8.0): a warp multiplies 16 lines of one operand by
 * VECTORS lines of the other, and adds in f32.  Both operands are in shared memory.  Lines, stages,
 * sums and options are as in wgmma.h.  A warp's number is threadIdx.x / WARP. */
#ifndef MMA_H
#define MMA_H

#include "async_copy.h"
#include "warp.h"

#if PRECISION == 3
#define MMA_TYPES "m16n8k8.row.col.f32.tf32.tf32.f32"
#elif PRECISION == 2
#define MMA_TYPES "m16n8k16.row.col.f32.f16.f16.f32"
#else
#define MMA_TYPES "m16n8k16.row.col.f32.bf16.bf16.f32"
#endif

/* Load four 8 x 8 blocks of a stage; each lane gives the address of a row of 16 bytes. */
static __device__ inline void squares_load(unsigned square[4], const char *at)
{
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(square[0]), "=r"(square[1]), "=r"(square[2]), "=r"(square[3])
               : "r"(shared_address(at))
               : "memory");
}

static __device__ inline void square_multiply(float z[4], const unsigned rows[4],
                                              const unsigned others[2])
{
  asm volatile("mma.sync.aligned." MMA_TYPES " {%0, %1, %2, %3}, "
               "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(z[0]), "+f"(z[1]), "+f"(z[2]), "+f"(z[3])
               : "r"(rows[0]), "r"(rows[1]), "r"(rows[2]), "r"(rows[3]), "r"(others[0]),
                 "r"(others[1]));
}

/* The address of a piece of 16 bytes of a line in a stage. */
static __device__ inline const char *piece_at(const char *stage, int line, int piece)
{
  return stage + line * 128 + (piece ^ line % 8) * 16;
}

static __device__ inline void stage_multiply(float z[VECTORS / 8][4], const char *rows,
                                             const char *others)
{
  int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
#pragma unroll
  for (int k = 0; k < 8; k += 2) {
    unsigned row[4], other[4];
    squares_load(row, piece_at(rows, warp * 16 + lane % 16, k + lane / 16));
#pragma unroll
    for (int j = 0; j < VECTORS / 8; j += 2) { /* blocks: (j, k), (j, k + 1), (j + 1, k), .. */
      int line = 8 * (j + lane / 16) + lane % 8;
      squares_load(other, piece_at(others, line, k + lane / 8 % 2));
      square_multiply(z[j], row, other);
      square_multiply(z[j + 1], row, other + 2);
    }
  }
}

#endif
