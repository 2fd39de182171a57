/* SPDX-License-Identifier: BSD-3-Clause
 * Loops of the arrow systems for AVX-512. */
#include <immintrin.h>

enum { LANES = 8, TILE = 4 };
typedef double val __attribute__((vector_size(8 * 8)));
typedef long long mask __attribute__((vector_size(8 * 8)));
#define ARROW_TABLE arrow_avx512
#define VAL_FMA(a, b, c) _mm512_fmadd_pd(a, b, c)
#define VAL_SQRT(a) _mm512_sqrt_pd(a)

/* Rows i and i + 4 of four numbers each. */
static inline __attribute__((always_inline)) val pair(const double *from, long stride)
{
  return _mm512_insertf64x4(_mm512_castpd256_pd512(_mm256_loadu_pd(from)),
                            _mm256_loadu_pd(from + 4 * stride), 1);
}

/* out[4] <- the four columns of eight rows of four numbers each, `stride` apart. */
static inline __attribute__((always_inline)) void turn(const double *from, long stride, val *out)
{
  val r0 = pair(from, stride), r1 = pair(from + stride, stride);
  val r2 = pair(from + 2 * stride, stride), r3 = pair(from + 3 * stride, stride);
  val a = _mm512_unpacklo_pd(r0, r1), b = _mm512_unpackhi_pd(r0, r1);
  val c = _mm512_unpacklo_pd(r2, r3), d = _mm512_unpackhi_pd(r2, r3);
  out[0] = __builtin_shufflevector(a, c, 0, 1, 8, 9, 4, 5, 12, 13);
  out[1] = __builtin_shufflevector(b, d, 0, 1, 8, 9, 4, 5, 12, 13);
  out[2] = __builtin_shufflevector(a, c, 2, 3, 10, 11, 6, 7, 14, 15);
  out[3] = __builtin_shufflevector(b, d, 2, 3, 10, 11, 6, 7, 14, 15);
}

/* Lane 0 of the tree that ends in + 4, + 2, + 1. */
static inline double within(val x)
{
  x += __builtin_shufflevector(x, x, 4, 5, 6, 7, 4, 5, 6, 7);
  x += __builtin_shufflevector(x, x, 2, 3, 2, 3, 2, 3, 2, 3);
  return x[0] + x[1];
}

#include "device/arrow_loops.h"
