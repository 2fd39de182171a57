/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: training on a GPU has the bits of the plain loops with dense matrices, for every problem
 * of the CPU's test, on one rank and on two.  On one rank each operation is tested, too.
 * RUN: np=1 2 */
#include "device_train.h"
#include "train_cases.h"

int main(void)
{
  struct comm c;
  if (comm_open(&c)) return 1;
  tap_rank = c.rank;
  train_device = "cuda";
  if (gpu_present()) {
    if (c.size == 1) check_train_operations(&how_cuda);
    check_reference(&c);
    check_resumed(&c, 0);
    check_resumed(&c, 2.5);
    check_judge(&c);
  }
  comm_close(&c);
  return done_testing();
}
