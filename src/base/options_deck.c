/* SPDX-License-Identifier: BSD-3-Clause
 * Lines are read by getline(), so they have no length limit; keys are remembered, so that one that
 * is set twice is found. */
#include "base/options_deck.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/watchdog.h"

enum { MAX_KEYS = 256 };

struct deck {
  const char *path;
  char *keys[MAX_KEYS]; /* owned */
  int lines[MAX_KEYS];
  int n_keys, line;
};

static char *trim(char *text)
{
  while (isspace((unsigned char)*text)) text++;
  size_t length = strlen(text);
  while (length && isspace((unsigned char)text[length - 1])) text[--length] = '\0';
  return text;
}

/* Unquote, in place, a text that follows an opening quote: two quotes become one, and one ends the
 * text.  Returns what follows the closing quote, NULL where there is none. */
static char *quoted_clean(char *text)
{
  char *to = text;
  for (; *text; *to++ = *text++) {
    if (*text != '"') continue;
    text++;
    if (*text == '"') continue;
    *to = '\0';
    return text;
  }
  return NULL;
}

/* Strip a value of its comment and quotes, in place. */
static int value_clean(const struct deck *deck, char **value)
{
  char *text = trim(*value);
  if (*text == '"') {
    char *rest = quoted_clean(text + 1);
    CHECK(rest, ERR_USAGE, "%s:%d: a quote is not closed", deck->path, deck->line);
    rest = trim(rest);
    CHECK(!*rest || *rest == '#', ERR_USAGE, "%s:%d: text after the closing quote", deck->path,
          deck->line);
    *value = text + 1;
    return OK;
  }
  text[strcspn(text, "#")] = '\0';
  *value = trim(text);
  return OK;
}

static int key_remember(struct deck *deck, const char *key)
{
  for (int i = 0; i < deck->n_keys; i++)
    CHECK(strcmp(deck->keys[i], key) != 0, ERR_USAGE, "%s:%d: '%s' is set already in line %d",
          deck->path, deck->line, key, deck->lines[i]);
  CHECK(deck->n_keys < MAX_KEYS, ERR_USAGE, "%s:%d: more than %d keys", deck->path, deck->line,
        MAX_KEYS);
  deck->lines[deck->n_keys] = deck->line;
  deck->keys[deck->n_keys++] = strdup(key);
  return OK;
}

/* Refuse a data file that was given as a deck, without printing its bytes to the terminal. */
static int text_check(const struct deck *deck, const char *line, size_t length)
{
  for (size_t i = 0; i < length; i++) {
    unsigned char byte = (unsigned char)line[i], before = i ? (unsigned char)line[i - 1] : 0;
    int is_control = iscntrl(byte) && !isspace(byte);
    int is_stray = (byte & 0xc0) == 0x80 && before < 0x80; /* not UTF-8 */
    CHECK(!is_control && !is_stray, ERR_USAGE,
          "%s:%d: this is not text: a deck has lines like `rows = acts.h5`", deck->path,
          deck->line);
  }
  return OK;
}

static int line_read(struct deck *deck, char *line,
                     int (*entry)(void *, const char *, const char *, const char *), void *self)
{
  char *key = trim(line);
  if (!*key || *key == '#') return OK;
  char *value = strchr(key, '=');
  CHECK(value && value != key, ERR_USAGE, "%s:%d: '%.40s' is not `key = value`", deck->path,
        deck->line, key);
  *value++ = '\0';
  key = trim(key);
  TRY(value_clean(deck, &value));
  CHECK(*value, ERR_USAGE, "%s:%d: '%s' has no value", deck->path, deck->line, key);
  TRY(key_remember(deck, key));
  char where[512];
  snprintf(where, sizeof where, "%s:%d", deck->path, deck->line);
  TRY(entry(self, where, key, strdup(value)));
  return OK;
}

/* getline() as a step of the watchdog. */
static ssize_t line_fetch(const char *path, char **line, size_t *capacity, FILE *file)
{
  int step = watchdog_begin(ERR_IO, "reading", path);
  ssize_t length = getline(line, capacity, file);
  watchdog_end(step);
  return length;
}

int deck_read(const char *path,
              int (*entry)(void *self, const char *where, const char *key, const char *value),
              void *self)
{
  int step = watchdog_begin(ERR_IO, "opening", path);
  FILE *file = fopen(path, "r");
  watchdog_end(step);
  CHECK(file, ERR_IO, "cannot open deck '%s': %s", path, strerror(errno));
  struct deck deck = {.path = path};
  char *line = NULL;
  size_t capacity = 0;
  int status = OK;
  errno = 0;
  for (ssize_t length; !status && (length = line_fetch(path, &line, &capacity, file)) >= 0;) {
    char *text = line;
    deck.line++;
    if (deck.line == 1 && strncmp(text, "\xef\xbb\xbf", 3) == 0)
      text += 3; /* the byte order mark of some editors */
    status = text_check(&deck, line, (size_t)length);
    if (!status) status = line_read(&deck, text, entry, self);
  }
  int broken = !status && ferror(file) ? errno : 0;
  free(line);
  fclose(file);
  for (int i = 0; i < deck.n_keys; i++) free(deck.keys[i]);
  TRY(status);
  CHECK(!broken, ERR_IO, "cannot read deck '%s': %s", path, strerror(broken));
  return OK;
}

void deck_value_write(const char *value, FILE *out)
{
  size_t length = strlen(value);
  int blank = isspace((unsigned char)value[0]) || isspace((unsigned char)value[length - 1]);
  if (!blank && value[0] != '"' && !strchr(value, '#')) {
    fputs(value, out);
    return;
  }
  fputc('"', out);
  for (; *value; value++) fputs(*value == '"' ? "\"\"" : (char[2]){*value}, out);
  fputc('"', out);
}
