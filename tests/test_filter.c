/* SPDX-License-Identifier: BSD-3-Clause
 * The certified filter gives the bits of the exact route on data made against it, with every
 * variant; it takes the exact path where it must; and with a bound that is too small it fails. */
#include "device_route.h"

static const struct how variants[] = {{"cpu", "avx2", 2, "on", 0},
                                      {"cpu", "avx512vl", 2, "on", 0},
                                      {"cpu", "avx512", 2, "on", 0}};

/* those[..] <- what this processor has. */
static int variants_present(struct how *those)
{
  int count = 0;
  for (int v = 0; v < LENGTH(variants); v++)
    if (how_present(&variants[v])) those[count++] = variants[v];
  return count;
}

int main(void)
{
  struct how those[LENGTH(variants)];
  int count = variants_present(those);
  check_shapes(those, count);
  check_kinds(those, count);
  return done_testing();
}
