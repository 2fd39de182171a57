/* SPDX-License-Identifier: BSD-3-Clause
 * Routing loops for AVX-512. */
#include <immintrin.h>
#include <stdint.h>

typedef float lanes __attribute__((vector_size(4 * 16), may_alias));
typedef int32_t ilanes __attribute__((vector_size(4 * 16), may_alias));

enum { LANES = 16, ROWS = 12 };
#define ROUTE_TABLE route_avx512
#define ROUTE_NAME "avx512"

static inline uint32_t lane_bits(ilanes mask)
{
  return _mm512_movepi32_mask((__m512i)mask);
}

#include "device/route_body.h"
