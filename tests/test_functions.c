/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: exp2, log and tanh of (N.26) are off by less than 1, 1 and 2 units in the last place, on a
 * sample of all float32.  `SWEEP=full build/tests/test_functions` looks at all of them. */
#include "model/functions.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/types.h"
#include "tap.h"

enum { SAMPLE_STEP = 2039 };

/* How far y is from the exact value, in units of the last place of a float32 that large. */
static double units_off(float y, double exact)
{
  if (isnan(exact) || isnan(y)) return isnan(exact) && isnan(y) ? 0 : INFINITY;
  if (isinf(exact) || isinf(y) || fabs(exact) >= 0x1.ffffffp127)
    return (float)exact == y ? 0 : INFINITY;
  int exponent;
  frexp(exact, &exponent);
  double unit = ldexp(1, (exponent > -125 ? exponent : -125) - 24);
  return fabs(y - exact) / unit;
}

static void sweep(const char *name, float (*fast)(float), double (*exact)(double), double bound,
                  uint32_t step)
{
  double worst = 0;
  float where = 0;
  for (uint64_t bits = 0; bits < 0x100000000; bits += step) {
    uint32_t low = (uint32_t)bits;
    float x;
    memcpy(&x, &low, sizeof x);
    double off = units_off(fast(x), exact(x));
    if (off > worst) worst = off, where = x;
  }
  ok(worst < bound, "%s: at most %.4f units, at %a", name, worst, (double)where);
}

static void special_values(void)
{
  ok(exp2_f32(0) == 1 && exp2_f32(-0.0f) == 1, "2^0 is 1");
  ok(exp2_f32(-INFINITY) == 0 && !signbit(exp2_f32(-INFINITY)), "2^-inf is +0");
  ok(exp2_f32(-149) == 0x1p-149f && exp2_f32(-150) == 0, "underflow is gradual");
  ok(exp2_f32(127) == 0x1p127f && exp2_f32(128) == INFINITY, "overflow begins at 128");
  ok(log_f32(1) == 0 && !signbit(log_f32(1)), "log 1 is +0");
  ok(log_f32(0) == -INFINITY && isnan(log_f32(-1)), "log of 0 and of -1");
  ok(tanh_f32(INFINITY) == 1 && tanh_f32(-INFINITY) == -1, "tanh of infinities");
  ok(signbit(tanh_f32(-0.0f)) && isnan(tanh_f32(NAN)), "tanh of -0 and of NaN");
}

int main(void)
{
  const char *wanted = getenv("SWEEP");
  uint32_t step = wanted && strcmp(wanted, "full") == 0 ? 1 : SAMPLE_STEP;
  sweep("exp2", exp2_f32, exp2, 1, step);
  sweep("log", log_f32, log, 1, step);
  sweep("tanh", tanh_f32, tanh, 2, step);
  special_values();
  return done_testing();
}
