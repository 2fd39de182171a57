/* SPDX-License-Identifier: BSD-3-Clause
 * The file is read whole, and its words are copied.  Texts in JSON are decoded in place first.
 *
 * Tokenizers mark in their words where blanks are.  The words kept here use the marks of WordPiece:
 * "##" in front of a word that continues the previous one; all other words follow a blank. */
#include "io/vocabulary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_reader.h"
#include "base/log.h"
#include "base/num.h"
#include "base/status.h"
#include "base/text.h"
#include "io/flat_file.h"

enum { MAX_BYTES = 1 << 30, MAX_TOKEN = 1 << 28 };

/* Make space for at least n words in v.  New ones are NULL. */
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

/* Set the word of a token.  Line feeds, returns and tabs become \n, \r and \t, because they would
 * break the lines of a page. */
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
    if (!text && !*line) break; /* nothing follows the last line feed */
    line[strcspn(line, "\r")] = '\0';
    TRY(word_add(v, &capacity, v->n, line));
  }
  return OK;
}

/* Do the beginning and the end of a text look like JSON, and not like a word such as "[PAD]"? */
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

/* The data of a tokenizer.json besides the words and their numbers. */
struct tokenizer {
  struct vocabulary added; /* words without marks */
  gidx capacity;           /* number of words for which v has space */
  gidx added_capacity;     /* number of words for which `added` has space */
  int has_words, has_parts, has_model, is_bytes;
};

static int entry_read(struct vocabulary *v, struct tokenizer *t, struct json_reader *r,
                      const char *word)
{
  gidx token;
  TRY(json_number(r, &token));
  JSON_GOOD(r, token < MAX_TOKEN, "a number is too large");
  return word_add(v, &t->capacity, token, word);
}

/* Read the rest of an object whose keys are words and whose values are their numbers. */
static int entries_read(struct vocabulary *v, struct tokenizer *t, struct json_reader *r)
{
  char *word;
  do {
    TRY(json_key(r, &word));
    TRY(entry_read(v, t, r, word));
  } while (json_sign(r, ','));
  JSON_GOOD(r, json_sign(r, '}'), "an object does not end");
  return OK;
}

/* Read the rest of a list of words.  With `scored` the items are pairs of word and score, as
 * Unigram has them. */
static int list_read(struct vocabulary *v, struct tokenizer *t, struct json_reader *r, int scored)
{
  char *word;
  int found;
  do {
    JSON_GOOD(r, !scored || json_sign(r, '['), "a word with its score is expected");
    TRY(json_string(r, &word));
    TRY(word_add(v, &t->capacity, v->n, word));
    if (!scored) continue;
    JSON_GOOD(r, json_sign(r, ','), "a score is missing");
    TRY(json_skip(r, "", &found));
    JSON_GOOD(r, json_sign(r, ']'), "a list does not end");
  } while (json_sign(r, ','));
  JSON_GOOD(r, json_sign(r, ']'), "a list does not end");
  return OK;
}

static int model_read(struct vocabulary *v, struct tokenizer *t, struct json_reader *r)
{
  char *key;
  int found;
  JSON_GOOD(r, json_sign(r, '{'), "a model is expected");
  do {
    TRY(json_key(r, &key));
    if (strcmp(key, "vocab") != 0) {
      TRY(json_skip(r, "", &found));
      continue;
    }
    JSON_GOOD(r, !t->has_model, "a second vocab");
    t->has_model = 1;
    if (json_sign(r, '{')) {
      TRY(entries_read(v, t, r));
    } else {
      JSON_GOOD(r, json_sign(r, '['), "a vocab is expected");
      TRY(list_read(v, t, r, 1));
    }
  } while (json_sign(r, ','));
  JSON_GOOD(r, json_sign(r, '}'), "an object does not end");
  return OK;
}

static int added_read(struct tokenizer *t, struct json_reader *r)
{
  char *key, *content = NULL;
  gidx token = -1;
  int found;
  JSON_GOOD(r, json_sign(r, '{'), "a token is expected");
  do {
    TRY(json_key(r, &key));
    if (!strcmp(key, "id")) {
      TRY(json_number(r, &token));
    } else if (!strcmp(key, "content")) {
      TRY(json_string(r, &content));
    } else {
      TRY(json_skip(r, "", &found));
    }
  } while (json_sign(r, ','));
  JSON_GOOD(r, json_sign(r, '}'), "an object does not end");
  JSON_GOOD(r, content && token >= 0 && token < MAX_TOKEN, "a token lacks its id or content");
  return word_add(&t->added, &t->added_capacity, token, content);
}

