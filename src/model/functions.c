/* SPDX-License-Identifier: BSD-3-Clause
 * Polynomials by Horner's rule in fma; the coefficients are minimax fits, rounded to float32. */
#include "model/functions.h"

#include <math.h>
#include <string.h>

#include "base/types.h"

static const float LOG2_E = 0x1.715476p+0f;

static float float_of(uint32_t bits)
{
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static uint32_t bits_of(float value)
{
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/* c[0] + c[1] x + .. + c[n - 1] x^(n - 1) */
static float horner(const float *c, int n, float x)
{
  float sum = c[n - 1];
  for (int i = n - 2; i >= 0; i--) sum = fmaf(sum, x, c[i]);
  return sum;
}

/* 2^n for n in -126 .. 127 */
static float power_of_two(int32_t n)
{
  return float_of((uint32_t)(n + 127) << 23);
}

float exp2_f32(float x)
{
  static const float c[] = {1,
                            0x1.62e430p-1f,
                            0x1.ebfbdcp-3f,
                            0x1.c6aee8p-5f,
                            0x1.3b2d4ap-7f,
                            0x1.5f3e2cp-10f,
                            0x1.41fd02p-13f};
  const float round = 0x1.8p23f; /* adding it leaves the nearest integer in the last bits of x */
  if (x != x) return x;
  x = x < -151 ? -151 : x > 129 ? 129 : x;
  float rounded = x + round, rest = x - (rounded - round);
  int32_t n = (int32_t)(bits_of(rounded) - bits_of(round));
  float power = horner(c, 7, rest); /* the first product is exact, the second may underflow */
  return power * power_of_two(n / 2) * power_of_two(n - n / 2);
}

float log_f32(float x)
{
  static const float c[] = {0x1.555556p-1f, 0x1.9999b4p-2f, 0x1.247550p-2f, 0x1.d87830p-3f};
  const float ln2_high = 0x1.62e300p-1f, ln2_low = 0x1.2fefa2p-17f; /* k ln2_high is exact */
  const uint32_t root_half = 0x3f3504f3, one = 0x3f800000;
  if (!(x > 0)) return x == 0 ? -INFINITY : NAN;
  if (x == INFINITY) return x;
  int subnormal = x < 0x1p-126f;
  if (subnormal) x *= 0x1p25f;
  uint32_t bits = bits_of(x) + (one - root_half);
  float k = (float)((int32_t)(bits >> 23) - 127 - (subnormal ? 25 : 0));
  float f = float_of((bits & 0x7fffff) + root_half) - 1; /* x = 2^k (1 + f) */
  float s = f / (2 + f), z = s * s, half = 0.5f * f * f;
  float low = fmaf(s, fmaf(z, horner(c, 4, z), half), k * ln2_low);
  return fmaf(k, ln2_high, f - (half - low));
}

float tanh_f32(float x)
{
  static const float c[] = {-0x1.555554p-2f, 0x1.11106ep-3f,  -0x1.b9f006p-5f,
                            0x1.6399d8p-6f,  -0x1.0c3710p-7f, 0x1.19c33cp-9f};
  float size = fabsf(x), square = x * x;
  float small = fmaf(size * square, horner(c, 6, square), size);
  float large = 1 - 2 / (exp2_f32(2 * LOG2_E * size) + 1);
  return copysignf(size < 0.625f ? small : large, x);
}
