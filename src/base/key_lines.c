/* SPDX-License-Identifier: BSD-3-Clause
 * Only the key of a line is copied.  The value stays in the text. */
#include "base/key_lines.h"

#include <stdio.h>
#include <string.h>

const char *key_line_take(const char *at, struct key_line *line)
{
  const char *equals = strstr(at, " = "), *end = at + strcspn(at, "\n");
  if (!*at || !equals || equals > end) return NULL;
  snprintf(line->key, sizeof line->key, "%.*s", (int)(equals - at), at);
  line->value = equals + 3;
  line->length = (int)(end - line->value);
  return *end ? end + 1 : end;
}

int key_line_find(const char *text, const char *key, struct key_line *line)
{
  for (const char *at = text; (at = key_line_take(at, line));)
    if (strcmp(line->key, key) == 0) return 1;
  return 0;
}

int key_line_is(const struct key_line *line, const char *value, int length)
{
  return line->length == length && memcmp(line->value, value, (size_t)length) == 0;
}
