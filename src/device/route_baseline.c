/* SPDX-License-Identifier: BSD-3-Clause
 * Routing loops for every x86-64 (SSE2). */
#include <emmintrin.h>
#include <stdint.h>

typedef float lanes __attribute__((vector_size(4 * 4), may_alias));
typedef int32_t ilanes __attribute__((vector_size(4 * 4), may_alias));

enum { LANES = 4, ROWS = 6 };
#define ROUTE_TABLE route_baseline
#define ROUTE_NAME "baseline"

static inline uint32_t lane_bits(ilanes mask)
{
  return (uint32_t)_mm_movemask_ps((__m128)mask);
}

#include "device/route_body.h"
