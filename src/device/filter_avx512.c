/* SPDX-License-Identifier: BSD-3-Clause
 * Loops of the certified filter for AVX-512 with VNNI. */
#include <immintrin.h>
#include <stdint.h>

typedef float lanes __attribute__((vector_size(4 * 16), may_alias));
typedef int32_t ilanes __attribute__((vector_size(4 * 16), may_alias));

enum { LANES = 16, ROWS = 12, COLUMNS = 4, LEVELS = 127, OFFSET = 128 };
#define FILTER_TABLE filter_avx512
#define FILTER_NAME "avx512 vnni"

static inline ilanes dot4(ilanes sum, ilanes atoms, ilanes row)
{
  return (ilanes)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)atoms, (__m512i)row);
}

static inline lanes root(lanes x)
{
  return (lanes)_mm512_sqrt_ps((__m512)x);
}

static inline uint32_t lane_bits(ilanes mask)
{
  return _mm512_movepi32_mask((__m512i)mask);
}

#include "device/filter_body.h"
#include "device/filter_dot4.h"
