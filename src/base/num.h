/* SPDX-License-Identifier: BSD-3-Clause
 * Small arithmetic on counts, and the bits of every NaN that is written to a file.
 *
 * Floor: base. */
#ifndef BASE_NUM_H
#define BASE_NUM_H

#include <string.h>

#include "base/types.h"

static inline gidx imin(gidx a, gidx b)
{
  return a < b ? a : b;
}

static inline gidx imax(gidx a, gidx b)
{
  return a > b ? a : b;
}

/* ceil_div() returns a / b rounded up; round_up() the smallest multiple of b that is at least a.  a
 * >= 0, b >= 1. */
static inline gidx ceil_div(gidx a, gidx b)
{
  return a / b + (a % b != 0);
}

static inline gidx round_up(gidx a, gidx b)
{
  return ceil_div(a, b) * b;
}

/* 0x7FF8000000000000: every NaN of a result has these bits, so that equal results have equal
 * bytes. */
static inline real nan_canonical(void)
{
  const uint64_t bits = 0x7ff8000000000000u;
  real value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

#endif
