/* SPDX-License-Identifier: BSD-3-Clause
 * The file is one JSON object, and is read whole. */
#include "io/rates.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file_facts.h"
#include "base/json_reader.h"
#include "base/status.h"

enum { MAX_TEXT = 1 << 20 };

/* Bits for the required keys that were found. */
enum {
  SEEN_COMMAND = 1,
  SEEN_RANKS = 2,
  SEEN_THREADS = 4,
  SEEN_START = 8,
  SEEN_RATES = 16,
  SEEN_ALL = 31
};

/* A line of the list of rates: its name, the sizes at which the rate was measured, and the rate.
 * Its keys may have any order. */
struct line {
  char *name;
  double at[RATE_AXES];
  int axes;
  real rate;
};

static int at_read(struct json_reader *r, struct line *line)
{
  JSON_GOOD(r, json_sign(r, '['), "a list is missing");
  line->axes = 0;
  if (json_sign(r, ']')) return OK;
  do {
    JSON_GOOD(r, line->axes < RATE_AXES, "a point has too many sizes");
    TRY(json_decimal(r, &line->at[line->axes]));
    JSON_GOOD(r, line->at[line->axes] > 0, "a size is not above 0");
    line->axes++;
  } while (json_sign(r, ','));
  JSON_GOOD(r, json_sign(r, ']'), "a list does not end");
  return OK;
}

static int line_read(struct json_reader *r, struct line *line)
{
  char *key;
  int found;
  *line = (struct line){.axes = -1};
  JSON_GOOD(r, json_sign(r, '{'), "a rate is no object");
  do {
    TRY(json_key(r, &key));
    if (!strcmp(key, "name"))
      TRY(json_string(r, &line->name));
    else if (!strcmp(key, "at"))
      TRY(at_read(r, line));
    else if (!strcmp(key, "rate"))
      TRY(json_decimal(r, &line->rate));
    else
      TRY(json_skip(r, "", &found));
  } while (json_sign(r, ','));
  JSON_GOOD(r, json_sign(r, '}'), "a rate does not end");
  JSON_GOOD(r, line->name && line->axes >= 0 && line->rate > 0,
            "a rate has a name, a point and a number above 0");
  return OK;
}

static int axes_of(enum rate which)
{
  int axes = 0;
  while (axes < RATE_AXES && rate_rows[which].axes[axes]) axes++;
  return axes;
}

static int lines_read(struct json_reader *r, struct rates *rates)
{
  JSON_GOOD(r, json_sign(r, '['), "a list is missing");
  do {
    struct line line;
    int which = 0;
    TRY(line_read(r, &line));
    while (which < RATES && strcmp(rate_rows[which].name, line.name) != 0) which++;
    if (which == RATES) continue;
    JSON_GOOD(r, line.axes == axes_of((enum rate)which), "a point has another number of sizes");
    JSON_GOOD(r, rates_add(rates, (enum rate)which, line.at, line.rate),
              "there are too many rates");
  } while (json_sign(r, ','));
  JSON_GOOD(r, json_sign(r, ']'), "a list does not end");
  return OK;
}

static int text_copy(struct json_reader *r, char *to, size_t capacity)
{
  char *text;
  TRY(json_string(r, &text));
  snprintf(to, capacity, "%s", text);
  return OK;
}

static int number_copy(struct json_reader *r, idx *to)
{
  gidx number;
  TRY(json_number(r, &number));
  JSON_GOOD(r, number >= 1 && number <= 1 << 30, "a number is out of its range");
  *to = (idx)number;
  return OK;
}

