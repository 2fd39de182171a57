/* SPDX-License-Identifier: BSD-3-Clause
 * A coder on a GPU gives the bits of the references: every problem of the CPU's test. */
#include "device_coder.h"

int main(void)
{
  if (!gpu_present()) return done_testing();
  for (int filter = 0; filter < 2; filter++) {
    struct how how = {"cuda", "auto", 2, filter ? "on" : "off", NULL};
    claim_begin("filter %s: the references' bits", how.filter);
    check_coders(&how);
    claim_end();
  }
  return done_testing();
}
