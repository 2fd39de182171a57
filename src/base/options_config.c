/* SPDX-License-Identifier: BSD-3-Clause
 * A deck is read whole, so that rank 0 can broadcast it.  Keys are remembered, to find one that is
 * set twice. */
#include "base/options_config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_facts.h"
#include "base/retry.h"
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

/* Unquote, in place, a text after its opening quote: two quotes become one, and a single quote ends
 * the text.  Returns the rest after the closing quote; NULL if there is no closing quote. */
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

/* Remove comment and quotes from a value, in place. */
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

/* *earlier <- the line that set the key before; 0: none. */
static int key_remember(struct deck *deck, const char *key, int *earlier)
{
  *earlier = 0;
  for (int i = 0; i < deck->n_keys && !*earlier; i++)
    if (strcmp(deck->keys[i], key) == 0) *earlier = deck->lines[i];
  if (*earlier) return OK;
  CHECK(deck->n_keys < MAX_KEYS, ERR_USAGE, "%s:%d: more than %d keys", deck->path, deck->line,
        MAX_KEYS);
  char *kept = strdup(key);
  CHECK(kept, ERR_MEMORY, "cannot allocate the keys of '%s'", deck->path);
  deck->lines[deck->n_keys] = deck->line;
  deck->keys[deck->n_keys++] = kept;
  return OK;
}

int config_is_text(const char *bytes, size_t length)
{
  for (size_t i = 0; i < length; i++) {
    unsigned char byte = (unsigned char)bytes[i], before = i ? (unsigned char)bytes[i - 1] : 0;
    int is_control = iscntrl(byte) && !isspace(byte);
    int is_stray = (byte & 0xc0) == 0x80 && before < 0x80; /* not UTF-8 */
    if (is_control || is_stray) return 0;
  }
  return 1;
}

/* Refuse a data file that was given as a deck, without printing its bytes to the terminal. */
static int text_check(const struct deck *deck, const char *line, size_t length)
{
  CHECK(config_is_text(line, length), ERR_USAGE,
        "%s:%d: this is not text: a deck has lines like `rows = acts.h5`; data are named by an "
        "option, several files by a pattern in quotes, as in `--rows 'acts/*.h5'`",
        deck->path, deck->line);
  return OK;
}

static int line_read(struct deck *deck, char *line,
                     int (*entry)(void *, const struct config_entry *), void *self)
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
  char where[512];
  snprintf(where, sizeof where, "%s:%d", deck->path, deck->line);
  struct config_entry e = {where, key, strdup(value), 0};
  CHECK(e.value, ERR_MEMORY, "cannot allocate the values of '%s'", deck->path);
  TRY(key_remember(deck, key, &e.earlier));
  TRY(entry(self, &e));
  return OK;
}

/* Fail because the text is too long; the message depends on whether it is text. */
static int length_fail(const char *path, const char *text)
{
  const char *end = memchr(text, '\n', MAX_DECK);
  size_t first = end ? (size_t)(end - text) : MAX_DECK;
  TRY(text_check(&(struct deck){.path = path, .line = 1}, text, first));
  FAIL(ERR_USAGE, "deck '%s' has more than %d bytes", path, MAX_DECK - 1);
}

/* Read to the end.  A pipe has no facts that could show a change. */
static int file_read(int file, const char *path, char *text, size_t *length)
{
  struct file_facts facts;
  TRY(file_facts_take(file, path, &facts));
  ssize_t got = 1;
  for (*length = 0; got > 0; *length += (size_t)got) {
    if (*length == MAX_DECK) return length_fail(path, text);
    int step = watchdog_begin(ERR_IO, "reading", path);
    do got = read(file, text + *length, MAX_DECK - *length);
    while (got < 0 && errno == EINTR);
    watchdog_end(step);
    CHECK(got >= 0 || errno != EISDIR, ERR_IO,
          "cannot read deck '%s': it is a folder, and folders are named by an option, as in "
          "`--rows %s`",
          path, path);
    CHECK(got >= 0, ERR_IO, "cannot read deck '%s': %s", path, strerror(errno));
  }
  return S_ISREG(facts.mode) ? file_facts_check(file, path, &facts) : OK;
}

int config_read(const char *path, char *text, size_t *length)
{
  int step = watchdog_begin(ERR_IO, "opening", path), file = retry_open(path, O_RDONLY | O_CLOEXEC);
  watchdog_end(step);
  CHECK(file >= 0, ERR_IO, "cannot open deck '%s': %s", path, strerror(errno));
  int status = file_read(file, path, text, length);
  close(file);
  return status;
}

int config_parse(const char *path, const char *text, size_t length,
                 int (*entry)(void *self, const struct config_entry *e), void *self)
{
  struct deck deck = {.path = path};
  char *copy = malloc(length + 1);
  CHECK(copy, ERR_MEMORY, "cannot allocate %zu bytes", length + 1);
  memcpy(copy, text, length);
  copy[length] = '\0';
  int status = OK;
  size_t next = strncmp(copy, "\xef\xbb\xbf", 3) == 0 ? 3 : 0; /* skip a byte order mark */
  while (next < length && !status) {
    char *line = copy + next, *end = memchr(line, '\n', length - next);
    size_t bytes = end ? (size_t)(end - line) : length - next;
    line[bytes] = '\0';
    next += bytes + 1;
    deck.line++;
    status = text_check(&deck, line, bytes);
    if (!status) status = line_read(&deck, line, entry, self);
  }
  free(copy);
  for (int i = 0; i < deck.n_keys; i++) free(deck.keys[i]);
  return status;
}

void config_value_write(const char *value, size_t length, FILE *out)
{
  int blank = isspace((unsigned char)value[0]) || isspace((unsigned char)value[length - 1]);
  if (!blank && value[0] != '"' && !memchr(value, '#', length)) {
    fwrite(value, 1, length, out);
    return;
  }
  fputc('"', out);
  for (size_t i = 0; i < length; i++) fputs(value[i] == '"' ? "\"\"" : (char[2]){value[i]}, out);
  fputc('"', out);
}
