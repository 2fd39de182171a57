/* SPDX-License-Identifier: BSD-3-Clause
 * Routing for AVX-512 with vectors of 256 bits: twice the registers of AVX2.  This is the fastest
 * on Zen 4, where broadcasts cost vectors of 512 bits a third of their speed. */
#include "device/cpu/isa.h"
#include "device/cpu/vectors_256.h"

enum { ROUTE_GROUP = 12 };
#define ROUTE_NAME "avx512vl"

#include "device/cpu/route_body.h"

const struct isa isa_avx512vl = {.needs = CPU_AVX512, .route = &route_table};
