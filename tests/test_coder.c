/* SPDX-License-Identifier: BSD-3-Clause
 * A coder on the CPU gives the bits of the references, for one dictionary after another, with the
 * certified filter and without. */
#include "device_coder.h"
#include "variants.h"

int main(void)
{
  if (device_check_fma()) {
    skip("%s", status_message());
    return done_testing();
  }
  for (int v = 0; v < LOOP_VARIANTS; v++)
    for (int filter = 0; filter < 2; filter++) {
      struct how how = {"cpu", loop_variants[v], 2, filter ? "on" : "off", NULL};
      if (!how_present(&how)) continue;
      claim_begin("%s, filter %s: the references' bits", how.variant, how.filter);
      check_coders(&how);
      claim_end();
    }
  return done_testing();
}
