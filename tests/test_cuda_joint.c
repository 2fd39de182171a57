/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: if a GPU assembles the matrix S of the joint system, then S and the sums over all rows
 * have the bits of the plain loops, for every problem of the CPU's test. */
#include "device_joint.h"

int main(void)
{
  if (!gpu_present()) return done_testing();
  check_joint(&how_cuda, 1);
  return done_testing();
}
