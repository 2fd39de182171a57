/* SPDX-License-Identifier: BSD-3-Clause
 * The steps of all atoms on a GPU have the bits of their reference. */
#include "device_steps.h"

int main(void)
{
  if (!gpu_present()) return done_testing();
  check_steps(&how_cuda);
  return done_testing();
}
