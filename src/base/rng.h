/* SPDX-License-Identifier: BSD-3-Clause
 * Counter-based random numbers; and strides, for visiting all items in a spread-out order.
 *
 * Floor: base.
 *
 * A number is a pure function of (seed, stream, counter), so any rank can compute any number
 * (doc/numerics.md section 8).  Each stream serves one purpose, such as noise; the counter numbers
 * the draws of a stream. */
#ifndef BASE_RNG_H
#define BASE_RNG_H

#include "base/types.h"

/* A stride t that is prime to count >= 1: 0, t, 2 t, ... modulo count visits each of 0 .. count - 1
 * once.  t is about the golden section of count, so that even the first few numbers are spread over
 * the whole range. */
idx golden_stride(idx count);

/* 64 random bits. */
uint64_t random_bits(uint64_t seed, uint64_t stream, uint64_t counter);

/* Uniform in 0 .. bound - 1, bound 1 .. 2^32: the upper half of the product of 64 random bits and
 * bound. */
uint64_t random_below(uint64_t seed, uint64_t stream, uint64_t counter, uint64_t bound);

/* Nearly normal with mean 0 and variance 1: twelve 16-bit uniforms added as integers, no libm. */
real random_normal(uint64_t seed, uint64_t stream, uint64_t counter);

/* splitmix64's finaliser, a bijection of 64-bit words (Steele, Lea, Flood 2014). */
static inline uint64_t mix64(uint64_t x)
{
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

#endif
