/* SPDX-License-Identifier: BSD-3-Clause
 * UTF-8 is read character by character; a harmful character has at most three bytes. */
#include "base/text.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

int text_character(const char *at, unsigned *code)
{
  const unsigned char *text = (const unsigned char *)at;
  static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
  int bytes = text[0] < 0x80             ? 1
              : (text[0] & 0xe0) == 0xc0 ? 2
              : (text[0] & 0xf0) == 0xe0 ? 3
              : (text[0] & 0xf8) == 0xf0 ? 4
                                         : 0;
  *code = bytes == 1 ? text[0] : text[0] & (0x7fu >> bytes);
  for (int i = 1; i < bytes; i++) {
    if ((text[i] & 0xc0) != 0x80) return 0;
    *code = *code << 6 | (text[i] & 0x3f);
  }
  return bytes && *code >= least[bytes] && *code <= 0x10ffff ? bytes : 0;
}

static int is_control(unsigned code)
{
  int turns = (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
  return code < 0x20 || (code >= 0x7f && code <= 0x9f) || turns || code == 0x200e || code == 0x200f;
}

/* Returns the number of clean bytes at the start.  *bad <- the number of bytes to replace after
 * them, 0 at the end of the text; *by <- the replacement of each. */
static size_t clean_bytes(const char *text, int *bad, char *by)
{
  size_t at = 0;
  while (text[at]) {
    unsigned code;
    int bytes = text_character(text + at, &code);
    *bad = bytes ? bytes : 1;
    *by = bytes ? ' ' : '?';
    if (!bytes || is_control(code)) return at;
    at += (size_t)bytes;
  }
  *bad = 0;
  return at;
}

int text_ends_in(const char *text, const char *end)
{
  size_t length = strlen(text), tail = strlen(end);
  return length >= tail && strcmp(text + length - tail, end) == 0;
}

void text_clean(char *text)
{
  int bad;
  char by;
  for (;;) {
    text += clean_bytes(text, &bad, &by);
    if (!bad) return;
    memset(text, by, (size_t)bad);
    text += bad;
  }
}

int text_distance(const char *a, const char *b)
{
  int row[64], n = (int)strlen(b);
  if (n > 63) return 64;
  for (int j = 0; j <= n; j++) row[j] = j;
  for (int i = 1; a[i - 1]; i++) {
    int corner = row[0];
    row[0] = i;
    for (int j = 1; j <= n; j++) {
      int change = corner + (a[i - 1] != b[j - 1]);
      corner = row[j];
      int min = row[j] < row[j - 1] ? row[j] + 1 : row[j - 1] + 1;
      row[j] = change < min ? change : min;
    }
  }
  return row[n];
}

int text_is_clean(const char *text)
{
  int bad;
  char by;
  clean_bytes(text, &bad, &by);
  return !bad;
}

void text_print(FILE *out, const char *format, ...)
{
  va_list args;
  char few[4096], *many = NULL, *text = few;
  va_start(args, format);
  int length = vsnprintf(few, sizeof few, format, args);
  va_end(args);
  if (length >= (int)sizeof few) { /* if there is no memory, only its beginning is printed */
    va_start(args, format);
    length = vasprintf(&many, format, args);
    va_end(args);
    if (length < 0) many = NULL;
    text = many ? many : few;
  }
  if (length < 0) length = (int)strlen(few);
  char *begin = text + strspn(text, "\n"), *end = text + length;
  while (end > begin && end[-1] == '\n') *--end = '\0';
  text_clean(begin);
  size_t before = (size_t)(begin - text), after = (size_t)(text + length - end);
  fprintf(out, "%.*s%s%.*s", (int)before, "\n\n\n\n", begin, (int)after, "\n\n\n\n");
  free(many);
}

int text_open(FILE **out, char **text, size_t *bytes, const char *what)
{
  *text = NULL;
  *out = open_memstream(text, bytes);
  CHECK(*out, ERR_MEMORY, "cannot allocate %s", what);
  return OK;
}

int text_close(FILE *out, const char *what)
{
  int failed = ferror(out) != 0;
  failed = fclose(out) || failed;
  CHECK(!failed, ERR_MEMORY, "cannot allocate %s", what);
  return OK;
}
