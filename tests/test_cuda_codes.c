/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: codes, residuals and quality on a GPU have the bits of their references, for every problem
 * of the CPU's test. */
#include "device_codes.h"

int main(void)
{
  if (!gpu_present()) return done_testing();
  check_codes(&how_cuda, 1);
  return done_testing();
}
