/* SPDX-License-Identifier: BSD-3-Clause
 * All loops for AVX2 with FMA.  The certified filter has only 63 levels for atoms, because AVX2
 * adds two products with saturation to 16 bits. */
#include "device/cpu/isa.h"
#include "device/cpu/vectors_256.h"

enum { ROUTE_GROUP = 6, ARROW_TILE = 3, DENSE_COLUMNS = 4 };
enum { SCREEN_GROUP = 4, SCREEN_COLUMNS = 4, SCREEN_LEVELS = 63, SCREEN_OFFSET = 64 };
#define ROUTE_NAME "avx2"
#define DENSE_NAME "avx2"
#define SCREEN_NAME "avx2"

static inline i32v screen_dot4(i32v sum, i32v atoms, i32v row)
{
  __m256i two = _mm256_maddubs_epi16((__m256i)atoms, (__m256i)row);
  return sum + (i32v)_mm256_madd_epi16(two, _mm256_set1_epi16(1));
}

#include "device/cpu/arrow_body.h"
#include "device/cpu/attention_body.h"
#include "device/cpu/codes_body.h"
#include "device/cpu/dense_body.h"
#include "device/cpu/mixer_body.h"
#include "device/cpu/nonnegative_body.h"
#include "device/cpu/normal_body.h"
#include "device/cpu/refit_body.h"
#include "device/cpu/route_body.h"
#include "device/cpu/screen_body.h"
#include "device/cpu/screen_dot4.h"
#include "device/cpu/triad_body.h"

const struct isa isa_avx2 = {
    .needs = CPU_AVX2,
    .route = &route_table,
    .codes = &codes_table,
    .refit = &refit_table,
    .arrow = &arrow_table,
    .dense = &dense_table,
    .normal = &normal_table,
    .triad = &triad_table,
    .attention = &attention_table,
    .mixer = &mixer_table,
    .screen = &screen_table,
};
