/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: a fit that finds features over ranks and threads has the bits of the plain loops, with
 * several stages, replaced twins and dead atoms, and if it is stopped and continued.
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
