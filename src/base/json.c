/* SPDX-License-Identifier: BSD-3-Clause
 * For each open object or array its closing bracket is kept.  Entries are counted in the innermost
 * one only, since each outer one has at least one entry: the one inside it. */
#include "base/json.h"

#include <math.h>

#include "base/text.h"

static void text_write(FILE *out, const char *text)
{
  fputc('"', out);
  while (*text) {
    unsigned code;
    int bytes = text_character(text, &code);
    if (!bytes || (code >= 0xd800 && code <= 0xdfff)) /* half of a surrogate pair is no character */
      fputs("\\ufffd", out);
    else if (code == '"' || code == '\\')
      fprintf(out, "\\%c", (int)code);
    else if (code < 0x20 || code == 0x7f)
      fprintf(out, "\\u%04x", code);
    else
      fwrite(text, 1, (size_t)bytes, out);
    text += bytes ? bytes : 1;
  }
  fputc('"', out);
}

/* Go to where the next entry begins. */
static void entry_begin(struct json *j, const char *key)
{
  if (j->depth) fprintf(j->out, "%s\n%*s", j->count ? "," : "", 2 * j->depth, "");
  j->count++;
  if (!key) return;
  text_write(j->out, key);
  fputs(": ", j->out);
}

static void nest(struct json *j, const char *key, char open, char close)
{
  entry_begin(j, key);
  fputc(open, j->out);
  j->close[j->depth++] = close;
  j->count = 0;
}

void json_object(struct json *j, const char *key)
{
  nest(j, key, '{', '}');
}

void json_array(struct json *j, const char *key)
{
  nest(j, key, '[', ']');
}

void json_end(struct json *j)
{
  char close = j->close[--j->depth];
  if (j->count) fprintf(j->out, "\n%*s", 2 * j->depth, "");
  fputc(close, j->out);
  if (!j->depth) fputc('\n', j->out);
  j->count = 1;
}

void json_text(struct json *j, const char *key, const char *text)
{
  entry_begin(j, key);
  if (text)
    text_write(j->out, text);
  else
    fputs("null", j->out);
}

void json_real(struct json *j, const char *key, real value)
{
  entry_begin(j, key);
  if (isfinite(value))
    fprintf(j->out, "%.17g", value);
  else
    fputs("null", j->out);
}

void json_long(struct json *j, const char *key, gidx value)
{
  entry_begin(j, key);
  fprintf(j->out, "%lld", (long long)value);
}

void json_flag(struct json *j, const char *key, int value)
{
  entry_begin(j, key);
  fputs(value ? "true" : "false", j->out);
}

void json_hash(struct json *j, const char *key, uint64_t hash)
{
  char text[24];
  snprintf(text, sizeof text, "%016llx", (unsigned long long)hash);
  json_text(j, key, text);
}