/* Read an entry of the object.  *seen gets a bit for each required key. */
static int entry_read(struct json_reader *r, struct rates *rates, unsigned *seen)
{
  const struct {
    const char *key;
    char *to;
    size_t capacity;
  } texts[] = {
      {"version", rates->version, sizeof rates->version},
      {"revision", rates->revision, sizeof rates->revision},
      {"cpu", rates->cpu, sizeof rates->cpu},
      {"variant", rates->device, sizeof rates->device},
      {"device", rates->kind, sizeof rates->kind},
  };
  char *key, *text;
  int found;
  TRY(json_key(r, &key));
  for (int i = 0; i < LENGTH(texts); i++)
    if (!strcmp(key, texts[i].key)) return text_copy(r, texts[i].to, texts[i].capacity);
  if (!strcmp(key, "benchmark")) {
    TRY(json_string(r, &text));
    JSON_GOOD(r, !strcmp(text, "rates"), "these are not the rates of `sagitta-bench rates`");
    *seen |= SEEN_COMMAND;
    return OK;
  }
  if (!strcmp(key, "ranks")) {
    *seen |= SEEN_RANKS;
    return number_copy(r, &rates->ranks);
  }
  if (!strcmp(key, "threads")) {
    *seen |= SEEN_THREADS;
    return number_copy(r, &rates->threads);
  }
  if (!strcmp(key, "start_seconds")) {
    *seen |= SEEN_START;
    TRY(json_decimal(r, &rates->start));
    JSON_GOOD(r, rates->start >= 0, "a time is below 0");
    return OK;
  }
  if (!strcmp(key, "rates") && !(*seen & SEEN_RATES)) {
    *seen |= SEEN_RATES;
    return lines_read(r, rates);
  }
  return json_skip(r, "", &found);
}

static int object_read(struct json_reader *r, struct rates *rates)
{
  unsigned seen = 0;
  JSON_GOOD(r, json_sign(r, '{'), "there is no object");
  do {
    TRY(entry_read(r, rates, &seen));
  } while (json_sign(r, ','));
  JSON_GOOD(r, json_sign(r, '}'), "the object does not end");
  json_blanks(r);
  JSON_GOOD(r, !*r->at, "there is more behind the object");
  CHECK(seen == SEEN_ALL, ERR_INPUT,
        "'%s' is not what `sagitta-bench rates --json` prints: %s is missing", r->path,
        !(seen & SEEN_COMMAND)   ? "benchmark"
        : !(seen & SEEN_RANKS)   ? "ranks"
        : !(seen & SEEN_THREADS) ? "threads"
        : !(seen & SEEN_START)   ? "start_seconds"
                                 : "rates");
  enum rate broken = rates_broken(rates);
  CHECK(broken == RATES, ERR_INPUT,
        "the rates '%s' of '%s' are not those of a whole grid, in order", rate_rows[broken].name,
        r->path);
  return OK;
}

int rates_read(struct rates *r, const char *path)
{
  struct file_facts facts;
  *r = (struct rates){.count = 0};
  TRY(file_facts_of(path, &facts));
  CHECK(S_ISREG(facts.mode), ERR_IO, "cannot open '%s': it is not a regular file", path);
  FILE *file = fopen(path, "r");
  CHECK(file, ERR_IO, "cannot open '%s': %s", path, strerror(errno));
  char *text = malloc(MAX_TEXT + 1);
  size_t bytes = text ? fread(text, 1, MAX_TEXT + 1, file) : 0;
  int failed = ferror(file);
  fclose(file);
  int status = OK;
  if (!text)
    status = status_fail(ERR_MEMORY, __FILE__, __LINE__, "cannot allocate %d bytes", MAX_TEXT);
  else if (failed)
    status = status_fail(ERR_IO, __FILE__, __LINE__, "cannot read '%s'", path);
  else if (bytes > MAX_TEXT)
    status = status_fail(ERR_INPUT, __FILE__, __LINE__,
                         "'%s' has more bytes than `sagitta-bench rates --json` prints", path);
  if (!status) {
    struct json_reader reader = {.path = path, .part = "the text", .start = text, .at = text};
    text[bytes] = '\0';
    status = strlen(text) < bytes
                 ? status_fail(ERR_INPUT, __FILE__, __LINE__, "'%s' has a zero byte in it", path)
                 : object_read(&reader, r);
  }
  free(text);
  return status;
}