static int part_read(struct vocabulary *v, struct tokenizer *t, struct json_reader *r,
                     const char *key)
{
  int found = 0;
  t->has_parts = 1;
  if (!strcmp(key, "model")) return model_read(v, t, r);
  if (strcmp(key, "added_tokens") != 0) {
    int is_for_bytes = !strcmp(key, "pre_tokenizer") || !strcmp(key, "decoder");
    TRY(json_skip(r, "ByteLevel", &found));
    t->is_bytes |= found && is_for_bytes;
    return OK;
  }
  JSON_GOOD(r, json_sign(r, '['), "a list of tokens is expected");
  if (json_sign(r, ']')) return OK;
  do {
    TRY(added_read(t, r));
  } while (json_sign(r, ','));
  JSON_GOOD(r, json_sign(r, ']'), "a list does not end");
  return OK;
}

/* Read the rest of an object: a tokenizer.json, or words with their numbers. */
static int object_read(struct vocabulary *v, struct tokenizer *t, struct json_reader *r)
{
  char *key;
  do {
    TRY(json_key(r, &key));
    json_blanks(r);
    if (*r->at >= '0' && *r->at <= '9') {
      t->has_words = 1;
      TRY(entry_read(v, t, r, key));
    } else {
      TRY(part_read(v, t, r, key));
    }
  } while (json_sign(r, ','));
  JSON_GOOD(r, json_sign(r, '}'), "an object does not end");
  JSON_GOOD(r, t->has_words != t->has_parts && t->has_model == t->has_parts,
            "a model that has a vocab is missing");
  return OK;
}

/* The byte that a character of a byte-level vocabulary stands for, as in GPT-2: printable bytes
 * stand for themselves, the others have the codes from 256 on. -1: none. */
static int byte_of(unsigned code)
{
  unsigned other = 256;
  for (unsigned b = 0; b < 256; b++) {
    int prints = (b > 32 && b < 127) || (b > 160 && b != 173);
    if (code == (prints ? b : other)) return (int)b;
    other += !prints;
  }
  return -1;
}

/* Returns how many bytes of the UTF-8 character at `at` are present.  *whole <- are these all of
 * its bytes? */
static size_t part_of_character(const unsigned char *at, size_t left, int *whole)
{
  /* The smallest first bytes of: 1 byte, no character, 2, 3, 4 bytes, no character. */
  static const unsigned char first[] = {0, 0x80, 0xc2, 0xe0, 0xf0, 0xf5};
  static const size_t lengths[] = {1, 0, 2, 3, 4, 0};
  int kind = LENGTH(first) - 1;
  while (*at < first[kind]) kind--;
  size_t n = 1, bytes = lengths[kind];
  unsigned code;
  while (n < bytes && n < left && (at[n] & 0xc0) == 0x80) n++;
  *whole = *at && n == bytes && text_character((const char *)at, &code) == (int)bytes;
  return n;
}

/* to <- the bytes as UTF-8.  Bytes that are not valid become U+FFFD. `to` needs space for 3 n + 1
 * bytes. */
static void utf8_make(const unsigned char *bytes, size_t n, char *to)
{
  for (size_t i = 0, length; i < n; i += length) {
    int whole;
    length = part_of_character(bytes + i, n - i, &whole);
    memcpy(to, whole ? (const char *)bytes + i : "\xef\xbf\xbd", whole ? length : 3);
    to += whole ? length : 3;
  }
  *to = '\0';
}

/* to <- a word of a byte-level vocabulary, as text.  A word with other characters is copied. */
static void bytes_spell(const char *word, char *to)
{
  const char *all = word;
  unsigned char *bytes = (unsigned char *)to + 3 * strlen(word) + 1, *end = bytes;
  unsigned code;
  for (int length; *word; word += length) {
    length = text_character(word, &code);
    int byte = length > 0 ? byte_of(code) : -1;
    if (byte < 0) {
      strcpy(to, all);
      return;
    }
    *end++ = (unsigned char)byte;
  }
  *end = 0;
  utf8_make(bytes, (size_t)(end - bytes), to);
}

