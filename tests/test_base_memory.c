/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: memory_zeroed gives zeros on a 64-byte boundary, also where memory was used before. */
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/memory.h"
#include "tap.h"

static int are_zero(const unsigned char *bytes, size_t count)
{
  for (size_t i = 0; i < count; i++)
    if (bytes[i]) return 0;
  return 1;
}

/* Writing that no compiler leaves out, though the memory is freed next. */
static void soil(volatile unsigned char *bytes, size_t count)
{
  for (size_t i = 0; i < count; i++) bytes[i] = 255;
}

int main(void)
{
  static const size_t sizes[] = {0, 1, 4095, (4 << 20) - 1, 4 << 20, (9 << 20) + 5};
  mallopt(M_MMAP_THRESHOLD, 32 << 20); /* long arrays too come from where memory is used again */
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
  unsigned char *first = malloc(16 << 20);
  soil(first, 16 << 20);
  free(first);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    int right = 1;
    for (int turn = 0; turn < 3; turn++) {
      unsigned char *at = memory_zeroed(sizes[i]);
      right &= at && (uintptr_t)at % 64 == 0 && are_zero(at, sizes[i]);
      soil(at, sizes[i]);
      free(at);
    }
    ok(right, "%zu bytes of zeros on a 64-byte boundary", sizes[i]);
  }
  return done_testing();
}
