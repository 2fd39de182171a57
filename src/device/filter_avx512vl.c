/* SPDX-License-Identifier: BSD-3-Clause
 * Loops of the certified filter for AVX-512 with VNNI, vectors of 256 bits. */
#include <immintrin.h>
#include <stdint.h>

typedef float lanes __attribute__((vector_size(4 * 8), may_alias));
typedef int32_t ilanes __attribute__((vector_size(4 * 8), may_alias));

enum { LANES = 8, ROWS = 12, COLUMNS = 4, LEVELS = 127, OFFSET = 128 };
#define FILTER_TABLE filter_avx512vl
#define FILTER_NAME "avx512vl vnni"

static inline ilanes dot4(ilanes sum, ilanes atoms, ilanes row)
{
  return (ilanes)_mm256_dpbusd_epi32((__m256i)sum, (__m256i)atoms, (__m256i)row);
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
