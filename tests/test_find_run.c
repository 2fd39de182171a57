/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: finding features over ranks and threads has the bits of the plain loops, in stages, with
 * twins and dead atoms replaced; stopped and gone on with, too.
 * RUN: np=1 3, full=1 2 3 5 */
#include "find_run_cases.h"

int main(void)
{
  struct comm c;
  if (comm_open(&c)) return 1;
  tap_rank = c.rank;
  find_device = "cpu";
  check_find(&c);
  comm_close(&c);
  return done_testing();
}
