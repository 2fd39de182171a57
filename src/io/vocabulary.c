/* SPDX-License-Identifier: BSD-3-Clause
 * The file is read whole, and words are parts of it; those of JSON are decoded where they stand. */
#include "io/vocabulary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_reader.h"
#include "base/log.h"
#include "base/num.h"
#include "base/status.h"
#include "io/flat_file.h"

enum { MAX_BYTES = 1 << 30, MAX_TOKEN = 1 << 28 };

/* Let v have n words at least; new ones are NULL. */
static int words_reserve(struct vocabulary *v, gidx *capacity, gidx n)
{
  if (n <= *capacity) return OK;
  gidx more = imax(n, 2 * *capacity + 1024);
  char **word = realloc(v->word, (size_t)more * sizeof *word);
  CHECK(word, ERR_MEMORY, "cannot allocate %lld words", (long long)more);
  memset(word + *capacity, 0, (size_t)(more - *capacity) * sizeof *word);
  v->word = word;
  *capacity = more;
  return OK;
}

/* Blanks that would end a line of a page become \n, \r and \t. */
static int word_add(struct vocabulary *v, gidx *capacity, gidx token, const char *word)
{
  static const char blanks[] = "\n\r\t", letters[] = "nrt";
  TRY(words_reserve(v, capacity, token + 1));
  free(v->word[token]);
  char *to = v->word[token] = malloc(2 * strlen(word) + 1);
  CHECK(to, ERR_MEMORY, "cannot allocate %zu bytes", strlen(word));
  v->n = imax(v->n, token + 1);
  for (; *word; word++) {
    const char *blank = strchr(blanks, *word);
    if (blank) *to++ = '\\';
    *to++ = blank ? letters[blank - blanks] : *word;
  }
  *to = '\0';
  return OK;
}

static int lines_read(struct vocabulary *v, char *text)
{
  gidx capacity = 0;
  v->is_text = 1;
  for (char *line; (line = strsep(&text, "\n"));) {
    if (!text && !*line) break; /* behind the last line feed */
    line[strcspn(line, "\r")] = '\0';
    TRY(word_add(v, &capacity, v->n, line));
  }
  return OK;
}

/* Does a text begin as JSON does, and not as a word such as "[PAD]"? */
static int is_json(const char *text)
{
  static const char blanks[] = " \t\r\n";
  text += strspn(text, blanks);
  if (*text != '{' && *text != '[') return 0;
  text += 1 + strspn(text + 1, blanks);
  const char *end = text + strlen(text);
  while (end > text && strchr(blanks, end[-1])) end--;
  return *text == '"' && end > text && (end[-1] == '}' || end[-1] == ']');
}

static int object_read(struct vocabulary *v, struct json_reader *r)
{
  gidx capacity = 0, token;
  char *word;
  do {
    TRY(json_key(r, &word));
    TRY(json_number(r, &token));
    JSON_GOOD(r, token < MAX_TOKEN, "a number is too large");
    TRY(word_add(v, &capacity, token, word));
  } while (json_sign(r, ','));
  JSON_GOOD(r, json_sign(r, '}'), "an object does not end");
  return OK;
}

static int list_read(struct vocabulary *v, struct json_reader *r)
{
  gidx capacity = 0;
  char *word;
  do {
    TRY(json_string(r, &word));
    TRY(word_add(v, &capacity, v->n, word));
  } while (json_sign(r, ','));
  JSON_GOOD(r, json_sign(r, ']'), "a list does not end");
  return OK;
}

static int json_read(struct vocabulary *v, const char *path, char *text)
{
  struct json_reader r = {path, "the text", text, text, 0};
  int status = json_sign(&r, '{') ? object_read(v, &r) : (r.at++, list_read(v, &r));
  if (!status || status == ERR_MEMORY) return status;
  gidx at = r.at - r.start;
  status_clear();
  FAIL(ERR_INPUT,
       "'%s' is JSON, but neither a list of words nor an object that gives each word its number, "
       "from byte %lld on: of a tokenizer.json take \"vocab\" alone",
       path, (long long)at);
}

static int text_read(struct vocabulary *v, const struct flat_file *f)
{
  gidx bytes = f->input->facts.size;
  CHECK(bytes <= MAX_BYTES, ERR_INPUT, "'%s' has %lld bytes: a vocabulary has at most %d", f->path,
        (long long)bytes, MAX_BYTES);
  char *text = calloc(1, (size_t)bytes + 1);
  CHECK(text, ERR_MEMORY, "cannot allocate %lld bytes", (long long)bytes);
  int status = bytes ? flat_bytes(f, 0, (size_t)bytes, text) : OK;
  if (!status && strlen(text) < (size_t)bytes)
    status =
        status_fail(ERR_INPUT, __FILE__, __LINE__,
                    "'%s' is not text: a vocabulary has a word in each line, or is JSON", f->path);
  if (!status) status = is_json(text) ? json_read(v, f->path, text) : lines_read(v, text);
  free(text);
  return status;
}

int vocabulary_read(struct vocabulary *v, const char *path)
{
  struct flat_file f = {0};
  *v = (struct vocabulary){0};
  TRY(flat_open(&f, path));
  int status = text_read(v, &f);
  int closed = flat_close(&f);
  return status ? status : closed;
}

void vocabulary_free(struct vocabulary *v)
{
  for (gidx i = 0; i < v->n; i++) free(v->word[i]);
  free(v->word);
  *v = (struct vocabulary){0};
}

int vocabulary_note(struct vocabulary_use *u, const struct vocabulary *v, const gidx *token,
                    gidx count)
{
  if (!u->seen) u->seen = calloc((size_t)v->n + 1, 1);
  CHECK(u->seen, ERR_MEMORY, "cannot allocate %lld bytes", (long long)v->n);
  for (gidx i = 0; i < count; i++) {
    gidx t = token[i];
    u->last = imax(u->last, t);
    if (t < 0 || t >= v->n || (v->word[t] && *v->word[t]) || u->seen[t]) continue;
    u->seen[t] = 1;
    u->first_empty = u->empty ? imin(u->first_empty, t) : t;
    u->empty++;
  }
  return OK;
}

/* Has it words for few of its tokens, by design?  Then an empty line is no word that was torn. */
static int is_sparse(const struct vocabulary *v)
{
  gidx empty = 0;
  for (gidx i = 0; i < v->n; i++) empty += !v->word[i] || !*v->word[i];
  return 2 * empty > v->n;
}

void vocabulary_warn(const struct vocabulary_use *u, const struct vocabulary *v, const char *path)
{
  if (u->empty && v->is_text && !is_sparse(v))
    log_warn("%lld of the rows' tokens have an empty line in '%s', token %lld first: a word that "
             "is a line feed takes two lines, and shifts all behind it; write it as \\n, or give "
             "the words in JSON",
             (long long)u->empty, path, (long long)u->first_empty);
  if (u->last >= v->n)
    log_warn("rows have token %lld, and '%s' has %lld words: is it the vocabulary of these rows?",
             (long long)u->last, path, (long long)v->n);
}
