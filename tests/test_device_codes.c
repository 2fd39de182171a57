/* SPDX-License-Identifier: BSD-3-Clause
 * Codes, residuals and quality on the CPU have the bits of their references, for every variant and
 * thread count. */
#include "device_codes.h"

static const struct how variants[] = {{.kind = "cpu", .variant = "avx2", .threads = 2},
                                      {.kind = "cpu", .variant = "avx512", .threads = 2}};

int main(void)
{
  struct how those[LENGTH(variants)];
  int count = 0;
  if (device_check_fma()) {
    skip("%s", status_message());
    return done_testing();
  }
  for (int v = 0; v < LENGTH(variants); v++)
    if (how_present(&variants[v])) those[count++] = variants[v];
  check_codes(those, count);
  return done_testing();
}
