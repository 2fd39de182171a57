/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: imported encoders on the CPU have the bits of the reference, for every kind of encoder,
 * many shapes, data that show faults, and all numbers of threads and variants. */
#include "device_encoder.h"

int main(void)
{
  static const char *const variants[] = {"baseline", "avx2", "avx512"};
  struct how hows[LENGTH(variants)];
  int count = 0;
  for (int v = 0; v < LENGTH(variants); v++) {
    struct how how = {.kind = "cpu", .variant = variants[v], .threads = 2};
    if (how_present(&how)) hows[count++] = how;
  }
  claim_begin("shapes: the reference's bits");
  check_encoder_shapes(hows, count);
  claim_end();
  claim_begin("kinds of data: the reference's bits");
  check_encoder_data(hows, count);
  claim_end();
  claim_begin("merged results of two parts of the atoms are those of all atoms");
  for (idx cut = 0; cut <= 90; cut += 15) {
    check_encoder_merge(ENCODER_RELU, 0, cut);
    check_encoder_merge(ENCODER_TOPK, 1, cut);
    check_encoder_merge(ENCODER_TOPK, 7, cut);
    check_encoder_merge(ENCODER_TOPK, 90, cut);
  }
  claim_end();
  return done_testing();
}
