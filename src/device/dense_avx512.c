/* SPDX-License-Identifier: BSD-3-Clause
 * Loops of dense work for AVX-512. */
#include <immintrin.h>

enum { LANES = 8, COLUMNS = 8 };
typedef double lanes __attribute__((vector_size(8 * 8)));
typedef float floats __attribute__((vector_size(8 * 4)));
#define DENSE_TABLE dense_avx512
#define DENSE_NAME "avx512"

static inline lanes fmadd(lanes a, lanes b, lanes c)
{
  return _mm512_fmadd_pd(a, b, c);
}

static inline lanes convert(floats v)
{
  return _mm512_cvtps_pd(v);
}

#include "device/dense_body.h"
