/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: codes of rows on their active atoms have the bits of the plain loops: of a batch, with
 * ties, twins, rows of zeros and rows with more atoms than a row may have, and by thresholds. */
#include "find_codes_cases.h"

int main(void)
{
  static const struct how how_cpu = {.kind = "cpu", .variant = "auto", .threads = 2};
  check_active(&how_cpu);
  return done_testing();
}
