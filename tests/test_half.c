/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: every 16-bit float that is widened and narrowed again has its bits; a NaN becomes a
 * NaN. */
#include "base/half.h"

#include <math.h>

#include "tap.h"

/* Is `back` the pattern `bits`, or, if `value` is a NaN, a NaN with its sign? */
static int returns(uint16_t bits, uint16_t infinity, float value, uint16_t back)
{
  int is_nan = (bits & 0x7fff) > infinity;
  if (!is_nan) return back == bits && !isnan(value);
  return isnan(value) && (back & 0x7fff) > infinity && (back & 0x8000) == (bits & 0x8000);
}

int main(void)
{
  int halves = 0, brains = 0;
  for (uint32_t i = 0; i < 0x10000; i++) {
    uint16_t bits = (uint16_t)i;
    float value;
    bf16_to_f32(&bits, 1, &value);
    brains += !returns(bits, 0x7f80, value, bf16_bits(value));
    f16_to_f32(&bits, 1, &value);
    halves += !returns(bits, 0x7c00, value, f16_bits(value));
  }
  ok(halves == 0, "binary16: %d of 65536 floats change when widened and narrowed", halves);
  ok(brains == 0, "bfloat16: %d of 65536 floats change when widened and narrowed", brains);
  return done_testing();
}
