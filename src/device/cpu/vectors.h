/* SPDX-License-Identifier: BSD-3-Clause
 * Functions that all loop bodies use, for any vector width: one number in all lanes, loads, stores.
 *
 * Floor: device.  A unit (isa_<set>.c) includes this after it has defined
 *   F32_LANES, F64_LANES  floats and doubles in a vector,
 *   f32v, i32v            vectors of F32_LANES floats and 32-bit integers, which may alias,
 *   f64v, i64v, f32h      vectors of F64_LANES doubles, 64-bit integers and floats,
 *   mask_bits(m)          one bit per lane of an i32v that is the result of a comparison,
 *   f32_fma(a, b, c), f64_fma(a, b, c)  a b + c, rounded once,
 *   f32_sqrt(x), f64_sqrt(x), f64_from_f32(x),
 *   f64_transpose(from, stride, out)  out[4] <- the columns of F64_LANES rows of four doubles,
 *   f64_sum(x)            lane 0 of the tree x_i + x_(i + n / 2), halved until one is left. */
#ifndef DEVICE_CPU_VECTORS_H
#define DEVICE_CPU_VECTORS_H

#include <string.h>

#include "base/types.h"

/* Constraints for one of the first 16 registers, and for any vector register. */
#if defined __x86_64__
#define FIRST_REGISTER "x"
#define VECTOR_REGISTER "v"
#elif defined __aarch64__
#define FIRST_REGISTER "w"
#define VECTOR_REGISTER "w"
#else
#define FIRST_REGISTER "m"
#define VECTOR_REGISTER "m"
#endif

ALWAYS_INLINE f32v f32_splat(float x)
{
  return x - (f32v){0};
}

ALWAYS_INLINE f32v f32_load(const float *from)
{
  f32v v;
  memcpy(&v, from, sizeof v);
  return v;
}

ALWAYS_INLINE void f32_store(float *to, f32v v)
{
  memcpy(to, &v, sizeof v);
}

ALWAYS_INLINE idx i32_sum(i32v v)
{
  idx sum = 0;
  for (int i = 0; i < F32_LANES; i++) sum += v[i];
  return sum;
}

ALWAYS_INLINE f64v f64_splat(real x)
{
  return x - (f64v){0};
}

ALWAYS_INLINE f64v f64_load(const real *from)
{
  f64v v;
  memcpy(&v, from, sizeof v);
  return v;
}

ALWAYS_INLINE f64v f64_widen(const float *from)
{
  f32h v;
  memcpy(&v, from, sizeof v);
  return f64_from_f32(v);
}

ALWAYS_INLINE void f64_store(real *to, f64v v)
{
  memcpy(to, &v, sizeof v);
}

#endif
