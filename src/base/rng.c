/* SPDX-License-Identifier: BSD-3-Clause
 * A word is splitmix64's finaliser applied to a keyed counter; a normal number is twelve uniforms
 * added as integers. */
#include "base/rng.h"

idx golden_stride(idx count)
{
  idx stride = (idx)(0.6180339887 * count) + 1;
  for (;; stride++) {
    idx a = count, b = stride;
    while (b) {
      idx rest = a % b;
      a = b;
      b = rest;
    }
    if (a == 1) return stride;
  }
}

uint64_t random_bits(uint64_t seed, uint64_t stream, uint64_t counter)
{
  const uint64_t golden = 0x9e3779b97f4a7c15u;
  uint64_t key = mix64(mix64(seed + golden) + golden * (stream + 1));
  return mix64(key + golden * (counter + 1));
}

uint64_t random_below(uint64_t seed, uint64_t stream, uint64_t counter, uint64_t bound)
{
  uint64_t bits = random_bits(seed, stream, counter);
  uint64_t low = (bits & 0xffffffffu) * bound >> 32;
  return ((bits >> 32) * bound + low) >> 32;
}

real random_normal(uint64_t seed, uint64_t stream, uint64_t counter)
{
  int64_t sum = 0;
  for (uint64_t word = 0; word < 3; word++) {
    uint64_t bits = random_bits(seed, stream, 3 * counter + word);
    for (int part = 0; part < 4; part++) sum += (int64_t)(bits >> 16 * part & 0xffff);
  }
  return (real)(2 * sum + 12 - 12 * 65536) * 0x1p-17;
}
