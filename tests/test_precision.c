/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: numbers are rounded to the formats of a matrix unit's operands as each format defines;
 * known values show it.  A CPU reports that it has no matrix unit. */
#include <math.h>

#include "base/num.h"
#include "base/status.h"
#include "device/tensor.h"
#include "model/precision.h"
#include "tap.h"

static void check_values(void)
{
  static const struct {
    enum precision precision;
    float x, wanted;
  } cases[] = {{PRECISION_BF16, 0x1.01p0f, 0x1p0f}, /* a tie: to even */
               {PRECISION_BF16, 0x1.03p0f, 0x1.04p0f},
               {PRECISION_BF16, 0x1.010002p0f, 0x1.02p0f},
               {PRECISION_BF16, 0x1.fefffep127f, 0x1.fep127f},
               {PRECISION_BF16, 0x1.ffp127f, INFINITY},
               {PRECISION_BF16, 0x1.8p-133f, 0x1p-132f}, /* subnormal */
               {PRECISION_BF16, 0x1p-134f, 0},
               {PRECISION_F16, 0x1.002p0f, 0x1p0f},
               {PRECISION_F16, 0x1.006p0f, 0x1.008p0f},
               {PRECISION_F16, 65519, 65504},
               {PRECISION_F16, -65520, -INFINITY},
               {PRECISION_F16, 0x1.4p-24f, 0x1p-24f},
               {PRECISION_F16, 0x1p-25f, 0},
               {PRECISION_F16, 0x1.000002p-25f, 0x1p-24f},
               {PRECISION_TF32, 0x1.002p0f, 0x1.004p0f}, /* a tie: away from 0 */
               {PRECISION_TF32, -0x1.002p0f, -0x1.004p0f},
               {PRECISION_TF32, 0x1.001ffep0f, 0x1p0f},
               {PRECISION_TF32, 70000, 70016},
               {PRECISION_F32, 0x1.234566p-130f, 0x1.234566p-130f},
               {PRECISION_BF16, -INFINITY, -INFINITY}};
  claim_begin("numbers are rounded as bf16, f16 and tf32 are defined");
  for (int i = 0; i < LENGTH(cases); i++) {
    float got = precision_round(cases[i].x, cases[i].precision);
    ok(got == cases[i].wanted, "%a in %s: %a, not %a", cases[i].x,
       precision_name(cases[i].precision), got, cases[i].wanted);
  }
  ok(isnan(precision_round(NAN, PRECISION_F16)), "NaN stays NaN");
  for (int i = 0; i < PRECISIONS; i++)
    ok(precision_of(precision_name((enum precision)i)) == (enum precision)i, "name %d", i);
  ok(precision_of("fp8") == PRECISIONS, "fp8 is not a precision");
  claim_end();
}

static void check_cpu(void)
{
  struct device dev = {0};
  struct device_options options = {.p = 1, .d = 1, .threads = 1, .kind = "cpu", .variant = "auto"};
  uint64_t unit = 0;
  ok(device_open(&dev, &options) == OK, "%s", status_message());
  ok(device_tensor_probe(&dev, PRECISION_BF16, &unit) == ERR_DEVICE && unit == 0,
     "a CPU has no matrix unit: %s", status_message());
  status_clear();
  device_close(&dev);
}

int main(void)
{
  check_values();
  check_cpu();
  return done_testing();
}
