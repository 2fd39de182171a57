/* SPDX-License-Identifier: BSD-3-Clause
 * Routing on a GPU gives the bits of its reference: every shape and kind of data of the CPU's
 * test. */
#include "device_route.h"

int main(void)
{
  if (!gpu_present()) return done_testing();
  check_shapes(&how_cuda, 1);
  check_kinds(&how_cuda, 1);
  return done_testing();
}
