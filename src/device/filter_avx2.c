/* SPDX-License-Identifier: BSD-3-Clause
 * Loops of the certified filter for AVX2: 63 levels for atoms, since its sums of two products
 * saturate at 16 bits. */
#include <immintrin.h>
#include <stdint.h>

typedef float lanes __attribute__((vector_size(4 * 8), may_alias));
typedef int32_t ilanes __attribute__((vector_size(4 * 8), may_alias));

enum { LANES = 8, ROWS = 4, COLUMNS = 4, LEVELS = 63, OFFSET = 64 };
#define FILTER_TABLE filter_avx2
#define FILTER_NAME "avx2"

static inline ilanes dot4(ilanes sum, ilanes atoms, ilanes row)
{
  __m256i two = _mm256_maddubs_epi16((__m256i)atoms, (__m256i)row);
  return sum + (ilanes)_mm256_madd_epi16(two, _mm256_set1_epi16(1));
}

static inline lanes root(lanes x)
{
  return (lanes)_mm256_sqrt_ps((__m256)x);
}

static inline uint32_t lane_bits(ilanes mask)
{
  return (uint32_t)_mm256_movemask_ps((__m256)mask);
}

#include "device/filter_body.h"
#include "device/filter_dot4.h"
