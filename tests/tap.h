/* SPDX-License-Identifier: BSD-3-Clause
 * The Test Anything Protocol.  Set tap_rank first: only rank 0 prints the lines of claims.
 *
 * A test prints one line per claim.  ok() alone is a claim of one check.  Between claim_begin() and
 * claim_end() each ok() is one check of that claim; it prints a line only if it fails, on any rank.
 * A claim without a check fails, unless skip() was called in it. */
#ifndef TESTS_TAP_H
#define TESTS_TAP_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TAP_SHOWN = 20 }; /* the most failed checks that a claim prints */

static int tap_rank, tap_count, tap_failed;

static struct {
  char text[200], reason[200]; /* of the claim; of the last skip() */
  int open, checks, failed, skipped;
} tap_claim;

static int is_set(const char *name)
{
  const char *value = getenv(name);
  return value && *value && strcmp(value, "0") != 0;
}

/* 1 with CHECK_FULL=1, which `scripts/check --full` sets: all combinations, and large sizes. */
__attribute__((unused)) static int is_full(void)
{
  return is_set("CHECK_FULL");
}

/* Print the line of a whole claim on rank 0, and count it. */
__attribute__((format(printf, 2, 0))) static int tap_line(int good, const char *format,
                                                          va_list args)
{
  tap_count++;
  tap_failed += !good;
  if (tap_rank != 0) return good;
  printf("%sok %d ", good ? "" : "not ", tap_count);
  vprintf(format, args);
  printf("\n");
  fflush(stdout);
  return good;
}

__attribute__((format(printf, 2, 3))) static int tap_say(int good, const char *format, ...)
{
  va_list args;
  va_start(args, format);
  tap_line(good, format, args);
  va_end(args);
  return good;
}

/* Record a check.  Returns `good`.  The text names what was checked. */
__attribute__((format(printf, 2, 3), unused)) static int ok(int good, const char *format, ...)
{
  char text[1000];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (!tap_claim.open) return tap_say(good, "- %s", text);
  tap_claim.checks++;
  if (!good && tap_claim.failed++ < TAP_SHOWN) {
    printf("# rank %d fails: %s\n", tap_rank, text);
    fflush(stdout);
  }
  return good;
}

__attribute__((format(printf, 1, 2), unused)) static void skip(const char *format, ...)
{
  char text[sizeof tap_claim.reason];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (!tap_claim.open) {
    tap_say(1, "# SKIP %s", text);
    return;
  }
  tap_claim.skipped++;
  snprintf(tap_claim.reason, sizeof tap_claim.reason, "%s", text);
}

/* Begin a claim; claims do not nest. */
__attribute__((format(printf, 1, 2), unused)) static void claim_begin(const char *format, ...)
{
  va_list args;
  if (tap_claim.open) tap_say(0, "- '%s' has no end", tap_claim.text);
  tap_claim.open = 1;
  tap_claim.checks = tap_claim.failed = tap_claim.skipped = 0;
  va_start(args, format);
  vsnprintf(tap_claim.text, sizeof tap_claim.text, format, args);
  va_end(args);
}

/* End a claim, and print whether it held.  Returns 1 if it did. */
__attribute__((unused)) static int claim_end(void)
{
  const char *text = tap_claim.text;
  int checks = tap_claim.checks, failed = tap_claim.failed, skipped = tap_claim.skipped;
  tap_claim.open = 0;
  if (skipped && !checks) return tap_say(1, "- %s # SKIP %s", text, tap_claim.reason);
  if (!checks) return tap_say(0, "- %s: nothing was checked", text);
  if (failed) return tap_say(0, "- %s: %d of %d checks failed", text, failed, checks);
  if (skipped)
    return tap_say(1, "- %s (%d checks, %d left out: %s)", text, checks, skipped, tap_claim.reason);
  return tap_say(1, "- %s (%d checks)", text, checks);
}

__attribute__((unused)) static int done_testing(void)
{
  if (tap_claim.open) tap_say(0, "- '%s' has no end", tap_claim.text);
  if (tap_rank == 0) printf("1..%d\n", tap_count);
  return tap_failed != 0;
}

#endif
