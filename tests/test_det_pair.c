/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: the portable logarithm is right to one unit in the last place and has its known bits.
 * The value of a pair (m, e) is the logarithm of the product m 2^e.  Lanes are added in the order
 * of (N.12).
 * RUN: np=1 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/det_pair.h"
#include "base/fingerprint.h"
#include "base/rng.h"
#include "base/status.h"
#include "base/sums.h"
#include "tap.h"

enum { TRIES = 200000 };

/* Any positive double, also subnormal; every third one is near 1. */
static real draw(uint64_t i)
{
  uint64_t bits = random_bits(3, 1, i) >> 1;
  real x;
  memcpy(&x, &bits, sizeof x);
  if (i % 3 == 0) return 0.7 + (real)(bits >> 11) * 0x1p-53;
  if (i % 3 == 1) return x < DBL_MIN ? x : x * 0x1p-1000 < DBL_MIN ? x * 0x1p-1000 : 1 + 1 / x;
  return x;
}

static void logarithm_test(void)
{
  int wrong = 0;
  uint64_t sum = 0;
  for (uint64_t i = 0; i < TRIES; i++) {
    real x = draw(i);
    if (!(x > 0) || !isfinite(x)) x = 0x1.8p-1074 + (real)i;
    real log = log_portable(x);
    long double exact = logl((long double)x), unit = nextafter(fabs(log), INFINITY) - fabs(log);
    wrong += fabsl((long double)log - exact) > unit;
    sum += fingerprint(&log, 1, sizeof log, (gidx)i);
  }
  ok(wrong == 0, "%d of %d logarithms are off by more than one unit", wrong, TRIES);
  ok(sum == 0x03ee6cb1b98ac7a2u, "the bits of the logarithms are the known ones: %016llx",
     (unsigned long long)sum);
  ok(log_portable(1) == 0 && det_pair_value(det_pair_unit) == 0, "the logarithm of 1 is 0");
}

static void pair_test(void)
{
  struct det_pair p = det_pair_unit;
  int normal = 1;
  for (int i = 0; i < 4000; i++) {
    p = det_pair_pivot(p, i % 2 ? 0x1p-1074 : 3);
    normal = normal && p.m >= 0.5 && p.m < 1;
  }
  ok(normal && fabs(det_pair_value(p) - 2000 * (log(3) - 1074 * log(2))) < 1e-9,
     "a product far below the range of doubles has the right logarithm: %.17g", det_pair_value(p));
  struct det_pair q = det_pair_times(det_pair_unit, p), r = det_pair_times(p, det_pair_unit);
  ok(q.m == p.m && q.e == p.e && r.m == p.m && r.e == p.e,
     "a product with the unit changes no bit");
  real bad = det_pair_value(det_pair_failed());
  uint64_t bits;
  memcpy(&bits, &bad, sizeof bits);
  ok(bits == 0x7ff8000000000000u, "the value of a failed pair is the canonical NaN");
}

/* The value of a pair uses our own logarithm, which sometimes differs from that of the C
 * library. */
static void value_test(void)
{
  int differ = 0, library = 0;
  for (uint64_t i = 0; i < TRIES; i++) {
    struct det_pair p = {0.5 + (real)(random_bits(7, 1, i) >> 12) * 0x1p-53, (gidx)(i % 3) - 1};
    real value = (real)p.e * 0x1.62e42fefa39efp-1 + log_portable(p.m);
    differ += value != det_pair_value(p);
    library += log_portable(p.m) != log(p.m);
  }
  ok(differ == 0, "values are fl(fl(e LN2) + log m); %d logarithms differ from the library's",
     library);
}

/* The same sum in plain form: an array of lanes for each segment. */
static real lanes_reference(gidx n, const real *a)
{
  real total = 0;
  for (gidx segment = 0; segment * 65536 < n; segment++) {
    real lane[32] = {0};
    for (gidx i = segment * 65536; i < n && i < (segment + 1) * 65536; i++)
      lane[i % 32] = fma(a[i], a[i], lane[i % 32]);
    for (int step = 16; step > 0; step /= 2)
      for (int l = 0; l < step; l++) lane[l] = lane[l] + lane[l + step];
    total = segment ? total + lane[0] : lane[0];
  }
  return total;
}

static void lanes_test(void)
{
  static const gidx counts[] = {0, 1, 31, 32, 33, 65535, 65536, 65537, 200000};
  static real a[200000]; /* thirds of draws: draws would add without rounding */
  int differ = 0;
  for (int i = 0; i < LENGTH(a); i++) a[i] = random_normal(5, 1, (uint64_t)i) / 3;
  for (int c = 0; c < LENGTH(counts); c++) {
    struct lane_sum sum = {0};
    for (gidx i = 0; i < counts[c]; i++) lane_sum_fma(&sum, i, a[i], a[i]);
    differ += lane_sum_total(&sum) != lanes_reference(counts[c], a);
  }
  ok(differ == 0, "sums over lanes and segments are those of the plain form");
}

int main(void)
{
  logarithm_test();
  pair_test();
  value_test();
  lanes_test();
  return done_testing();
}
