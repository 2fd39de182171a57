/* SPDX-License-Identifier: BSD-3-Clause
 * Both functions read through memcpy, so arrays of any type may be given. */
#include "base/fingerprint.h"

#include <string.h>

#include "base/order.h"

uint64_t fingerprint(const void *values, gidx count, int width, gidx first)
{
  const unsigned char *bytes = values;
  uint64_t sum = 0;
  for (gidx i = 0; i < count; i++) {
    uint64_t bits = 0;
    memcpy(&bits, bytes + i * width, (size_t)width);
    sum += mix64(bits + 0x9e3779b97f4a7c15u * (uint64_t)(first + i + 1));
  }
  return sum;
}

uint64_t bytes_hash(const void *bytes, size_t length)
{
  uint64_t hash = mix64(length + 1);
  for (size_t at = 0; at < length; at += 8) {
    uint64_t word = 0;
    memcpy(&word, (const unsigned char *)bytes + at, length - at < 8 ? length - at : 8);
    hash = mix64(hash ^ word) + 0x9e3779b97f4a7c15u;
  }
  return hash;
}
