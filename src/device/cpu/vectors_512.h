/* SPDX-License-Identifier: BSD-3-Clause
 * Vectors of 512 bits, for AVX-512.
 *
 * Floor: device.  These are the definitions that vectors.h needs. */
#ifndef DEVICE_CPU_VECTORS_512_H
#define DEVICE_CPU_VECTORS_512_H

#include <immintrin.h>
#include <stdint.h>

#include "device/cpu/isa.h"

enum { F32_LANES = 16, F64_LANES = 8 };
typedef float f32v __attribute__((vector_size(64), may_alias));
typedef int32_t i32v __attribute__((vector_size(64), may_alias));
typedef double f64v __attribute__((vector_size(64)));
typedef long long i64v __attribute__((vector_size(64)));
typedef float f32h __attribute__((vector_size(32)));

ALWAYS_INLINE uint32_t mask_bits(i32v mask)
{
  return _mm512_movepi32_mask((__m512i)mask);
}

ALWAYS_INLINE f32v f32_sqrt(f32v x)
{
  return (f32v)_mm512_sqrt_ps((__m512)x);
}

ALWAYS_INLINE f32v f32_fma(f32v a, f32v b, f32v c)
{
  return (f32v)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}

ALWAYS_INLINE f64v f64_fma(f64v a, f64v b, f64v c)
{
  return _mm512_fmadd_pd(a, b, c);
}

ALWAYS_INLINE f64v f64_sqrt(f64v x)
{
  return _mm512_sqrt_pd(x);
}

/* gcc's own conversion splits the vector. */
ALWAYS_INLINE f64v f64_from_f32(f32h x)
{
  return _mm512_cvtps_pd(x);
}

/* Four numbers of row i, and four of row i + 4; `from` points at row i. */
ALWAYS_INLINE f64v f64_pair(const double *from, long stride)
{
  return _mm512_insertf64x4(_mm512_castpd256_pd512(_mm256_loadu_pd(from)),
                            _mm256_loadu_pd(from + 4 * stride), 1);
}

ALWAYS_INLINE void f64_transpose(const double *from, long stride, f64v *out)
{
  f64v r0 = f64_pair(from, stride), r1 = f64_pair(from + stride, stride);
  f64v r2 = f64_pair(from + 2 * stride, stride), r3 = f64_pair(from + 3 * stride, stride);
  f64v a = _mm512_unpacklo_pd(r0, r1), b = _mm512_unpackhi_pd(r0, r1);
  f64v c = _mm512_unpacklo_pd(r2, r3), d = _mm512_unpackhi_pd(r2, r3);
  out[0] = __builtin_shufflevector(a, c, 0, 1, 8, 9, 4, 5, 12, 13);
  out[1] = __builtin_shufflevector(b, d, 0, 1, 8, 9, 4, 5, 12, 13);
  out[2] = __builtin_shufflevector(a, c, 2, 3, 10, 11, 6, 7, 14, 15);
  out[3] = __builtin_shufflevector(b, d, 2, 3, 10, 11, 6, 7, 14, 15);
}

ALWAYS_INLINE double f64_sum(f64v x)
{
  x += __builtin_shufflevector(x, x, 4, 5, 6, 7, 4, 5, 6, 7);
  x += __builtin_shufflevector(x, x, 2, 3, 2, 3, 2, 3, 2, 3);
  return x[0] + x[1];
}

#include "device/cpu/vectors.h"

#endif
