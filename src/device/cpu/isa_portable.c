/* SPDX-License-Identifier: BSD-3-Clause
 * All loops in C with vectors of 128 bits, for any processor: SSE2 on x86-64, NEON on aarch64.
 *
 * The x86-64 baseline has no FMA, and a call of fma() for each product would be a hundred times
 * slower.  So there only routing comes from this unit.  There is no certified filter. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "device/cpu/isa.h"

enum { F32_LANES = 4, F64_LANES = 2 };
typedef float f32v __attribute__((vector_size(16), may_alias));
typedef int32_t i32v __attribute__((vector_size(16), may_alias));
typedef double f64v __attribute__((vector_size(16)));
typedef long long i64v __attribute__((vector_size(16)));
typedef float f32h __attribute__((vector_size(8)));

#ifdef __x86_64__ /* 16 vector registers; other processors have 32 */
enum { ROUTE_GROUP = 6, ARROW_TILE = 3, DENSE_COLUMNS = 4 };
#else
enum { ROUTE_GROUP = 12, ARROW_TILE = 4, DENSE_COLUMNS = 8 };
#endif
#define ROUTE_NAME "baseline"
#define DENSE_NAME "baseline"

ALWAYS_INLINE uint32_t mask_bits(i32v mask)
{
#ifdef __SSE2__
  return (uint32_t)_mm_movemask_ps((__m128)mask);
#else
  i32v bits = mask & (i32v){1, 2, 4, 8};
  return (uint32_t)(bits[0] + bits[1] + bits[2] + bits[3]);
#endif
}

ALWAYS_INLINE f32v f32_fma(f32v a, f32v b, f32v c)
{
  f32v to;
  for (int i = 0; i < F32_LANES; i++) to[i] = fmaf(a[i], b[i], c[i]);
  return to;
}

ALWAYS_INLINE f32v f32_sqrt(f32v x)
{
  return (f32v){sqrtf(x[0]), sqrtf(x[1]), sqrtf(x[2]), sqrtf(x[3])};
}

ALWAYS_INLINE f64v f64_fma(f64v a, f64v b, f64v c)
{
  return (f64v){fma(a[0], b[0], c[0]), fma(a[1], b[1], c[1])};
}

ALWAYS_INLINE f64v f64_sqrt(f64v x)
{
  return (f64v){sqrt(x[0]), sqrt(x[1])};
}

ALWAYS_INLINE f64v f64_from_f32(f32h x)
{
  return __builtin_convertvector(x, f64v);
}

ALWAYS_INLINE void f64_transpose(const double *from, long stride, f64v *out)
{
  for (int i = 0; i < 4; i++) out[i] = (f64v){from[i], from[stride + i]};
}

ALWAYS_INLINE double f64_sum(f64v x)
{
  return x[0] + x[1];
}

#include "device/cpu/vectors.h"

#include "device/cpu/arrow_body.h"
#include "device/cpu/attention_body.h"
#include "device/cpu/codes_body.h"
#include "device/cpu/dense_body.h"
#include "device/cpu/mixer_body.h"
#include "device/cpu/nonnegative_body.h"
#include "device/cpu/normal_body.h"
#include "device/cpu/refit_body.h"
#include "device/cpu/route_body.h"
#include "device/cpu/triad_body.h"

#if defined __x86_64__ && !defined __FMA__
enum { HAS_FMA = 0 };
#else
enum { HAS_FMA = 1 };
#endif

const struct isa isa_portable = {
    .route = &route_table,
    .codes = HAS_FMA ? &codes_table : NULL,
    .refit = HAS_FMA ? &refit_table : NULL,
    .arrow = HAS_FMA ? &arrow_table : NULL,
    .dense = HAS_FMA ? &dense_table : NULL,
    .normal = HAS_FMA ? &normal_table : NULL,
    .triad = HAS_FMA ? &triad_table : NULL,
    .attention = HAS_FMA ? &attention_table : NULL,
    .mixer = HAS_FMA ? &mixer_table : NULL,
};
