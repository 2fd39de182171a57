/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: the fast assembly gives S, the determinant of the rows and the sums with the bits of the
 * plain loops, for every variant, thread count and batch, supports of different lengths, dropped
 * vectors, and frames. */
#include "device/backend.h"
#include "device_joint.h"
#include "variants.h"

/* A backend without the joint system, or without Lanczos steps, reports this. */
static void lack_check(void)
{
  const struct backend none = {.kind = "none"};
  struct device dev = {.backend = &none, .kind = none.kind};
  struct joint joint = {.k = 0};
  struct joint_work w;
  struct lanczos l = {.max = 1};
  ok(joint_open(&w, &dev, &joint, 1, 1) == ERR_DEVICE && strstr(status_message(), "joint_open") &&
         strstr(status_message(), "'none'"),
     "joint_open on a device without it: %s", status_message());
  joint_close(&w);
  status_clear();
  ok(lanczos_step(&dev, &l, 0, NULL) == ERR_DEVICE && strstr(status_message(), "lanczos_step"),
     "lanczos_step: %s", status_message());
  status_clear();
}

int main(void)
{
  struct how hows[LOOP_VARIANTS];
  int count = 0;
  claim_begin("a device without joint work reports an error");
  lack_check();
  claim_end();
  for (int v = 0; v < LOOP_VARIANTS; v++) {
    struct how how = {.kind = "cpu", .variant = loop_variants[v], .threads = 2};
    if (how_present(&how))
      hows[count++] = how;
    else
      skip("this processor lacks %s", how.variant);
  }
  if (count) check_joint(hows, count);
  return done_testing();
}
