/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: a fit that finds features on GPUs has the bits of the plain loops, for every problem of
 * the CPU's test, on one rank and on several.
 * RUN: np=1 2 4 */
#include "find_run_cases.h"

int main(void)
{
  struct comm c;
  if (comm_open(&c)) return 1;
  tap_rank = c.rank;
  find_device = "cuda";
  if (gpu_present()) check_find(&c);
  comm_close(&c);
  return done_testing();
}
