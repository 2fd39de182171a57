/* SPDX-License-Identifier: BSD-3-Clause
 * The certified filter for AVX-512 with VNNI, vectors of 512 bits. */
#include "device/cpu/isa.h"
#include "device/cpu/vectors_512.h"

enum { SCREEN_GROUP = 12, SCREEN_COLUMNS = 4, SCREEN_LEVELS = 127, SCREEN_OFFSET = 128 };
#define SCREEN_NAME "avx512 vnni"

static inline i32v screen_dot4(i32v sum, i32v atoms, i32v row)
{
  return (i32v)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)atoms, (__m512i)row);
}

#include "device/cpu/screen_body.h"
#include "device/cpu/screen_dot4.h"

const struct isa isa_avx512_vnni = {.needs = CPU_AVX512 | CPU_VNNI, .screen = &screen_table};
