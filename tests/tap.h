/* SPDX-License-Identifier: BSD-3-Clause
 * Test Anything Protocol in four functions.  Only rank 0 speaks: set tap_rank first. */
#ifndef TESTS_TAP_H
#define TESTS_TAP_H

#include <stdarg.h>
#include <stdio.h>

static int tap_rank, tap_count, tap_failed;

__attribute__((format(printf, 2, 3), unused)) static int ok(int good, const char *format, ...)
{
  tap_count++;
  tap_failed += !good;
  if (tap_rank == 0) {
    va_list args;
    va_start(args, format);
    printf("%sok %d - ", good ? "" : "not ", tap_count);
    vprintf(format, args);
    printf("\n");
    fflush(stdout);
    va_end(args);
  }
  return good;
}

__attribute__((format(printf, 1, 2), unused)) static void skip(const char *format, ...)
{
  tap_count++;
  if (tap_rank != 0) return;
  va_list args;
  va_start(args, format);
  printf("ok %d # SKIP ", tap_count);
  vprintf(format, args);
  printf("\n");
  va_end(args);
}

__attribute__((unused)) static int done_testing(void)
{
  if (tap_rank == 0) printf("1..%d\n", tap_count);
  return tap_failed != 0;
}

#endif
