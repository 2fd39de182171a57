/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: codes of rows on their active atoms have the bits of the plain loops, whether the cut of a
 * batch or thresholds choose the atoms.  Cases have ties, equal atoms, rows of zeros, and rows with
 * more atoms than a row may have. */
#include "find_codes_cases.h"

int main(void)
{
  static const struct how how_cpu = {.kind = "cpu", .variant = "auto", .threads = 2};
  check_active(&how_cpu);
  return done_testing();
}
