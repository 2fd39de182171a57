/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: a gated delta net on the CPU has the bits of its reference, for all shapes, slots, thread
 * counts and variants. */
#include "device_how.h"
#include "device_mixer.h"
#include "variants.h"

int main(void)
{
  for (int v = 0; v < LOOP_VARIANTS; v++)
    for (int threads = 1; threads < 4; threads += 2) {
      struct device dev = {0};
      struct device_options options = {
          .p = 1, .d = 1, .threads = threads, .variant = loop_variants[v]};
      claim_begin("%s, %d threads: the reference's bits", loop_variants[v], threads);
      if (device_open(&dev, &options) == ERR_DEVICE) {
        skip("this processor lacks %s", loop_variants[v]);
        status_clear();
      } else {
        if (threads == 1) mixer_shapes(&dev, is_small());
        mixer_slots(&dev);
        mixer_extremes(&dev);
        device_close(&dev);
      }
      claim_end();
    }
  return done_testing();
}
