/* SPDX-License-Identifier: BSD-3-Clause
 * The logarithm is fdlibm's published algorithm (e_log.c, K. C. Ng), written anew: x = 2^k (1 + f),
 * log(1 + f) = f - (f^2 / 2 - s (f^2 / 2 + R)), s = f / (2 + f), R a polynomial in s^2. */
#include "base/det_pair.h"

#include <math.h>
#include <string.h>

#include "base/num.h"

const struct det_pair det_pair_unit = {0.5, 1};

struct det_pair det_pair_failed(void)
{
  return (struct det_pair){nan_canonical(), 0};
}

struct det_pair det_pair_times(struct det_pair a, struct det_pair b)
{
  struct det_pair out = {a.m * b.m, a.e + b.e};
  if (out.m < 0.5) {
    out.m = 2 * out.m;
    out.e--;
  }
  return out;
}

struct det_pair det_pair_pivot(struct det_pair a, real pivot)
{
  int e;
  real m = frexp(pivot, &e);
  return det_pair_times(a, (struct det_pair){m, e});
}

/* Split x = 2^k (1 + f): *x <- 1 + f, in about [sqrt(1/2), sqrt(2)), *upper <- the upper 20 bits of
 * the fraction of x; returns k. */
static int reduce(real *x, int32_t *upper)
{
  int k = 0;
  uint64_t bits;
  if (*x < 0x1p-1022) {
    *x *= 0x1p54;
    k = -54;
  }
  memcpy(&bits, x, sizeof bits);
  *upper = (int32_t)(bits >> 32 & 0xfffff);
  int32_t carry = (*upper + 0x95f64) & 0x100000; /* a significand above sqrt(2) is halved */
  k += (int)(bits >> 52) - 1023 + (carry >> 20);
  uint64_t exponent = (uint64_t)(0x3ff00000 ^ carry) << 32;
  bits = (bits & 0x000fffffffffffffu) | exponent;
  memcpy(x, &bits, sizeof bits);
  return k;
}

real log_portable(real x)
{
  const real ln2_high = 0x1.62e42feep-1, ln2_low = 0x1.a39ef35793c76p-33;
  const real c1 = 0x1.5555555555593p-1, c2 = 0x1.999999997fa04p-2, c3 = 0x1.2492494229359p-2,
             c4 = 0x1.c71c51d8e78afp-3, c5 = 0x1.7466496cb03dep-3, c6 = 0x1.39a09d078c69fp-3,
             c7 = 0x1.2f112df3e5244p-3;
  int32_t upper;
  real k = reduce(&x, &upper), f = x - 1;
  if (fabs(f) < 0x1p-20) {
    if (f == 0) return k * ln2_high + k * ln2_low;
    real r = f * f * (0.5 - 0x1.5555555555555p-2 * f);
    return k == 0 ? f - r : k * ln2_high - ((r - k * ln2_low) - f);
  }
  real s = f / (2 + f), z = s * s, w = z * z;
  real r = z * (c1 + w * (c3 + w * (c5 + w * c7))) + w * (c2 + w * (c4 + w * c6));
  if (((upper - 0x6147a) | (0x6b851 - upper)) > 0) {
    real half = 0.5 * f * f;
    if (k == 0) return f - (half - s * (half + r));
    return k * ln2_high - ((half - (s * (half + r) + k * ln2_low)) - f);
  }
  return k == 0 ? f - s * (f - r) : k * ln2_high - ((s * (f - r) - k * ln2_low) - f);
}

real det_pair_value(struct det_pair a)
{
  const real ln2 = 0x1.62e42fefa39efp-1;
  if (!(a.m >= 0.5)) return nan_canonical();
  return (real)a.e * ln2 + log_portable(a.m);
}
