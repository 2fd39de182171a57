/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: memory_zeroed() and an arena give zeros on a 64-byte boundary, even if the memory was used
 * before.  A dry arena counts the bytes that the same calls take from a real one. */
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/team.h"
#include "tap.h"

static int are_zero(const unsigned char *bytes, size_t count)
{
  for (size_t i = 0; i < count; i++)
    if (bytes[i]) return 0;
  return 1;
}

/* Write to memory.  No compiler may drop this, although the memory is freed next. */
static void soil(volatile unsigned char *bytes, size_t count)
{
  for (size_t i = 0; i < count; i++) bytes[i] = 255;
}

int main(void)
{
  enum { LONGEST = (65 << 20) + 5 }; /* so long that several threads clear it */
  static const size_t sizes[] = {0, 1, 4095, (4 << 20) - 1, 4 << 20, (9 << 20) + 5, LONGEST};
  team_spare_set(3);
  mallopt(M_MMAP_MAX, 0); /* so that long arrays use memory of earlier ones, too */
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
  unsigned char *first = malloc(2 * LONGEST);
  soil(first, 2 * LONGEST);
  free(first);
  claim_begin("zeros on a 64-byte boundary");
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    int right = 1;
    for (int turn = 0; turn < 3; turn++) {
      unsigned char *at = memory_zeroed(sizes[i]);
      right &= at && (uintptr_t)at % 64 == 0 && are_zero(at, sizes[i]);
      soil(at, sizes[i]);
      free(at);
      struct arena arena = {0};
      right &= !arena_alloc(&arena, &at, (gidx)sizes[i], 1) && (uintptr_t)at % 64 == 0 &&
               are_zero(at, sizes[i]);
      soil(at, sizes[i]);
      arena_free(&arena);
    }
    ok(right, "%zu bytes", sizes[i]);
  }
  claim_end();
  claim_begin("a dry arena counts what a real one takes, and takes nothing");
  struct arena dry = {.is_dry = 1}, real_one = {0};
  static const gidx counts[] = {0, 1, 8, 9, 1000000};
  int is_null = 1;
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    double *a = (double *)counts, *b;
    ok(!arena_alloc(&dry, &a, counts[i], 8) && !arena_alloc(&real_one, &b, counts[i], 8) && b,
       "%lld items", (long long)counts[i]);
    is_null &= !a;
  }
  ok(is_null && !dry.pieces && dry.bytes == real_one.bytes && dry.bytes > 8000000,
     "%lld bytes, a real one takes %lld", (long long)dry.bytes, (long long)real_one.bytes);
  claim_end();
  arena_free(&real_one);
  return done_testing();
}
