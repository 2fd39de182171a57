/* SPDX-License-Identifier: BSD-3-Clause
 * Sums over blocks are chains: contributions of codes are added from the first block on, errors
 * from the last block on. */
#include "model/nested.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/status.h"

/* Returns the next number of a text, and moves *text past it; 0: there is none. */
static long size_take(const char **text)
{
  char *end;
  long size = strtol(*text, &end, 10);
  if (end == *text || **text == '+' || **text == ' ') return 0;
  *text = end;
  return size > 0 && size <= INT32_MAX ? size : 0;
}

int nested_read(const char *text, idx k, struct nested *nested)
{
  const char *at = text;
  long last = 0;
  *nested = (struct nested){0};
  for (int more = 1; more; at += more) {
    long size = size_take(&at);
    more = *at == ',';
    CHECK(size && (more || !*at), ERR_USAGE,
          "'--nested' is '%s', and has to be sizes with commas between them, such as 128,512,%d",
          text, k);
    CHECK(size > last, ERR_USAGE, "'--nested' is '%s': %ld follows %ld, and sizes have to rise",
          text, size, last);
    CHECK(nested->count < NESTED_MOST, ERR_USAGE,
          "'--nested' has more than %d sizes: leave some out", NESTED_MOST);
    nested->end[nested->count++] = (idx)size;
    last = size;
  }
  CHECK(last == k, ERR_USAGE,
        "'--nested' is '%s', and there are %d atoms: the last size has to be %d, the whole "
        "dictionary",
        text, k, k);
  return OK;
}

void nested_text(const struct nested *nested, char text[256])
{
  int at = 0;
  text[0] = 0;
  for (int b = 0; b < nested->count; b++)
    at += snprintf(text + at, (size_t)(256 - at), "%s%d", b ? "," : "", nested->end[b]);
}

int nested_blocks(const struct nested *nested)
{
  return nested->count ? nested->count : 1;
}

void nested_block(const struct nested *nested, idx k, int block, idx *first, idx *end)
{
  *first = block ? nested->end[block - 1] : 0;
  *end = nested->count ? nested->end[block] : k;
}

void nested_errors(float *z, const float *x, int blocks, idx p)
{
  for (gidx i = p; i < (gidx)blocks * p; i++) z[i] += z[i - p];
  for (int b = 0; b < blocks; b++)
    for (idx c = 0; c < p; c++) z[(gidx)b * p + c] -= x[c];
}

void nested_suffix(float *e, int blocks, idx p)
{
  for (gidx i = (gidx)(blocks - 1) * p - 1; i >= 0; i--) e[i] += e[i + p];
}
