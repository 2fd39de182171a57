/* SPDX-License-Identifier: BSD-3-Clause
 * Two numbers are parsed, and compared with the nearest allowed ones. */
#include "io/row_range.h"

#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "base/sums.h"

static gidx multiple_nearest(gidx row)
{
  return (row + ROW_BLOCK / 2) / ROW_BLOCK * ROW_BLOCK;
}

static int numbers_read(const char *text, gidx n, gidx *first, gidx *end)
{
  size_t digits = strspn(text, "0123456789");
  int good = digits > 0 && digits < 18 && text[digits] == ':';
  const char *behind = good ? text + digits + 1 : "";
  size_t more = strspn(behind, "0123456789");
  CHECK(good && more < 18 && !behind[more], ERR_USAGE,
        "'--row-range' is '%s', not FIRST:END, as in 0:%d, or FIRST: up to the end", text,
        64 * ROW_BLOCK);
  *first = strtoll(text, NULL, 10);
  *end = more ? strtoll(behind, NULL, 10) : n;
  if (*end > n && *end % ROW_BLOCK == 0) *end = n;
  return OK;
}

int row_range_parse(const char *text, const struct row_source *rows, gidx *first, gidx *end)
{
  gidx n = rows->n;
  TRY(numbers_read(text, n, first, end));
  int is_spare = *first >= n && *first % ROW_BLOCK == 0 && text[strlen(text) - 1] != ':';
  if (is_spare && strtoll(strchr(text, ':') + 1, NULL, 10) > *first) {
    *first = *end = n;
    return OK;
  }
  CHECK(*first < n, ERR_USAGE, "'--row-range' is %s, '%s' has %lld rows", text, rows->name,
        (long long)n);
  gidx from = imin(multiple_nearest(*first), (n - 1) / ROW_BLOCK * ROW_BLOCK);
  gidx to = *end == n ? n : imin(imax(multiple_nearest(*end), from + ROW_BLOCK), n);
  CHECK(*first == from && *end == to, ERR_USAGE,
        "'--row-range' is %s, of %lld rows: a part begins and ends at multiples of %d, or at the "
        "end; the nearest is %lld:%lld",
        text, (long long)n, ROW_BLOCK, (long long)from, (long long)to);
  return OK;
}
