/* SPDX-License-Identifier: BSD-3-Clause
 * Values are copied, each together with its name.  The name of a value in nested objects is its
 * path, with dots. */
#include "io/settings.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_reader.h"

enum { MAX_BYTES = 1 << 20, MAX_DEPTH = 16, MAX_PATH = 512 };

struct place { /* the value that is being read: its path */
  char path[MAX_PATH];
  int depth, lists; /* depth: objects and lists around it; lists: only the lists */
  int is_item;      /* 1: it is an item of a list */
};

static int value_read(struct json_reader *r, struct settings *s, struct place *at);

/* A number, or a word: true, false, null, NaN. */
static int word_read(struct json_reader *r, char **word)
{
  json_blanks(r);
  size_t length =
      strspn(r->at, "+-.0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
  JSON_GOOD(r, length > 0, "a value is missing");
  *word = r->at;
  r->at += length;
  return OK;
}

/* Add a value that was read.  value.begin is the offset of its first byte. */
static int setting_add(struct json_reader *r, struct settings *s, const struct place *at,
                       struct setting value, size_t length)
{
  if (s->count == s->capacity) {
    s->capacity = 2 * s->capacity + 16;
    struct setting *list = realloc(s->list, (size_t)s->capacity * sizeof *list);
    CHECK(list, ERR_MEMORY, "cannot allocate %d settings", s->capacity);
    s->list = list;
  }
  char *both = malloc(strlen(at->path) + length + 2);
  CHECK(both, ERR_MEMORY, "cannot allocate %zu bytes", length);
  char *copy = both + sprintf(both, "%s", at->path) + 1;
  memcpy(copy, value.value, length);
  copy[length] = '\0';
  value.name = both;
  value.value = copy;
  value.is_listed = at->lists > 0;
  value.end = (gidx)(r->at - r->start);
  s->list[s->count++] = value;
  return json_keys_add(&s->names, both);
}

static int list_read(struct json_reader *r, struct settings *s, struct place *at)
{
  size_t length = strlen(at->path);
  int i = 0;
  if (json_sign(r, ']')) return OK;
  at->lists++;
  do {
    JSON_GOOD(r, length + 16 < MAX_PATH, "a name is too long");
    sprintf(at->path + length, "[%d]", i++);
    at->is_item = 1;
    TRY(value_read(r, s, at));
    at->path[length] = '\0';
  } while (json_sign(r, ','));
  at->lists--;
  JSON_GOOD(r, json_sign(r, ']'), "a list does not end");
  return OK;
}

/* Append a key to the path of its object; ".", "[" and "\" inside the key are escaped. */
static int key_append(struct json_reader *r, struct place *at, const char *key)
{
  char *to = at->path + strlen(at->path), *end = at->path + MAX_PATH - 2;
  if (at->depth > 0) *to++ = '.';
  for (; *key && to < end; *to++ = *key++)
    if (strchr(".[\\", *key)) *to++ = '\\';
  JSON_GOOD(r, to < end, "a name is too long");
  *to = '\0';
  return OK;
}

static int object_read(struct json_reader *r, struct settings *s, struct place *at)
{
  size_t length = strlen(at->path);
  char *key;
  if (json_sign(r, '}')) return OK;
  do {
    TRY(json_key(r, &key));
    TRY(key_append(r, at, key));
    at->is_item = 0;
    TRY(value_read(r, s, at));
    at->path[length] = '\0';
  } while (json_sign(r, ','));
  JSON_GOOD(r, json_sign(r, '}'), "an object does not end");
  return OK;
}

/* Read a value, and add it to the settings.  A value that is itself an item of a list is not added;
 * the values of an object in a list are added. */
static int value_read(struct json_reader *r, struct settings *s, struct place *at)
{
  char *text;
  json_blanks(r);
  struct setting value = {.begin = (gidx)(r->at - r->start)};
  int is_named = !at->is_item;
  if (*r->at == '"') {
    TRY(json_string(r, &text));
    value.kind = SETTING_TEXT;
    value.value = text;
    return is_named ? setting_add(r, s, at, value, strlen(text)) : OK;
  }
  if (*r->at != '{' && *r->at != '[') {
    TRY(word_read(r, &text));
    value.value = text;
    return is_named ? setting_add(r, s, at, value, (size_t)(r->at - text)) : OK;
  }
  JSON_GOOD(r, ++at->depth <= MAX_DEPTH, "objects are nested too deeply");
  int is_object = *r->at++ == '{';
  value.kind = is_object ? SETTING_OBJECT : SETTING_LIST;
  value.value = is_object ? "{...}" : "[...]";
  if (is_named) TRY(setting_add(r, s, at, value, strlen(value.value)));
  TRY(is_object ? object_read(r, s, at) : list_read(r, s, at));
  at->depth--;
  return OK;
}

int settings_open(struct settings *s, const char *path)
{
  struct place at = {"", 0, 0, 0};
  *s = (struct settings){0};
  TRY(flat_open(&s->file, path));
  gidx bytes = s->file.input->facts.size;
  CHECK(bytes <= MAX_BYTES, ERR_INPUT, "'%s' has %lld bytes: settings have at most %d", path,
        (long long)bytes, MAX_BYTES);
  s->whole = malloc((size_t)bytes + 1);
  s->text = malloc((size_t)bytes + 1);
  CHECK(s->whole && s->text, ERR_MEMORY, "cannot allocate %lld bytes", (long long)bytes);
  TRY(flat_bytes(&s->file, 0, (size_t)bytes, s->whole));
  s->whole[bytes] = '\0';
  strcpy(s->text, s->whole);
  struct json_reader r = {path, "the text", s->text, s->text, 0};
  JSON_GOOD(&r, (gidx)strlen(s->text) == bytes && json_sign(&r, '{'), "it is no object");
  TRY(object_read(&r, s, &at));
  json_blanks(&r);
  JSON_GOOD(&r, !*r.at, "it goes on behind its end");
  const char *twice = json_keys_twice(&s->names);
  CHECK(!twice, ERR_INPUT,
        "'%s' says '%s' twice, and programs take the first or the last: keep the right one", path,
        twice);
  return OK;
}

int settings_close(struct settings *s)
{
  for (int i = 0; i < s->count; i++) free((char *)s->list[i].name);
  free(s->list);
  json_keys_free(&s->names);
  free(s->text);
  free(s->whole);
  int status = flat_close(&s->file);
  *s = (struct settings){0};
  return status;
}

static struct setting *setting_find(const struct settings *s, const char *name)
{
  for (int i = 0; i < s->count; i++)
    if (!strcmp(s->list[i].name, name)) return &s->list[i];
  return NULL;
}

static int is_null(const struct setting *of)
{
  return of->kind == SETTING_WORD && !strcmp(of->value, "null");
}

const char *settings_find(const struct settings *s, const char *name)
{
  const struct setting *of = setting_find(s, name);
  return of && !is_null(of) ? of->value : NULL;
}

int settings_flag(const struct settings *s, const char *name, int *value)
{
  static const char *const words[] = {"false", "true", "0", "1", "null"};
  const struct setting *of = setting_find(s, name);
  int i = 0;
  if (!of) return OK;
  while (i < LENGTH(words) && (of->kind != SETTING_WORD || strcmp(words[i], of->value) != 0)) i++;
  CHECK(i < LENGTH(words), ERR_INPUT, "'%s' of '%s' is %s%s%s, and has to be true or false", name,
        s->file.path, of->kind == SETTING_TEXT ? "\"" : "", of->value,
        of->kind == SETTING_TEXT ? "\"" : "");
  *value = i == 1 || i == 3;
  return OK;
}

int settings_long(const struct settings *s, const char *name, gidx *value)
{
  const char *text = settings_find(s, name);
  if (!text) return OK;
  size_t digits = strspn(text, "0123456789");
  CHECK(digits && digits <= 12 && !text[digits], ERR_INPUT,
        "'%s' of '%s' is '%s', not a whole number from 0 on", name, s->file.path, text);
  *value = strtoll(text, NULL, 10);
  return OK;
}

int settings_factor(const struct settings *s, const char *name, double *value)
{
  const char *text = settings_find(s, name);
  char *end;
  if (!text) return OK;
  double number = strtod(text, &end);
  CHECK(end > text && !*end && number > 0 && isfinite(number) && !strpbrk(text, "xX"), ERR_INPUT,
        "'%s' of '%s' is '%s', not a number above 0", name, s->file.path, text);
  *value = number;
  return OK;
}

int settings_replace(struct settings *s, const char *name, const char *text)
{
  const struct setting *of = setting_find(s, name);
  size_t bytes = strlen(s->whole) + strlen(text) + 3;
  if (!of) return OK;
  char *whole = malloc(bytes);
  CHECK(whole, ERR_MEMORY, "cannot allocate %zu bytes", bytes);
  gidx begin = of->begin, change = (gidx)strlen(text) + 2 - (of->end - begin);
  snprintf(whole, bytes, "%.*s\"%s\"%s", (int)begin, s->whole, text, s->whole + of->end);
  free(s->whole);
  s->whole = whole;
  for (int i = 0; i < s->count; i++) {
    if (s->list[i].end > begin) s->list[i].end += change;
    if (s->list[i].begin > begin) s->list[i].begin += change;
  }
  return OK;
}
