/* SPDX-License-Identifier: BSD-3-Clause
 * Texts are decoded in place: a decoded text is never longer than its source. */
#include "base/json_reader.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

void json_blanks(struct json_reader *r)
{
  r->at += strspn(r->at, " \t\r\n");
}

int json_sign(struct json_reader *r, char sign)
{
  json_blanks(r);
  int is_there = *r->at == sign;
  r->at += is_there;
  return is_there;
}

/* Read four hexadecimal digits; -1: there are fewer. */
static int digits_read(struct json_reader *r)
{
  static const char digits[] = "0123456789abcdef0123456789ABCDEF";
  int code = 0;
  for (int i = 0; i < 4; i++, r->at++) {
    const char *digit = *r->at ? strchr(digits, *r->at) : NULL;
    if (!digit) return -1;
    code = code << 4 | (int)((digit - digits) & 15);
  }
  return code;
}

/* Read the character of \uXXXX, which may take two escapes; write it in UTF-8. */
static int unicode_read(struct json_reader *r, char **out)
{
  int code = digits_read(r);
  JSON_GOOD(r, code > 0, "an escape is not \\u and four hexadecimal digits");
  if (code >= 0xd800 && code < 0xdc00) {
    int second = r->at[0] == '\\' && r->at[1] == 'u' ? (r->at += 2, digits_read(r)) : -1;
    JSON_GOOD(r, second >= 0xdc00 && second < 0xe000, "half of a pair");
    code = 0x10000 + ((code - 0xd800) << 10) + (second - 0xdc00);
  }
  JSON_GOOD(r, code < 0xdc00 || code >= 0xe000, "half of a pair");
  int bytes = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  static const int marks[] = {0, 0, 0xc0, 0xe0, 0xf0};
  for (int i = bytes - 1; i > 0; i--, code >>= 6) (*out)[i] = (char)(0x80 | (code & 0x3f));
  (*out)[0] = (char)(marks[bytes] | code);
  *out += bytes;
  return OK;
}

static int escape_read(struct json_reader *r, char **out)
{
  static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
  char letter = *r->at++;
  if (letter == 'u') return unicode_read(r, out);
  const char *known = letter ? strchr(letters, letter) : NULL;
  JSON_GOOD(r, known, "an unknown escape");
  *(*out)++ = meanings[known - letters];
  return OK;
}

int json_string(struct json_reader *r, char **text)
{
  JSON_GOOD(r, json_sign(r, '"'), "a text is missing");
  char *out = *text = r->at;
  while (*r->at != '"') {
    unsigned code;
    int bytes = text_character(r->at, &code);
    JSON_GOOD(r, bytes > 0 && code >= 0x20, "a text does not end, or is not UTF-8");
    if (code == '\\') {
      r->at++;
      TRY(escape_read(r, &out));
      continue;
    }
    memmove(out, r->at, (size_t)bytes);
    out += bytes;
    r->at += bytes;
  }
  r->at++;
  *out = '\0';
  return OK;
}

int json_number(struct json_reader *r, gidx *number)
{
  json_blanks(r);
  size_t digits = strspn(r->at, "0123456789");
  JSON_GOOD(r, digits >= 1 && digits <= 18 && (digits == 1 || *r->at != '0'),
            "a number is expected");
  *number = strtoll(r->at, NULL, 10);
  r->at += digits;
  return OK;
}

int json_decimal(struct json_reader *r, real *number)
{
  json_blanks(r);
  size_t length = strspn(r->at, "+-.0123456789eE");
  char *end = r->at;
  *number = length ? strtod(r->at, &end) : 0;
  JSON_GOOD(r, length && end == r->at + length && isfinite(*number), "a number is expected");
  r->at = end;
  return OK;
}

int json_key(struct json_reader *r, char **key)
{
  TRY(json_string(r, key));
  JSON_GOOD(r, json_sign(r, ':'), "there is no colon behind a key");
  return OK;
}

/* Skip a string, a number, a name such as null, or the end of an object or array.  Then skip a
 * colon after a string; otherwise, inside an object or array, a comma. */
static int part_skip(struct json_reader *r, const char *word, int *found, int *depth)
{
  char *text;
  json_blanks(r);
  if (*r->at == '"') {
    TRY(json_string(r, &text));
    if (!strcmp(text, word)) *found = 1;
    if (json_sign(r, ':')) return OK;
  } else if (*r->at == '}' || *r->at == ']') {
    r->at++;
    --*depth;
  } else {
    size_t length = strcspn(r->at, " \t\r\n,:{}[]\"");
    JSON_GOOD(r, length, "a value is expected");
    r->at += length;
  }
  if (*depth > 0) json_sign(r, ',');
  return OK;
}

int json_skip(struct json_reader *r, const char *word, int *found)
{
  int depth = 0;
  json_blanks(r);
  JSON_GOOD(r, *r->at && !strchr("}],:", *r->at), "a value is expected");
  do {
    if (json_sign(r, '{') || json_sign(r, '[')) {
      depth++;
      continue;
    }
    TRY(part_skip(r, word, found, &depth));
  } while (depth > 0);
  return OK;
}

int json_keys_add(struct json_keys *k, const char *key)
{
  if (k->count == k->capacity) {
    gidx capacity = 2 * k->capacity + 16;
    const char **list = realloc(k->list, (size_t)capacity * sizeof *list);
    CHECK(list, ERR_MEMORY, "cannot allocate %lld names", (long long)capacity);
    k->list = list;
    k->capacity = capacity;
  }
  k->list[k->count++] = key;
  return OK;
}

static int key_order(const void *a, const void *b)
{
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char *json_keys_twice(struct json_keys *k)
{
  if (k->count > 0) qsort(k->list, (size_t)k->count, sizeof *k->list, key_order);
  for (gidx i = 1; i < k->count; i++)
    if (!strcmp(k->list[i - 1], k->list[i])) return k->list[i];
  return NULL;
}

void json_keys_free(struct json_keys *k)
{
  free(k->list);
  *k = (struct json_keys){0};
}
