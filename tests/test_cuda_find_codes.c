/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: codes of rows on their active atoms on a GPU have the bits of the plain loops, for every
 * problem of the CPU's test. */
#include "find_codes_cases.h"

int main(void)
{
  if (gpu_present()) check_active(&how_cuda);
  return done_testing();
}
