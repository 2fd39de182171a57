/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: a coder on a GPU gives the bits of the references, for every problem of the CPU's test. */
#include "device_coder.h"

int main(void)
{
  if (!gpu_present()) return done_testing();
  const struct how hows[] = {{"cuda", "auto", 2, "off", NULL}, {"cuda", "auto", 2, "on", NULL}};
  claim_begin("with the filter and without: the references' bits");
  check_coders(hows, LENGTH(hows));
  claim_end();
  return done_testing();
}
