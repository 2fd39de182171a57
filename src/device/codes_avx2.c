/* SPDX-License-Identifier: BSD-3-Clause
 * Loops of the codes for AVX2 with FMA. */
#include <immintrin.h>
#include <stdint.h>

enum { LANES = 4 };
typedef double lanes __attribute__((vector_size(8 * 4)));
typedef float floats __attribute__((vector_size(4 * 4)));
typedef float v8 __attribute__((vector_size(32)));
#define CODES_TABLE codes_avx2

static inline lanes fmadd(lanes a, lanes b, lanes c)
{
  return _mm256_fmadd_pd(a, b, c);
}

static inline lanes convert(floats v)
{
  return _mm256_cvtps_pd(v);
}

#include "device/codes_body.h"
