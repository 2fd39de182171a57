/* SPDX-License-Identifier: BSD-3-Clause
 * Routing loops for AVX-512 with vectors of 256 bits: twice the registers of AVX2.  Zen 4 wants
 * these, see route_body.h. */
#include <immintrin.h>
#include <stdint.h>

typedef float lanes __attribute__((vector_size(4 * 8), may_alias));
typedef int32_t ilanes __attribute__((vector_size(4 * 8), may_alias));

enum { LANES = 8, ROWS = 12 };
#define ROUTE_TABLE route_avx512vl
#define ROUTE_NAME "avx512vl"

static inline uint32_t lane_bits(ilanes mask)
{
  return (uint32_t)_mm256_movemask_ps((__m256)mask);
}

#include "device/route_body.h"
