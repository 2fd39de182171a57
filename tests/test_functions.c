/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: exp2, log and tanh of (N.26) have errors below 1, 1 and 2 units in the last place, and the
 * vector loops of each instruction set have the bits of exp2 and tanh, on a sample of all float32.
 * `SWEEP=full build/tests/test_functions` tests all float32. */
#include "model/functions.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/types.h"
#include "device/cpu/attention_loops.h"
#include "device/cpu/isa.h"
#include "tap.h"

enum { SAMPLE_STEP = 2039, LARGEST_SHOWN = 120 /* the largest exponent of factor_of() */ };

/* The error of y, in units of the last place of a float32 as large as `exact`. */
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

/* w[] <- the weights 2^(e tanh x), or 2^x if e is 0, of a block of positions. */
static void weights_make(const struct attention_loops *loops, float e, const float *x, float *w)
{
  const struct attention_factors factors = {e != 0, e != 0 ? e : 1};
  const float one = 1;
  loops->weights(&factors, 1, &one, x, 0, w);
}

/* A factor e so large that 2^(e tanh x) differs for neighbouring values of x.  It is larger for
 * smaller x. */
static float factor_of(float x)
{
  int exponent;
  frexpf(x, &exponent);
  if (!isfinite(x) || exponent > 0) exponent = 0;
  return ldexpf(1, 3 - exponent < LARGEST_SHOWN ? 3 - exponent : LARGEST_SHOWN);
}

static int same_value(float a, float b)
{
  return !memcmp(&a, &b, sizeof a) || (isnan(a) && isnan(b));
}

/* Compare the loops with the plain functions, for floats `step` apart.  A block has one factor. */
static void loops_sweep(const struct attention_loops *loops, int unit, uint32_t step)
{
  _Alignas(64) float x[ATTENTION_BLOCK], w[ATTENTION_BLOCK];
  long long bad[2] = {0};
  for (uint64_t bits = 0; bits < 0x100000000; bits += (uint64_t)step * ATTENTION_BLOCK) {
    for (int i = 0; i < ATTENTION_BLOCK; i++) {
      uint32_t low = (uint32_t)(bits + (uint64_t)step * (uint64_t)i);
      memcpy(&x[i], &low, sizeof low);
    }
    weights_make(loops, 0, x, w);
    for (int i = 0; i < ATTENTION_BLOCK; i++) bad[0] += !same_value(w[i], exp2_f32(x[i]));
    float e = factor_of(x[0]);
    weights_make(loops, e, x, w);
    for (int i = 0; i < ATTENTION_BLOCK; i++)
      bad[1] += !same_value(w[i], exp2_f32(tanh_f32(x[i]) * e));
  }
  ok(!bad[0], "unit %d: exp2 has the bits of the plain one: %lld differ", unit, bad[0]);
  ok(!bad[1], "unit %d: tanh has the bits of the plain one: %lld differ", unit, bad[1]);
}

static void units_sweep(uint32_t step)
{
  const struct isa *unit;
  for (int i = 0; (unit = isa_present(i)) != NULL; i++)
    if (unit->attention) loops_sweep(unit->attention, i, step);
}

int main(void)
{
  const char *wanted = getenv("SWEEP");
  uint32_t step = wanted && strcmp(wanted, "full") == 0 ? 1 : SAMPLE_STEP;
  sweep("exp2", exp2_f32, exp2, 1, step);
  sweep("log", log_f32, log, 1, step);
  sweep("tanh", tanh_f32, tanh, 2, step);
  units_sweep(step);
  special_values();
  return done_testing();
}
