/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: routing on a GPU gives the bits of its reference, for every shape and kind of data of the
 * CPU's test. */
#include "device_route.h"

int main(void)
{
  if (!gpu_present()) return done_testing();
  claim_begin("shapes: the reference's bits");
  check_shapes(&how_cuda, 1);
  claim_end();
  claim_begin("kinds of data: the reference's bits");
  check_kinds(&how_cuda, 1);
  claim_end();
  return done_testing();
}
