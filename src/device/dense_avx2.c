/* SPDX-License-Identifier: BSD-3-Clause
 * Loops of dense work for AVX2 with FMA. */
#include <immintrin.h>

enum { LANES = 4, COLUMNS = 4 };
typedef double lanes __attribute__((vector_size(8 * 4)));
typedef float floats __attribute__((vector_size(4 * 4)));
#define DENSE_TABLE dense_avx2
#define DENSE_NAME "avx2"

static inline lanes fmadd(lanes a, lanes b, lanes c)
{
  return _mm256_fmadd_pd(a, b, c);
}

static inline lanes convert(floats v)
{
  return _mm256_cvtps_pd(v);
}

#include "device/dense_body.h"
