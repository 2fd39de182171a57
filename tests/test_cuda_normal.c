/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: the normal equations and their descent on a GPU have the bits of their references, for
 * every problem of the CPU's test. */
#include "device_normal.h"

int main(void)
{
  if (!gpu_present()) return done_testing();
  check_normal(&how_cuda, 1);
  return done_testing();
}
