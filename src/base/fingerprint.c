/* SPDX-License-Identifier: BSD-3-Clause
 * Both functions read through memcpy, so arrays of any type may be given. */
#include "base/fingerprint.h"

#include <string.h>

#include "base/rng.h"

/* Combine two words to one.  If one of them is fixed, the result is a bijection of the other.  If a
 * single bit of each word changes, such as two signs, the changes do not cancel. */
static uint64_t fold(const uint64_t pair[2])
{
  uint64_t other = pair[1] * 0xc2b2ae3d27d4eb4fu;
  return pair[0] + (other << 31 | other >> 33);
}

/* The term that one value adds to the sum. */
static uint64_t term(uint64_t bits, gidx position)
{
  return mix64(bits + 0x9e3779b97f4a7c15u * (uint64_t)(position + 1));
}

uint64_t fingerprint(const void *values, gidx count, int width, gidx first)
{
  const unsigned char *bytes = values;
  uint64_t sum = 0, wide, pair[2];
  uint32_t narrow;
  if (width == sizeof narrow)
    for (gidx i = 0; i < count; i++) {
      memcpy(&narrow, bytes + i * 4, sizeof narrow);
      sum += term(narrow, first + i);
    }
  else if (width == sizeof pair)
    for (gidx i = 0; i < count; i++) {
      memcpy(pair, bytes + i * 16, sizeof pair);
      sum += term(fold(pair), first + i);
    }
  else
    for (gidx i = 0; i < count; i++) {
      memcpy(&wide, bytes + i * 8, sizeof wide);
      sum += term(wide, first + i);
    }
  return sum;
}

uint64_t hash64(const void *bytes, size_t length)
{
  uint64_t hash = mix64(length + 1);
  for (size_t at = 0; at < length; at += 8) {
    uint64_t word = 0;
    memcpy(&word, (const unsigned char *)bytes + at, length - at < 8 ? length - at : 8);
    hash = mix64(hash ^ word) + 0x9e3779b97f4a7c15u;
  }
  return hash;
}
