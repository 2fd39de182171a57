/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: codes that a GPU computes for rows on their active atoms have the bits of the plain loops,
 * for every problem of the CPU's test. */
#include "find_codes_cases.h"

int main(void)
{
  if (gpu_present()) check_active(&how_cuda);
  return done_testing();
}
