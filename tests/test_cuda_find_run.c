/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: finding features on GPUs has the bits of the plain loops: every problem of the CPU's test,
 * on several ranks too.
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
