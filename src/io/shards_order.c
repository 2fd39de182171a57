/* SPDX-License-Identifier: BSD-3-Clause
 * Neighbouring names are compared if they differ only in their numbers. */
#include "io/shards_order.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

static size_t digits_of(const char *text)
{
  return strspn(text, "0123456789");
}

/* Are two texts equal except for the digits of their numbers? */
static int is_numbered_alike(const char *a, const char *b)
{
  for (; *a || *b; a++, b++) {
    if (digits_of(a) && digits_of(b)) a += digits_of(a), b += digits_of(b);
    if (*a != *b) return 0;
    if (!*a) return 1;
  }
  return 1;
}

/* Compare two strings of digits as numbers of any length. */
static int numbers_order(const char *a, size_t m, const char *b, size_t n)
{
  for (; m > 1 && *a == '0'; m--) a++;
  for (; n > 1 && *b == '0'; n--) b++;
  return m != n ? (m > n) - (m < n) : strncmp(a, b, m);
}

/* Do two names differ only in numbers, and does the first number that differs fall? */
static int does_fall(const char *a, const char *b)
{
  if (!is_numbered_alike(a, b)) return 0;
  for (int order; *a; a++, b++) {
    size_t m = digits_of(a), n = digits_of(b);
    if (!m) continue;
    order = numbers_order(a, m, b, n);
    if (order) return order > 0;
    a += m - 1, b += n - 1;
  }
  return 0;
}

static const char *file_of(const char *name)
{
  const char *slash = strrchr(name, '/');
  return slash ? slash + 1 : name;
}

/* By how much does the first number in which two names differ rise?  0: the names differ in other
 * ways, or the number is too long.  Negative: it falls. */
static long long rise_of(const char *a, const char *b)
{
  size_t at = 0;
  if (!is_numbered_alike(a, b)) return 0;
  while (a[at] && a[at] == b[at]) at++;
  while (at && digits_of(a + at - 1)) at--;
  a += at, b += at;
  if (digits_of(a) > 18 || digits_of(b) > 18) return 0;
  return strtoll(b, NULL, 10) - strtoll(a, NULL, 10);
}

/* Warn about the largest gap in names first .. end - 1 of a pattern.  The smallest rise of the
 * number is its step.  There is a gap where the number rises by several steps. */
static void gaps_warn(const struct shard_name *list, int first, int end)
{
  long long least = LLONG_MAX, most = 0;
  int at = 0;
  for (int i = first + 1; i < end; i++) {
    long long rise = rise_of(list[i - 1].name, list[i].name);
    if (rise <= 0) return;
    least = rise < least ? rise : least;
    if (rise > most) most = rise, at = i;
  }
  /* If a rise is not a multiple of the step, the numbers do not count files. */
  for (int i = first + 1; i < end; i++)
    if (rise_of(list[i - 1].name, list[i].name) % least) return;
  if (most > least)
    log_warn("of '%s' '%s' is followed by '%s': if files between them are missing, add those",
             list[at].origin, file_of(list[at - 1].name), file_of(list[at].name));
}

static void order_warn(const struct shard_names *s)
{
  for (int i = 1; i < s->count; i++) {
    const struct shard_name *a = &s->list[i - 1], *b = &s->list[i];
    int is_pattern = a->origin && a->origin == b->origin && a->line == b->line;
    if (!is_pattern || !does_fall(a->name, b->name)) continue;
    int has_files = strcmp(file_of(a->name), file_of(b->name)) != 0;
    log_warn("the files of '%s' are in the order of their bytes, '%s' before '%s': pad numbers "
             "with zeros, as in 01, or name the files in a list, @LIST",
             a->origin, has_files ? file_of(a->name) : a->name,
             has_files ? file_of(b->name) : b->name);
    return;
  }
}

void shards_order_warn(const struct shard_names *s)
{
  order_warn(s);
  for (int first = 0, i = 1; i <= s->count; i++) {
    const struct shard_name *a = &s->list[i - 1], *b = i < s->count ? &s->list[i] : NULL;
    if (b && a->origin && a->origin == b->origin && a->line == b->line) continue;
    if (a->origin && i - first > 2) gaps_warn(s->list, first, i);
    first = i;
  }
}
