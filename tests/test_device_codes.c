/* SPDX-License-Identifier: BSD-3-Clause
 * Codes, residuals and quality on the CPU have the bits of their references, for every variant and
 * thread count. */
#include "device_codes.h"
#include "variants.h"

int main(void)
{
  struct how those[LOOP_VARIANTS];
  int count = 0;
  if (device_check_fma()) {
    skip("%s", status_message());
    return done_testing();
  }
  for (int v = 0; v < LOOP_VARIANTS; v++) {
    those[count] = (struct how){.kind = "cpu", .variant = loop_variants[v], .threads = 2};
    count += how_present(&those[count]);
  }
  check_codes(those, count);
  return done_testing();
}
