/* SPDX-License-Identifier: BSD-3-Clause
 * Products of the matrix unit by wgmma (9.0): a warpgroup multiplies 64 lines of the left operand
 * by VECTORS lines of the right one, and adds in f32.  A line is a row of the left operand or a
 * column of the right one.  Both operands are in shared memory.
 *
 * A stage of an operand has 128 bytes per line, whose eight 16-byte pieces are swizzled: piece c of
 * line i is stored at c ^ (i % 8).  Lane l of warp w has the sums of rows 16 w + l / 4 (in z[j][0]
 * and z[j][1]) and 16 w + l / 4 + 8 (in z[j][2] and z[j][3]) with columns 8 j + 2 (l % 4) and
 * 8 j + 2 (l % 4) + 1.
 *
 * A transposed operand ("turned") is contiguous along its lines instead: 64 depths, each with 128
 * bytes of lines, swizzled in the same way; then the next 64 lines.
 *
 * -D VECTORS      256 or 128
 * PRECISION       of operands: TENSOR_BF16 1, TENSOR_F16 2, TENSOR_TF32 3
 * DEEP_A, DEEP_B  0: the left, or the right, operand is transposed; 1 or not defined: it is not */
#ifndef WGMMA_H
#define WGMMA_H

#include "async_copy.h"

#ifndef DEEP_A
#define DEEP_A 1
#define DEEP_B 1
#endif

#if PRECISION == 3
#define WGMMA_TYPES "k8.f32.tf32.tf32"
#elif PRECISION == 2
#define WGMMA_TYPES "k16.f32.f16.f16"
#else
#define WGMMA_TYPES "k16.f32.bf16.bf16"
#endif

#if PRECISION == 3
#define WGMMA_TURNS "" /* operands of 32 bits cannot be transposed */
#elif DEEP_A && DEEP_B
#define WGMMA_TURNS ", 0, 0"
#elif DEEP_A
#define WGMMA_TURNS ", 0, 1"
#elif DEEP_B
#define WGMMA_TURNS ", 1, 0"
#else
#define WGMMA_TURNS ", 1, 1"
#endif

#define FOUR(j) "+f"(z[j][0]), "+f"(z[j][1]), "+f"(z[j][2]), "+f"(z[j][3])
#define SIXTEEN(j) FOUR(j), FOUR(j + 1), FOUR(j + 2), FOUR(j + 3)
#if VECTORS == 256
#define ALL                                                                                        \
  SIXTEEN(0), SIXTEEN(4), SIXTEEN(8), SIXTEEN(12), SIXTEEN(16), SIXTEEN(20), SIXTEEN(24),          \
      SIXTEEN(28)
#define WGMMA_NAME "wgmma.mma_async.sync.aligned.m64n256" WGMMA_TYPES " "
#define WGMMA_OPERANDS "%128, %129"
#define WGMMA_ADD "%130"
#define WGMMA_SUMS                                                                                 \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, "               \
  "%18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, "               \
  "%34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, "               \
  "%50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, "               \
  "%66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, "               \
  "%82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, "               \
  "%98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "             \
  "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, "           \
  "%126, %127"
#else
#define ALL SIXTEEN(0), SIXTEEN(4), SIXTEEN(8), SIXTEEN(12)
#define WGMMA_NAME "wgmma.mma_async.sync.aligned.m64n128" WGMMA_TYPES " "
#define WGMMA_OPERANDS "%64, %65"
#define WGMMA_ADD "%66"
#define WGMMA_SUMS                                                                                 \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, "               \
  "%18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, "               \
  "%34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, "               \
  "%50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#endif

/* The descriptor of a stage for wgmma: groups of eight lines are 1024 bytes apart. */
static __device__ inline unsigned long long operand_of(const char *stage)
{
  return (shared_address(stage) & 0x3ffff) >> 4 | 1ull << 16 | 1024ull >> 4 << 32 | 1ull << 62;
}

/* The same for a transposed operand: groups of eight depths are 1024 bytes apart, and groups of 64
 * lines 8192 bytes. */
static __device__ inline unsigned long long operand_turned(const char *stage)
{
  return (shared_address(stage) & 0x3ffff) >> 4 | 8192ull >> 4 << 16 | 1024ull >> 4 << 32 |
         1ull << 62;
}

/* The distance between the depths of consecutive multiplications, in units of 16 bytes. */
enum { DEEP_HOP = 2, TURNED_HOP = 16 * 128 / 16 };

/* z <- the products over the next 16 depths (tf32: 8), plus z if `add`. */
static __device__ inline void pieces_multiply(float z[VECTORS / 8][4], unsigned long long rows,
                                              unsigned long long others, int add)
{
  asm volatile("{ .reg .pred p; setp.ne.b32 p, " WGMMA_ADD ", 0;\n" WGMMA_NAME "{" WGMMA_SUMS
               "}, " WGMMA_OPERANDS ", p, 1, 1" WGMMA_TURNS "; }"
               : ALL
               : "l"(rows), "l"(others), "r"(add));
}

/* Makes earlier writes to z visible to the products that follow. */
static __device__ inline void products_begin(void)
{
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

static __device__ inline void products_commit(void)
{
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* Wait until all groups of products but the last one have read their stages. */
static __device__ inline void products_wait_one(void)
{
  asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
}

/* Wait for all products; the compiler may not move uses of z across this. */
static __device__ inline void products_wait(float z[VECTORS / 8][4])
{
  asm volatile("wgmma.wait_group.sync.aligned 0;" : ALL : : "memory");
}

#endif
