/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: roots and quotients of kernels/root.h have the bits of sqrt() and of divisions, for any
 * errors of their first estimates, and also for quotients that are very near to the middle of two
 * numbers.  The source of the kernels is compiled for the CPU; this needs no GPU. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/rng.h"
#include "tap.h"

#define __device__
#define ROOT_ESTIMATE_H /* the estimates below replace those of this header */

__extension__ typedef __int128 wide;
enum { CASES = 1000000, SEED = 5 };

static double estimate_off; /* the relative error of estimates */

static uint64_t bits_of(double x)
{
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static double number_of(uint64_t bits)
{
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static inline int __double2hiint(double x)
{
  return (int)(uint32_t)(bits_of(x) >> 32);
}
static inline int __double2loint(double x)
{
  return (int)(uint32_t)bits_of(x);
}
static inline double __hiloint2double(int high, int low)
{
  return number_of((uint64_t)(uint32_t)high << 32 | (uint32_t)low);
}

static inline double root_estimate(double x)
{
  return __hiloint2double(__double2hiint(1 / sqrt(x) * (1 + estimate_off)),
                          __double2hiint(x) - 0x3500000);
}
static inline double inverse_estimate(double x)
{
  return __hiloint2double(__double2hiint(1 / x * (1 + estimate_off)), 1);
}

#include "root.h"

/* Draw a significand: any, a small one, or a large one. */
static double significand_make(uint64_t stream, uint64_t i)
{
  uint64_t bits = random_below(SEED, stream, i, (uint64_t)1 << 52);
  if (i % 5 == 1) bits >>= i % 52;
  if (i % 5 == 2) bits = ((uint64_t)1 << 52) - 1 - (bits >> i % 52);
  return number_of((uint64_t)1023 << 52 | bits);
}

/* Returns a dividend A whose quotient by l is as near as possible to the middle of two numbers.  L
 * is the significand of l as an odd integer; r is odd, too.  A = (M L + r) / 2^54, where M has 54
 * bits and makes A a whole number.  So A / L is the sum of M / 2^54, which is such a middle, and of
 * r / (2^54 L). */
static double dividend_hard(double l, uint64_t r)
{
  uint64_t odd = (bits_of(l) & (((uint64_t)1 << 52) - 1)) | (uint64_t)1 << 52, inverse = 1;
  uint64_t all = ((uint64_t)1 << 54) - 1;
  odd >>= __builtin_ctzll(odd);
  for (int i = 0; i < 6; i++) inverse *= 2 - odd * inverse;
  uint64_t m = (0 - r * inverse) & all;
  if (m >> 53 == 0) {
    m = all + 1 - m;
    r = 0 - r;
  }
  wide product = (wide)m * odd + (wide)(int64_t)r;
  return (double)(uint64_t)(product >> 54);
}

int main(void)
{
  static const double offs[] = {0, 0x1p-21, -0x1p-21, 0x1p-23, -0x1p-24};
  long roots = 0, divisions = 0, root_quotients = 0, usual = 0;
  claim_begin("roots and quotients of the kernels have the bits of sqrt() and of divisions");
  for (uint64_t i = 0; i < CASES; i++) {
    estimate_off = offs[i % 5];
    double x = ldexp(significand_make(1, i / 5), (int)(i % 9) * 40 - 160 + (int)(i & 1));
    struct root r = root_of(x);
    struct divisor d = divisor_of(sqrt(x));
    double a = i % 3 ? dividend_hard(d.l, i % 6 * 2 - 5) : significand_make(2, i), exact = a / d.l;
    roots += r.l != sqrt(x);
    /* For the last significand before a power of two the result depends on the compiler's own
     * estimate. */
    int last = (bits_of(d.l) + 1) << 12 == 0;
    divisions += !last && quotient(a, &d) != exact;
    if (!r.is_usual) continue;
    root_quotients += root_quotient(a, &r) != exact;
    usual++;
  }
  ok(roots == 0, "%ld of %d roots differ", roots, CASES);
  ok(divisions == 0, "%ld of %d quotients differ", divisions, CASES);
  ok(root_quotients == 0 && usual > CASES / 2, "%ld of %ld quotients by roots differ",
     root_quotients, usual);
  ok(!is_usual(0) && !is_usual(-0.0) && !is_usual(NAN) && !is_usual(INFINITY) &&
         !is_usual(0x1p400) && !is_usual(-0x1p-401) && is_usual(-0x1p-400) && is_usual(0x1.fp399),
     "numbers of usual size are told from others");
  claim_end();
  return done_testing();
}
