/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: normal equations and their descent have the bits of the reference, for any division of the
 * Gram matrix and of the columns of the target among ranks, widths that are no multiple of a
 * vector, rows that are added in pieces, codes of 0, atoms without codes, and every variant. */
#include "device_normal.h"
#include "variants.h"

int main(void)
{
  struct how hows[LOOP_VARIANTS];
  int count = 0;
  for (int v = 0; v < LOOP_VARIANTS; v++) {
    struct how how = {.kind = "cpu", .variant = loop_variants[v], .threads = 3};
    if (how_present(&how)) hows[count++] = how;
  }
  check_normal(hows, count);
  return done_testing();
}
