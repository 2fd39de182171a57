/* SPDX-License-Identifier: BSD-3-Clause
 * Vectors of 256 bits, for AVX2 with FMA and for AVX-512VL.
 *
 * Floor: device.  These are the definitions that vectors.h needs. */
#ifndef DEVICE_CPU_VECTORS_256_H
#define DEVICE_CPU_VECTORS_256_H

#include <immintrin.h>
#include <stdint.h>

#include "device/cpu/isa.h"

enum { F32_LANES = 8, F64_LANES = 4 };
typedef float f32v __attribute__((vector_size(32), may_alias));
typedef int32_t i32v __attribute__((vector_size(32), may_alias));
typedef double f64v __attribute__((vector_size(32)));
typedef long long i64v __attribute__((vector_size(32)));
typedef float f32h __attribute__((vector_size(16)));

ALWAYS_INLINE uint32_t mask_bits(i32v mask)
{
  return (uint32_t)_mm256_movemask_ps((__m256)mask);
}

ALWAYS_INLINE f32v f32_sqrt(f32v x)
{
  return (f32v)_mm256_sqrt_ps((__m256)x);
}

ALWAYS_INLINE f32v f32_fma(f32v a, f32v b, f32v c)
{
  return (f32v)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}

ALWAYS_INLINE f64v f64_fma(f64v a, f64v b, f64v c)
{
  return _mm256_fmadd_pd(a, b, c);
}

ALWAYS_INLINE f64v f64_sqrt(f64v x)
{
  return _mm256_sqrt_pd(x);
}

/* gcc's own conversion splits the vector. */
ALWAYS_INLINE f64v f64_from_f32(f32h x)
{
  return _mm256_cvtps_pd(x);
}

ALWAYS_INLINE void f64_transpose(const double *from, long stride, f64v *out)
{
  f64v r0 = _mm256_loadu_pd(from), r1 = _mm256_loadu_pd(from + stride);
  f64v r2 = _mm256_loadu_pd(from + 2 * stride), r3 = _mm256_loadu_pd(from + 3 * stride);
  f64v a = __builtin_shufflevector(r0, r1, 0, 4, 2, 6),
       b = __builtin_shufflevector(r0, r1, 1, 5, 3, 7);
  f64v c = __builtin_shufflevector(r2, r3, 0, 4, 2, 6),
       d = __builtin_shufflevector(r2, r3, 1, 5, 3, 7);
  out[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5);
  out[1] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
  out[2] = __builtin_shufflevector(a, c, 2, 3, 6, 7);
  out[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
}

ALWAYS_INLINE double f64_sum(f64v x)
{
  x += __builtin_shufflevector(x, x, 2, 3, 2, 3);
  return x[0] + x[1];
}

#include "device/cpu/vectors.h"

#endif
