/* SPDX-License-Identifier: BSD-3-Clause
 * Lines are compared by key, so their order does not matter.  A missing option is a difference, a
 * missing input is not. */
#include "job/identity.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/options_write.h"
#include "base/status.h"
#include "base/text.h"
#include "io/h5/h5.h"
#include "io/record.h"

const char *identity_line_take(const char *at, struct identity_line *line)
{
  const char *equals = strstr(at, " = "), *end = at + strcspn(at, "\n");
  if (!*at || !equals || equals > end) return NULL;
  snprintf(line->key, sizeof line->key, "%.*s", (int)(equals - at), at);
  line->value = equals + 3;
  line->length = (int)(end - line->value);
  return *end ? end + 1 : end;
}

int identity_line_find(const char *text, const char *key, struct identity_line *line)
{
  for (const char *at = text; (at = identity_line_take(at, line));)
    if (strcmp(line->key, key) == 0) return 1;
  return 0;
}

int identity_line_is(const struct identity_line *line, const char *value, int length)
{
  return line->length == length && memcmp(line->value, value, (size_t)length) == 0;
}

/* Keys of inputs contain '_'; option keys do not. */
static int is_input(const struct identity_line *line)
{
  return strchr(line->key, '_') != NULL;
}

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
  struct identity_line line;
  const char *next;
  for (char *at = t->text; (next = identity_line_take(at, &line));
       at = t->text + (next - t->text)) {
    if (strcmp(line.key, key) != 0) continue;
    memmove(at, next, strlen(next) + 1);
    return;
  }
}

int identity_text_input(struct identity_text *t, const char *name, const char *value)
{
  struct identity_line line;
  CHECK(strchr(name, '_'), ERR_INTERNAL, "'%s' is no name of an input", name);
  if (identity_line_find(t->text, name, &line) &&
      identity_line_is(&line, value, (int)strlen(value)))
    return OK; /* not replaced: another thread may be writing the text to a file */
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
  char digits[32] = "none";
  if (hash) snprintf(digits, sizeof digits, "%016llx", (unsigned long long)hash);
  return identity_text_input(t, name, digits);
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

/* out[capacity] <- a text of /run, if there is one. */
static void writer_read(const struct h5_file *f, const char *name, char *out, int capacity)
{
  int there, status = h5_attribute_exists(f, "/run", name, &there);
  if (!status && there) status = h5_read_text(f, "/run", name, out, capacity);
  if (status) status_clear();
}

/* A file without the number is older than the number, which counts as 1. */
static int writer_check(const struct h5_file *f, const char *advice)
{
  char version[64] = "unknown", revision[64] = "unknown";
  char number[32] = "1";
  real numerics = 1;
  int there;
  TRY(h5_attribute_exists(f, "/run", "numerics", &there));
  if (there && h5_read_number(f, "/run", "numerics", &numerics)) {
    status_clear();
    numerics = nan_canonical();
  }
  if (numerics == NUMERICS) return OK;
  if (isnan(numerics))
    snprintf(number, sizeof number, "no number");
  else
    snprintf(number, sizeof number, "%g", numerics);
  writer_read(f, "version", version, sizeof version);
  writer_read(f, "revision", revision, sizeof revision);
  FAIL(ERR_INPUT,
       "'%s' was written by Sagitta %s, revision %s, whose results differ in bits (numerics %s, "
       "here %d): %s",
       f->path, version, revision, number, NUMERICS, advice);
}

int numerics_check(const char *path, const char *advice)
{
  struct h5_file f = {0};
  TRY(h5_open(&f, path));
  return h5_close_after(&f, writer_check(&f, advice));
}

static int unnamed_fail(const struct h5_file *f)
{
  char version[64] = "of no known version";
  writer_read(f, "version", version, sizeof version);
  FAIL(ERR_INPUT,
       "'%s' was written by Sagitta %s, format %lld, and does not say which job it is of: begin "
       "again, with --force and not --resume",
       f->path, version, (long long)f->version);
}

static int text_take(const struct h5_file *f, char **text)
{
  static const char advice[] =
      "resume with that version, or begin again, with --force and not --resume";
  int there;
  TRY(writer_check(f, advice));
  TRY(h5_attribute_exists(f, "/run", "identity", &there));
  return there ? h5_read_text_any(f, "/run", "identity", text) : unnamed_fail(f);
}

int identity_text_read(const char *path, char **text)
{
  struct h5_file f;
  *text = NULL;
  if (journal_is(path)) return record_identity(path, text, NULL);
  TRY(h5_open(&f, path));
  return h5_close_after(&f, text_take(&f, text));
}

int identity_text_value(const char *path, const char *key, char *value, size_t capacity)
{
  struct identity_line line = {.value = ""};
  char *text;
  TRY(identity_text_read(path, &text));
  if (!identity_line_find(text, key, &line)) line.length = 0;
  snprintf(value, capacity, "%.*s", line.length, line.value);
  free(text);
  return OK;
}

/* out <- what a user would type for a line; for a missing line NULL. */
static void side_show(const char *key, const struct identity_line *line, char *out, size_t capacity)
{
  int is_yes = line && identity_line_is(line, "yes", 3);
  int is_no = line && identity_line_is(line, "no", 2);
  const char *dashes = strchr(key, '_') || strcmp(key, "numerics") == 0 ? "" : "--";
  if (!line || is_no)
    snprintf(out, capacity, "no %s%s", dashes, key);
  else if (is_yes)
    snprintf(out, capacity, "%s%s", dashes, key);
  else
    snprintf(out, capacity, "%s%s %.*s", dashes, key, line->length, line->value);
}

/* Does the other text lack this line?  A missing input does not count. */
static int line_differs(const struct identity_line *line, const char *other,
                        struct identity_line *found, int *there)
{
  *there = identity_line_find(other, line->key, found);
  if (!*there) return !is_input(line);
  return !identity_line_is(found, line->value, line->length);
}

/* Does `from`, the present or the earlier text, have a line that the other text lacks? */
static int side_differs(const char *from, const char *other, int is_now,
                        struct identity_difference *d)
{
  struct identity_line line, found;
  int there;
  while ((from = identity_line_take(from, &line))) {
    if (!line_differs(&line, other, &found, &there)) continue;
    const struct identity_line *theirs = there ? &found : NULL;
    side_show(line.key, is_now ? theirs : &line, d->was, sizeof d->was);
    side_show(line.key, is_now ? &line : theirs, d->is, sizeof d->is);
    return 1;
  }
  return 0;
}

int identity_text_differs(const char *was, const char *is, struct identity_difference *d)
{
  return side_differs(is, was, 1, d) || side_differs(was, is, 0, d);
}

int identity_text_check(const struct identity_text *now, const char *path, const char *shown)
{
  struct identity_difference d;
  char *was;
  TRY(identity_text_read(path, &was));
  int differs = identity_text_differs(was, now->text, &d);
  free(was);
  CHECK(!differs, ERR_INPUT,
        "cannot resume '%s': written with %s, this run has %s; give the same, or begin again, with "
        "--force and not --resume",
        shown, d.was, d.is);
  return OK;
}
