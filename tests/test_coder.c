/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: a coder on the CPU gives the bits of the references, for one dictionary after another,
 * with the certified filter and without. */
#include "device_coder.h"
#include "variants.h"

int main(void)
{
  struct how hows[2 * LOOP_VARIANTS];
  int count = 0;
  if (device_check_fma()) {
    skip("%s", status_message());
    return done_testing();
  }
  for (int v = 0; v < LOOP_VARIANTS; v++)
    for (int filter = 0; filter < 2; filter++) {
      hows[count] = (struct how){"cpu", loop_variants[v], 2, filter ? "on" : "off", NULL};
      count += how_present(&hows[count]);
    }
  claim_begin("each variant, with the filter and without: the references' bits");
  check_coders(hows, count);
  claim_end();
  return done_testing();
}
