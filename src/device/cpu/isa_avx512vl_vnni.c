/* SPDX-License-Identifier: BSD-3-Clause
 * The certified filter for AVX-512 with VNNI, vectors of 256 bits. */
#include "device/cpu/isa.h"
#include "device/cpu/vectors_256.h"

enum { SCREEN_GROUP = 12, SCREEN_COLUMNS = 4, SCREEN_LEVELS = 127, SCREEN_OFFSET = 128 };
#define SCREEN_NAME "avx512vl vnni"

static inline i32v screen_dot4(i32v sum, i32v atoms, i32v row)
{
  return (i32v)_mm256_dpbusd_epi32((__m256i)sum, (__m256i)atoms, (__m256i)row);
}

#include "device/cpu/screen_body.h"
#include "device/cpu/screen_dot4.h"

const struct isa isa_avx512vl_vnni = {.needs = CPU_AVX512 | CPU_VNNI, .screen = &screen_table};
