/* SPDX-License-Identifier: BSD-3-Clause
 * Loops of a refit for AVX2 with FMA. */
#include <immintrin.h>

enum { LANES = 4 };
typedef double lanes __attribute__((vector_size(8 * 4)));
#define REFIT_TABLE refit_avx2

static inline lanes fmadd(lanes a, lanes b, lanes c)
{
  return _mm256_fmadd_pd(a, b, c);
}

#include "device/refit_body.h"
