/* SPDX-License-Identifier: BSD-3-Clause
 * getline, so that lines have no length limit; keys seen are remembered to find doubles. */
#include "base/options_deck.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

enum { KEYS_MOST = 256 };

struct deck {
  const char *path;
  char *keys[KEYS_MOST]; /* owned */
  int lines[KEYS_MOST];
  int n_keys, line;
};

static char *trim(char *text)
{
  while (isspace((unsigned char)*text)) text++;
  size_t length = strlen(text);
  while (length && isspace((unsigned char)text[length - 1])) text[--length] = '\0';
  return text;
}

/* Cut a value from its comment and quotes, in place. */
static int value_clean(const struct deck *deck, char **value)
{
  char *text = trim(*value);
  if (*text == '"') {
    char *end = strchr(text + 1, '"');
    CHECK(end, ERR_USAGE, "%s:%d: a quote is not closed", deck->path, deck->line);
    char *rest = end + 1;
    *end = '\0';
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
  CHECK(deck->n_keys < KEYS_MOST, ERR_USAGE, "%s:%d: more than %d keys", deck->path, deck->line,
        KEYS_MOST);
  deck->lines[deck->n_keys] = deck->line;
  deck->keys[deck->n_keys++] = strdup(key);
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

int deck_read(const char *path,
              int (*entry)(void *self, const char *where, const char *key, const char *value),
              void *self)
{
  FILE *file = fopen(path, "r");
  CHECK(file, ERR_IO, "cannot open deck '%s': %s", path, strerror(errno));
  struct deck deck = {.path = path};
  char *line = NULL;
  size_t room = 0;
  int status = OK;
  errno = 0;
  while (!status && getline(&line, &room, file) >= 0) {
    deck.line++;
    status = line_read(&deck, line, entry, self);
  }
  int broken = !status && ferror(file) ? errno : 0;
  free(line);
  fclose(file);
  for (int i = 0; i < deck.n_keys; i++) free(deck.keys[i]);
  TRY(status);
  CHECK(!broken, ERR_IO, "cannot read deck '%s': %s", path, strerror(broken));
  return OK;
}

const char *deck_quote(const char *value)
{
  size_t length = strlen(value);
  int blank = isspace((unsigned char)value[0]) || isspace((unsigned char)value[length - 1]);
  return blank || strchr(value, '#') ? "\"" : "";
}
