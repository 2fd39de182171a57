/* SPDX-License-Identifier: BSD-3-Clause
 * Exponential, logarithm and hyperbolic tangent (N.26) with the bits of src/model/functions.c.
 * All of them return NaN for NaN.  At the end the caller replaces every NaN by one fixed NaN. */
#ifndef FUNCTIONS_H
#define FUNCTIONS_H

/* The larger one; NaN if either is NaN. */
static __device__ inline float larger(float a, float b)
{
  float out;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(out) : "f"(a), "f"(b));
  return out;
}

static __device__ inline float smaller(float a, float b)
{
  float out;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(out) : "f"(a), "f"(b));
  return out;
}

static __device__ inline float horner_step(float sum, float x, float c)
{
  return __fmaf_rn(sum, x, c);
}

/* 2^(x - n), where n is x rounded to an integer.  The last bits of *rounded hold n. */
static __device__ inline float exp2_part(float x, int *rounded)
{
  const float round = 0x1.8p23f;
  float shifted = __fadd_rn(x, round), rest = __fsub_rn(x, __fsub_rn(shifted, round));
  float sum = 0x1.41fd02p-13f;
  sum = horner_step(sum, rest, 0x1.5f3e2cp-10f);
  sum = horner_step(sum, rest, 0x1.3b2d4ap-7f);
  sum = horner_step(sum, rest, 0x1.c6aee8p-5f);
  sum = horner_step(sum, rest, 0x1.ebfbdcp-3f);
  sum = horner_step(sum, rest, 0x1.62e430p-1f);
  sum = horner_step(sum, rest, 1);
  *rounded = __float_as_int(shifted);
  return sum;
}

/* For |x| <= 125 the exponent can be added to the bits, since no result is subnormal. */
enum { EXP2_NEAR = 125 };
static __device__ inline float exp2_near(float x)
{
  int rounded;
  float part = exp2_part(x, &rounded);
  return __int_as_float(__float_as_int(part) + (rounded << 23)); /* higher bits are shifted out */
}

static __device__ inline float exp2_any(float x)
{
  int rounded;
  float part = exp2_part(smaller(larger(x, -151), 129), &rounded);
  int n = rounded - 0x4b400000, half = n >> 1;
  part = __fmul_rn(part, __int_as_float((half + 127) << 23));
  return __fmul_rn(part, __int_as_float((n - half + 127) << 23));
}

static __device__ inline float log_any(float x)
{
  const int root_half = 0x3f3504f3, one = 0x3f800000;
  if (!(x > 0)) return __int_as_float(x == 0 ? 0xff800000 : 0x7fc00000);
  if (x == __int_as_float(0x7f800000)) return x;
  int subnormal = x < 0x1p-126f;
  if (subnormal) x = __fmul_rn(x, 0x1p25f);
  unsigned bits = __float_as_uint(x) + (one - root_half);
  float k = (float)((int)(bits >> 23) - 127 - (subnormal ? 25 : 0));
  float f = __fsub_rn(__uint_as_float((bits & 0x7fffff) + root_half), 1);
  float s = __fdiv_rn(f, __fadd_rn(2, f)), z = __fmul_rn(s, s);
  float half = __fmul_rn(__fmul_rn(0.5f, f), f), sum = 0x1.d87830p-3f;
  sum = horner_step(sum, z, 0x1.247550p-2f);
  sum = horner_step(sum, z, 0x1.9999b4p-2f);
  sum = horner_step(sum, z, 0x1.555556p-1f);
  float low = __fmaf_rn(s, __fmaf_rn(z, sum, half), __fmul_rn(k, 0x1.2fefa2p-17f));
  return __fmaf_rn(k, 0x1.62e300p-1f, __fsub_rn(f, __fsub_rn(half, low)));
}

static __device__ inline float tanh_any(float x)
{
  float size = fabsf(x), square = __fmul_rn(x, x), sum = 0x1.19c33cp-9f;
  sum = horner_step(sum, square, -0x1.0c3710p-7f);
  sum = horner_step(sum, square, 0x1.6399d8p-6f);
  sum = horner_step(sum, square, -0x1.b9f006p-5f);
  sum = horner_step(sum, square, 0x1.11106ep-3f);
  sum = horner_step(sum, square, -0x1.555554p-2f);
  float small = __fmaf_rn(__fmul_rn(size, square), sum, size);
  float power = exp2_any(__fmul_rn(0x1.715476p+1f, size));
  float large = __fsub_rn(1, __fdiv_rn(2, __fadd_rn(power, 1)));
  return copysignf(size < 0.625f ? small : large, x);
}

#endif
