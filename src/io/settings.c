/* SPDX-License-Identifier: BSD-3-Clause
 * Names of nested objects are put together in memory of their own; values stay where they are. */
#include "io/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_reader.h"

enum { MAX_BYTES = 1 << 20, MAX_DEPTH = 16, MAX_PATH = 512 };

struct place { /* of the object that is being read */
  char path[MAX_PATH];
  int depth;
};

static int value_read(struct json_reader *r, struct settings *s, struct place *at, int is_listed);

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

/* Note a value that ends where the reader is, or is decoded. */
static int setting_add(struct settings *s, const char *name, const char *value, size_t length)
{
  if (s->count == s->capacity) {
    s->capacity = 2 * s->capacity + 16;
    struct setting *list = realloc(s->list, (size_t)s->capacity * sizeof *list);
    CHECK(list, ERR_MEMORY, "cannot allocate %d settings", s->capacity);
    s->list = list;
  }
  char *both = malloc(strlen(name) + length + 2);
  CHECK(both, ERR_MEMORY, "cannot allocate %zu bytes", length);
  char *copy = both + sprintf(both, "%s", name) + 1;
  memcpy(copy, value, length);
  copy[length] = '\0';
  s->list[s->count++] = (struct setting){both, copy};
  return OK;
}

static int list_read(struct json_reader *r, struct settings *s, struct place *at)
{
  if (json_sign(r, ']')) return OK;
  do TRY(value_read(r, s, at, 1));
  while (json_sign(r, ','));
  JSON_GOOD(r, json_sign(r, ']'), "a list does not end");
  return OK;
}

static int object_read(struct json_reader *r, struct settings *s, struct place *at, int is_listed)
{
  size_t length = strlen(at->path);
  char *key;
  if (json_sign(r, '}')) return OK;
  do {
    TRY(json_key(r, &key));
    JSON_GOOD(r, length + strlen(key) + 2 < MAX_PATH, "a name is too long");
    sprintf(at->path + length, "%s%s", length ? "." : "", key);
    TRY(value_read(r, s, at, is_listed));
    at->path[length] = '\0';
  } while (json_sign(r, ','));
  JSON_GOOD(r, json_sign(r, '}'), "an object does not end");
  return OK;
}

static int value_read(struct json_reader *r, struct settings *s, struct place *at, int is_listed)
{
  char *text;
  json_blanks(r);
  if (*r->at == '"') {
    TRY(json_string(r, &text));
    return is_listed ? OK : setting_add(s, at->path, text, strlen(text));
  }
  if (*r->at != '{' && *r->at != '[') {
    TRY(word_read(r, &text));
    return is_listed ? OK : setting_add(s, at->path, text, (size_t)(r->at - text));
  }
  JSON_GOOD(r, ++at->depth <= MAX_DEPTH, "objects are nested too deeply");
  int is_object = *r->at++ == '{';
  TRY(is_object ? object_read(r, s, at, is_listed) : list_read(r, s, at));
  at->depth--;
  return OK;
}

int settings_open(struct settings *s, const char *path)
{
  struct place at = {"", 0};
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
  TRY(object_read(&r, s, &at, 0));
  json_blanks(&r);
  JSON_GOOD(&r, !*r.at, "it goes on behind its end");
  return OK;
}

int settings_close(struct settings *s)
{
  for (int i = 0; i < s->count; i++) free((char *)s->list[i].name);
  free(s->list);
  free(s->text);
  free(s->whole);
  int status = flat_close(&s->file);
  *s = (struct settings){0};
  return status;
}

const char *settings_find(const struct settings *s, const char *name)
{
  for (int i = 0; i < s->count; i++)
    if (!strcmp(s->list[i].name, name))
      return strcmp(s->list[i].value, "null") ? s->list[i].value : NULL;
  return NULL;
}

int settings_true(const struct settings *s, const char *name)
{
  const char *value = settings_find(s, name);
  return value && !strcmp(value, "true");
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