/* to <- a piece of SentencePiece, as text: U+2581 is a blank, and <0x0A> a byte. */
static void piece_spell(const char *word, char *to)
{
  static const char blank[] = "\xe2\x96\x81";
  if (!strncmp(word, "<0x", 3) && strspn(word + 3, "0123456789ABCDEF") == 2 &&
      !strcmp(word + 5, ">")) {
    const unsigned char byte[] = {(unsigned char)strtoul(word + 3, NULL, 16), 0};
    utf8_make(byte, 1, to);
    return;
  }
  while (*word) {
    int is_blank = !strncmp(word, blank, sizeof blank - 1);
    *to++ = is_blank ? ' ' : *word;
    word += is_blank ? sizeof blank - 1 : 1;
  }
  *to = '\0';
}

typedef void speller(const char *word, char *to);

static speller *speller_of(const struct vocabulary *v, int is_bytes)
{
  int has_blanks = 0;
  for (gidx i = 0; i < v->n; i++) {
    const char *word = v->word[i] ? v->word[i] : "";
    is_bytes |= !strncmp(word, "\xc4\xa0", 2) || !strncmp(word, "\xc4\x8a", 2); /* " ", "\n" */
    has_blanks |= strstr(word, "\xe2\x96\x81") != NULL;
  }
  return is_bytes ? bytes_spell : has_blanks ? piece_spell : NULL;
}

/* Set the word of token i to a text that contains its blanks: a blank in front, or none if it
 * continues the word before it. */
static int text_set(struct vocabulary *v, gidx *capacity, gidx i, const char *text)
{
  int is_apart = text[0] == ' ' && text[1] && text[1] != ' ' && strncmp(text + 1, "##", 2) != 0;
  size_t bytes = strlen(text) + 3;
  char *word = malloc(bytes);
  CHECK(word, ERR_MEMORY, "cannot allocate %zu bytes", bytes);
  snprintf(word, bytes, "%s%s", is_apart || !*text ? "" : "##", text + is_apart);
  int status = word_add(v, capacity, i, word);
  free(word);
  return status;
}

static int word_spell(struct vocabulary *v, struct tokenizer *t, gidx i, speller *spell)
{
  size_t bytes = 4 * strlen(v->word[i]) + 8; /* up to three bytes of text per byte of the word, then
                                              * the bytes that it stands for */
  char *text = malloc(bytes);
  CHECK(text, ERR_MEMORY, "cannot allocate %zu bytes", bytes);
  spell(v->word[i], text);
  int status = text_set(v, &t->capacity, i, text);
  free(text);
  return status;
}

/* Convert the words of a tokenizer to texts with the marks explained at the top. */
static int words_spell(struct vocabulary *v, struct tokenizer *t)
{
  speller *spell = speller_of(v, t->is_bytes);
  for (gidx i = 0; i < v->n; i++)
    if (spell && v->word[i]) TRY(word_spell(v, t, i, spell));
  for (gidx i = 0; i < t->added.n; i++)
    if (t->added.word[i]) TRY(text_set(v, &t->capacity, i, t->added.word[i]));
  return OK;
}

static int json_read(struct vocabulary *v, const char *path, char *text)
{
  struct json_reader r = {path, "the text", text, text, 0};
  struct tokenizer t = {0};
  int status = json_sign(&r, '{') ? object_read(v, &t, &r) : (r.at++, list_read(v, &t, &r, 0));
  gidx at = r.at - r.start;
  if (!status) status = words_spell(v, &t);
  vocabulary_free(&t.added);
  if (!status || status == ERR_MEMORY) return status;
  status_clear();
  FAIL(ERR_INPUT,
       "'%s' is JSON, but neither a list of words, nor an object that gives each word its number, "
       "nor a tokenizer.json with \"model\" and its \"vocab\", from byte %lld on",
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

/* Do more than half of the tokens have no word?  Then empty lines are intended, and are no words
 * that contained a line feed. */
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
             "is a line feed takes two lines, and shifts all words after it; write it as \\n, or "
             "give the words in JSON",
             (long long)u->empty, path, (long long)u->first_empty);
  if (u->last >= v->n)
    log_warn("rows have token %lld, and '%s' has %lld words: is it the vocabulary of these rows?",
             (long long)u->last, path, (long long)v->n);
}
