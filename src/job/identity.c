/* SPDX-License-Identifier: BSD-3-Clause
 * Lines are compared by key, so their order does not matter.  A key that only one text has is a
 * difference, unless it is the key of an input. */
#include "job/identity.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/key_lines.h"
#include "base/options_write.h"
#include "base/status.h"
#include "base/text.h"
#include "io/writer.h"

int identity_text_begin(struct identity_text *t, const struct option_set *set, const void *resolved)
{
  static const char what[] = "the identity of a job";
  FILE *memory;
  size_t bytes;
  identity_text_free(t);
  TRY(text_open(&memory, &t->text, &bytes, what));
  fprintf(memory, "numerics = %d\n", NUMERICS);
  options_bits(set, resolved, memory);
  return text_close(memory, what);
}

void identity_text_free(struct identity_text *t)
{
  free(t->text);
  *t = (struct identity_text){0};
}

void identity_text_remove(struct identity_text *t, const char *key)
{
  struct key_line line;
  const char *next;
  for (char *at = t->text; (next = key_line_take(at, &line)); at = t->text + (next - t->text)) {
    if (strcmp(line.key, key) != 0) continue;
    memmove(at, next, strlen(next) + 1);
    return;
  }
}

int identity_text_input(struct identity_text *t, const char *name, const char *format, ...)
{
  struct key_line line;
  char value[64];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(value, sizeof value, format, arguments);
  va_end(arguments);
  CHECK(strchr(name, '_') && length < (int)sizeof value, ERR_INTERNAL,
        "'%s' is no name of an input, or '%s' too long", name, value);
  if (key_line_find(t->text, name, &line) && key_line_is(&line, value, length))
    return OK; /* not changed: another thread may be writing the text to a file */
  identity_text_remove(t, name);
  size_t used = strlen(t->text), more = strlen(name) + strlen(value) + 8;
  char *whole = realloc(t->text, used + more);
  CHECK(whole, ERR_MEMORY, "cannot allocate %zu bytes", used + more);
  snprintf(whole + used, more, "%s = %s\n", name, value);
  t->text = whole;
  return OK;
}

int identity_text_hash(struct identity_text *t, const char *name, uint64_t hash)
{
  if (!hash) return identity_text_input(t, name, "none");
  return identity_text_input(t, name, "%016llx", (unsigned long long)hash);
}

int identity_text_rows(struct identity_text *t, uint64_t rows, uint64_t held_out)
{
  TRY(identity_text_hash(t, "rows_hash", rows));
  return identity_text_hash(t, "held_out_hash", held_out);
}

int identity_text_contents(struct identity_text *t, const struct identity *of)
{
  TRY(identity_text_hash(t, "rows_hash", of->rows));
  TRY(identity_text_hash(t, "dictionary_hash", of->dictionary));
  TRY(identity_text_hash(t, "supports_hash", of->supports));
  return identity_text_hash(t, "codes_hash", of->codes);
}

/* out <- a line as a user would type it; line NULL: the text has no line with this key. */
static void side_show(const char *key, const struct key_line *line, char *out, size_t capacity)
{
  int is_yes = line && key_line_is(line, "yes", 3);
  int is_no = line && key_line_is(line, "no", 2);
  const char *dashes = strchr(key, '_') || strcmp(key, "numerics") == 0 ? "" : "--";
  if (!line || is_no)
    snprintf(out, capacity, "no %s%s", dashes, key);
  else if (is_yes)
    snprintf(out, capacity, "%s%s", dashes, key);
  else
    snprintf(out, capacity, "%s%s %.*s", dashes, key, line->length, line->value);
}

/* Do two texts differ in this key?  A missing input, whose key has a '_', does not count. */
static int key_differs(const char *key, const char *was, const char *is,
                       struct identity_difference *d)
{
  struct key_line then, now;
  int in_was = key_line_find(was, key, &then), in_is = key_line_find(is, key, &now);
  int same = in_was && in_is ? key_line_is(&then, now.value, now.length) : strchr(key, '_') != NULL;
  if (same) return 0;
  side_show(key, in_was ? &then : NULL, d->was, sizeof d->was);
  side_show(key, in_is ? &now : NULL, d->is, sizeof d->is);
  return 1;
}

int identity_text_differs(const char *was, const char *is, struct identity_difference *d)
{
  struct key_line line;
  for (const char *at = is; (at = key_line_take(at, &line));)
    if (key_differs(line.key, was, is, d)) return 1;
  for (const char *at = was; (at = key_line_take(at, &line));)
    if (key_differs(line.key, was, is, d)) return 1;
  return 0;
}

int identity_text_check(const struct identity_text *now, const char *path, const char *shown)
{
  struct identity_difference d;
  char *was;
  TRY(writer_identity(path, &was));
  int differs = identity_text_differs(was, now->text, &d);
  free(was);
  CHECK(!differs, ERR_INPUT,
        "cannot resume '%s': written with %s, this run has %s; give the same, or begin again, with "
        "--force and not --resume",
        shown, d.was, d.is);
  return OK;
}
