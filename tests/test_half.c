/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: every 16-bit float is widened and narrowed again to its bits. */
#include "base/half.h"

#include "tap.h"

int main(void)
{
  int halves = 0, brains = 0;
  for (uint32_t i = 0; i < 0x10000; i++) {
    uint16_t bits = (uint16_t)i;
    float value;
    bf16_to_f32(&bits, 1, &value);
    brains += bf16_bits(value) != bits;
    if ((bits & 0x7c00) == 0x7c00) continue; /* no number */
    f16_to_f32(&bits, 1, &value);
    halves += f16_bits(value) != bits;
  }
  ok(halves == 0, "binary16: %d of all finite ones differ", halves);
  ok(brains == 0, "bfloat16: %d of all differ", brains);
  return done_testing();
}
