/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: imported encoders on a GPU give the bits of the reference, for every shape and kind of
 * data of the CPU's test, and for problems that take several launches. */
#include "device_encoder.h"

/* The first problem has more entries than are placed at a time, the second more scores than one
 * launch computes. */
static void check_large(void)
{
  encoder_run(
      (struct encoder_problem){
          .n = 700, .p = 2, .k = 9001, .tile = 5000, .kind = ENCODER_RELU, .data = DATA_ALL},
      &how_cuda, 1);
  encoder_run(
      (struct encoder_problem){
          .n = 400, .p = 1, .k = 1100001, .top = 5, .tile = 1 << 20, .kind = ENCODER_TOPK},
      &how_cuda, 1);
}

int main(void)
{
  if (!gpu_present()) return done_testing();
  claim_begin("shapes: the reference's bits");
  check_encoder_shapes(&how_cuda, 1);
  claim_end();
  claim_begin("kinds of data: the reference's bits");
  check_encoder_data(&how_cuda, 1);
  claim_end();
  if (is_small()) return done_testing();
  claim_begin("several launches and pieces: the reference's bits");
  check_large();
  claim_end();
  return done_testing();
}
