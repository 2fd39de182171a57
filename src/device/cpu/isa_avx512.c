/* SPDX-License-Identifier: BSD-3-Clause
 * Loops for AVX-512 with vectors of 512 bits, without VNNI: all but those of the certified
 * filter. */
#include "device/cpu/isa.h"
#include "device/cpu/vectors_512.h"

enum { ROUTE_GROUP = 12, ARROW_TILE = 4, DENSE_COLUMNS = 8 };
#define ROUTE_NAME "avx512"
#define DENSE_NAME "avx512"

#include "device/cpu/arrow_body.h"
#include "device/cpu/attention_body.h"
#include "device/cpu/codes_body.h"
#include "device/cpu/dense_body.h"
#include "device/cpu/mixer_body.h"
#include "device/cpu/nonnegative_body.h"
#include "device/cpu/normal_body.h"
#include "device/cpu/refit_body.h"
#include "device/cpu/route_body.h"
#include "device/cpu/triad_body.h"

const struct isa isa_avx512 = {
    .needs = CPU_AVX512,
    .route = &route_table,
    .codes = &codes_table,
    .refit = &refit_table,
    .arrow = &arrow_table,
    .dense = &dense_table,
    .normal = &normal_table,
    .triad = &triad_table,
    .attention = &attention_table,
    .mixer = &mixer_table,
};
