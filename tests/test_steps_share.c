/* SPDX-License-Identifier: BSD-3-Clause
 * RUN: np=2 3
 *
 * Claim: if ranks with GPUs share the atoms of large classes, each rank gets the bits of the
 * reference for all atoms.  Classes have many atoms or many rows, some steps are rejected, and some
 * atoms have no solution.  A rank may have none of the atoms of a launch. */
#include "device_steps.h"

static void check_share(void)
{
  static const struct steps_shape shapes[] = {
      {1000, 1, 200, 1, 5, 2, 0, 0, 0.1, 0},   {3000, 2, 900, 1, 9, 1, 1, 1, 0.1, 4000},
      {5000, 2, 1400, 2, 12, 4, 1, 0, 0.1, 0}, {1500, 1, 300, 8, 17, 2, 1, 0, 0.1, 0},
      {2000, 1, 400, 1, 9, 2, 3, 0, 0, 0},     {60000, 1, 6, 1, 96, 1, 0, 0, 0.1, 0},
      {40000, 1, 2, 1, 300, 1, 0, 0, 0.1, 0},
  };
  claim_begin("cuda: large classes that ranks share have the reference's bits");
  for (int i = 0; i < (is_small() ? 1 : LENGTH(shapes)); i++) steps_run(shapes[i], &how_cuda);
  claim_end();
}

int main(void)
{
  struct comm c;
  if (comm_open(&c)) return 1;
  tap_rank = c.rank;
  sharing = &c;
  if (gpu_present()) check_share();
  ok(comm_close(&c) == OK, "close");
  return done_testing();
}
