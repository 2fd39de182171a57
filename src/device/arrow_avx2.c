/* SPDX-License-Identifier: BSD-3-Clause
 * Loops of the arrow systems for AVX2 with FMA. */
#include <immintrin.h>

enum { LANES = 4, TILE = 3 };
typedef double val __attribute__((vector_size(8 * 4)));
typedef long long mask __attribute__((vector_size(8 * 4)));
#define ARROW_TABLE arrow_avx2
#define VAL_FMA(a, b, c) _mm256_fmadd_pd(a, b, c)
#define VAL_SQRT(a) _mm256_sqrt_pd(a)

/* out[4] <- the four columns of four rows of four numbers each, `stride` apart. */
static inline __attribute__((always_inline)) void turn(const double *from, long stride, val *out)
{
  val r0 = _mm256_loadu_pd(from), r1 = _mm256_loadu_pd(from + stride);
  val r2 = _mm256_loadu_pd(from + 2 * stride), r3 = _mm256_loadu_pd(from + 3 * stride);
  val a = __builtin_shufflevector(r0, r1, 0, 4, 2, 6),
      b = __builtin_shufflevector(r0, r1, 1, 5, 3, 7);
  val c = __builtin_shufflevector(r2, r3, 0, 4, 2, 6),
      d = __builtin_shufflevector(r2, r3, 1, 5, 3, 7);
  out[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5);
  out[1] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
  out[2] = __builtin_shufflevector(a, c, 2, 3, 6, 7);
  out[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
}

/* Lane 0 of the tree that ends in + 2, + 1. */
static inline double within(val x)
{
  x += __builtin_shufflevector(x, x, 2, 3, 2, 3);
  return x[0] + x[1];
}

#include "device/arrow_loops.h"
