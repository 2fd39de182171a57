/* SPDX-License-Identifier: BSD-3-Clause
 * Loops of a refit for AVX-512. */
#include <immintrin.h>

enum { LANES = 8 };
typedef double lanes __attribute__((vector_size(8 * 8)));
#define REFIT_TABLE refit_avx512

static inline lanes fmadd(lanes a, lanes b, lanes c)
{
  return _mm512_fmadd_pd(a, b, c);
}

#include "device/refit_body.h"
