/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: an old name of an option sets the option, on the command line and in a deck, but not
 * together with the new name.  Lines of options have the new names, and leave out options with a
 * given flag. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/options_write.h"
#include "base/status.h"
#include "tap.h"

struct values {
  int rows, threads;
  const char *name;
};

static const struct option_row rows[] = {
    {"rows", OPTION_INT, offsetof(struct values, rows), "7", 0, 100, NULL, "COUNT", "rows",
     .effect = OPTION_BITS, .alias = "lines"},
    {"threads", OPTION_INT, offsetof(struct values, threads), "1", 0, 9, NULL, "COUNT", "threads",
     .effect = OPTION_RUN, .flags = OPTION_PER_RANK},
    {"name", OPTION_TEXT, offsetof(struct values, name), NULL, 0, 0, NULL, "NAME", "a name",
     .effect = OPTION_BITS, .alias = "called"},
};
static const struct option_table tables[] = {{"All", rows, LENGTH(rows), 0}};
static const struct option_set set = {.command = "sagitta test",
                                      .arguments = "[DECK]",
                                      .doc = "test",
                                      .tables = tables,
                                      .count = LENGTH(tables),
                                      .max_arguments = 1,
                                      .has_config = 1};

static int parse(char **words, int count, struct values *v)
{
  const char *positional[8] = {0};
  return options_parse(&set, count, words, v, positional);
}

/* text[capacity] <- the lines of the options that have none of the flags `without`. */
static void lines(const struct values *v, unsigned without, char *text, size_t capacity)
{
  FILE *memory = fmemopen(text, capacity, "w");
  options_lines(&set, v, without, memory);
  fclose(memory);
}

static void names_try(void)
{
  struct values v = {0};
  char *both[] = {"test", "--lines", "3", "--rows=4", NULL};
  const char deck[] = "called = deck  # old\nlines = 5\n", twice[] = "lines = 5\nrows = 6\n";
  ok(parse(both, 3, &v) == OK && v.rows == 3, "an old name sets the option");
  ok(parse(both, 4, &v) == ERR_USAGE && strstr(status_message(), "'--rows' is given twice"),
     "an option given by its old and its new name is given twice: %s", status_message());
  status_clear();
  ok(parse(both, 1, &v) == OK && options_config("d", deck, strlen(deck)) == OK && v.rows == 5 &&
         strcmp(v.name, "deck") == 0,
     "an old name sets the option in a deck");
  ok(options_config("d", twice, strlen(twice)) == ERR_USAGE &&
         strstr(status_message(), "d:2: 'rows' is set already: 'lines' is its old name"),
     "a deck that sets an option by both names is refused: %s", status_message());
  status_clear();
}

static void lines_try(void)
{
  struct values v = {0};
  char *given[] = {"test", "--threads=2", "--called", "x", NULL}, text[256];
  ok(parse(given, 4, &v) == OK, "options are read");
  lines(&v, 0, text, sizeof text);
  ok(strcmp(text, "rows = 7\nthreads = 2\nname = x\n") == 0, "lines have the new names: %s", text);
  lines(&v, OPTION_PER_RANK, text, sizeof text);
  ok(strcmp(text, "rows = 7\nname = x\n") == 0, "options with a flag are left out of the lines: %s",
     text);
  ok(options_has(&set, "lines"), "an old name is known as a key of a deck");
}

int main(void)
{
  names_try();
  lines_try();
  return done_testing();
}
