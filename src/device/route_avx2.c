/* SPDX-License-Identifier: BSD-3-Clause
 * Routing loops for AVX2. */
#include <immintrin.h>
#include <stdint.h>

typedef float lanes __attribute__((vector_size(4 * 8), may_alias));
typedef int32_t ilanes __attribute__((vector_size(4 * 8), may_alias));

enum { LANES = 8, ROWS = 6 };
#define ROUTE_TABLE route_avx2
#define ROUTE_NAME "avx2"

static inline uint32_t lane_bits(ilanes mask)
{
  return (uint32_t)_mm256_movemask_ps((__m256)mask);
}

#include "device/route_body.h"
