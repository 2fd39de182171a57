/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: dense products and gradients, their sparse forms and Adam on a GPU have the bits of their
 * references, for every problem of the CPU's test. */
#include "device_triad.h"

int main(void)
{
  if (!gpu_present()) return done_testing();
  check_triad(&how_cuda);
  return done_testing();
}
