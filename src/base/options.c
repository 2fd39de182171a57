/* SPDX-License-Identifier: BSD-3-Clause
 * argp reads the command line into a list of (row, text).  One function, value_set(), applies
 * defaults, deck and this list.  Defaults and list are applied first; if there is a deck, it is
 * applied next, and then the list again. */
#include "base/options.h"

#include <argp.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/options_config.h"
#include "base/status.h"
#include "base/text.h"
#include "base/types.h"

enum { KEY_BASE = 1000, MAX_ROWS = 80, ALIAS_BASE = KEY_BASE + MAX_ROWS };

struct given {
  const struct option_row *row;
  void *target;
  const char *text;
};

struct parse {
  const struct option_set *set;
  char *values;
  const char **positional;
  char has_old[MAX_ROWS];  /* of each row: was it given by its alias? */
  char has_line[MAX_ROWS]; /* of each row: does the deck have a line of it? */
  int n_positional, n_given, status;
  struct given *given; /* [n_given] kept for the program's life */
};

/* The command line that was read last. */
static struct parse parsed;

const struct option_row *options_row(const struct option_set *set, int position, size_t *offset)
{
  for (int t = 0; t < set->count; t++) {
    if (position < set->tables[t].count) {
      *offset = set->tables[t].offset;
      return &set->tables[t].rows[position];
    }
    position -= set->tables[t].count;
  }
  return NULL;
}

static int is_named(const struct option_row *row, const char *name)
{
  return strcmp(row->key, name) == 0 || (row->alias && strcmp(row->alias, name) == 0);
}

/* Find the row of a key or an old name. */
static const struct option_row *row_find(const struct option_set *set, const char *key,
                                         size_t *offset)
{
  const struct option_row *row;
  for (int i = 0; (row = options_row(set, i, offset)); i++)
    if (is_named(row, key)) return row;
  return NULL;
}

/* The option of this program that corresponds to a letter option of other programs. */
static const char *letter_meaning(const struct option_set *set, char letter)
{
  static const struct {
    char letter;
    const char *key;
  } meanings[] = {{'k', "top-s"},  {'s', "top-s"},   {'s', "systems"},    {'n', "n-rows"},
                  {'n', "atoms"},  {'t', "threads"}, {'j', "threads"},    {'o', "output"},
                  {'r', "rows"},   {'i', "rows"},    {'d', "dictionary"}, {'f', "force"},
                  {'q', "quiet"},  {'v', "verbose"}, {'h', "help"},       {'K', "atoms"},
                  {'N', "n-rows"}, {'P', "columns"}};
  size_t offset;
  for (int i = 0; i < LENGTH(meanings); i++)
    if (meanings[i].letter == letter && (letter == 'h' || row_find(set, meanings[i].key, &offset)))
      return meanings[i].key;
  return NULL;
}

/* The key that may have been meant; NULL: no key is similar. */
static const char *key_nearest(const struct option_set *set, const char *key)
{
  int min = 2 + (int)strlen(key) / 3, is_letter = strlen(key) == 1;
  const char *best = is_letter ? letter_meaning(set, key[0]) : NULL;
  size_t offset;
  const struct option_row *row;
  if (is_letter) return best ? best : "help";
  for (int i = 0; (row = options_row(set, i, &offset)); i++) {
    int here = text_distance(key, row->key);
    if (here < min) {
      min = here;
      best = row->key;
    }
  }
  return best;
}

/* Is the word one of the choices, which '|' separates? */
static int choice_has(const char *choices, const char *word)
{
  size_t length = strlen(word);
  for (const char *at = choices; at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL)
    if (strncmp(at, word, length) == 0 && (at[length] == '|' || !at[length])) return length > 0;
  return 0;
}

static int number_set(const struct option_row *row, char *target, const char *text)
{
  char *end;
  errno = 0;
  if (row->type == OPTION_REAL) {
    real value = strtod(text, &end) + 0.0; /* + 0.0: -0 becomes 0 */
    CHECK(end != text && !*end && isfinite(value), ERR_USAGE, "'%s' of '%s' is not a number", text,
          row->key);
    CHECK(value >= row->min && value <= row->max, ERR_USAGE, "'%s' is %s, not in %g .. %g",
          row->key, text, row->min, row->max);
    memcpy(target, &value, sizeof value);
    return OK;
  }
  long long value = strtoll(text, &end, 10);
  CHECK(end != text && !*end && !errno, ERR_USAGE, "'%s' of '%s' is not a whole number", text,
        row->key);
  CHECK((double)value >= row->min && (double)value <= row->max, ERR_USAGE,
        "'%s' is %s, not in %.0f .. %.0f", row->key, text, row->min, row->max);
  if (row->type == OPTION_INT) {
    idx small = (idx)value;
    memcpy(target, &small, sizeof small);
  } else {
    gidx wide = value;
    memcpy(target, &wide, sizeof wide);
  }
  return OK;
}

/* Append a line to the text *target. */
static int text_append(char *target, const char *text)
{
  const char *before;
  memcpy(&before, target, sizeof before);
  size_t capacity = strlen(before) + strlen(text) + 2;
  char *whole = malloc(capacity);
  CHECK(whole, ERR_MEMORY, "cannot allocate %zu bytes", capacity);
  snprintf(whole, capacity, "%s\n%s", before, text);
  memcpy(target, &whole, sizeof whole);
  return OK;
}

/* Check a text against its row, and store its value in *target by its type.  With is_more a text of
 * OPTION_TEXTS is appended. */
static int value_set(const struct option_row *row, char *target, const char *text, int is_more)
{
  if (row->type == OPTION_FLAG) {
    int yes = strcmp(text, "yes") == 0, no = strcmp(text, "no") == 0;
    CHECK(yes || no, ERR_USAGE, "'%s' of '%s' is neither yes nor no", text, row->key);
    memcpy(target, &yes, sizeof yes);
    return OK;
  }
  int is_text = row->type == OPTION_TEXT || row->type == OPTION_TEXTS;
  if (!is_text && row->type != OPTION_CHOICE) return number_set(row, target, text);
  CHECK(is_text || choice_has(row->choices, text), ERR_USAGE, "'%s' of '%s' is not one of %s", text,
        row->key, row->choices);
  CHECK(*text, ERR_USAGE, "'%s' has an empty value", row->key);
  CHECK(!strchr(text, '\n'), ERR_USAGE, "'%s' has a value of several lines", row->key);
  CHECK(config_is_text(text, strlen(text)), ERR_USAGE,
        "'%s' is '%s', which is not text, so no deck and no used.in could have it: give a link "
        "with another name",
        row->key, text);
  if (is_more && row->type == OPTION_TEXTS) return text_append(target, text);
  memcpy(target, &text, sizeof text);
  return OK;
}

/* The position of a row, counted through all tables. */
static int position_of(const struct option_set *set, const struct option_row *wanted)
{
  size_t offset;
  int i = 0;
  while (options_row(set, i, &offset) != wanted) i++;
  return i;
}

void options_log_old(void)
{
  size_t offset;
  const struct option_row *row;
  for (int i = 0; (row = options_row(parsed.set, i, &offset)); i++)
    if (parsed.has_old[i]) log_info("option  '%s' is an old name of '%s'", row->alias, row->key);
}

/* config_parse() calls this for each line of a deck. */
static int line_take(void *self, const struct config_entry *e)
{
  struct parse *p = self;
  size_t offset;
  const struct option_row *row = row_find(p->set, e->key, &offset);
  const char *nearest = row ? NULL : key_nearest(p->set, e->key);
  CHECK(row || nearest, ERR_USAGE, "%s: unknown key '%s': see '%s --help'", e->where, e->key,
        p->set->command);
  CHECK(row, ERR_USAGE, "%s: unknown key '%s', the nearest is '%s'", e->where, e->key, nearest);
  CHECK(!e->earlier || row->type == OPTION_TEXTS, ERR_USAGE, "%s: '%s' is set already in line %d",
        e->where, e->key, e->earlier);
  int position = position_of(p->set, row), is_more = p->has_line[position];
  CHECK(e->earlier || !is_more || row->type == OPTION_TEXTS, ERR_USAGE,
        "%s: '%s' is set already: '%s' is its old name", e->where, row->key, row->alias);
  p->has_line[position] = 1;
  if (strcmp(e->key, row->key) != 0) p->has_old[position] = 1;
  int status = value_set(row, p->values + offset + row->offset, e->value, is_more);
  if (status) {
    char message[1024];
    snprintf(message, sizeof message, "%s: %s", e->where, status_message());
    return status_set(status, message);
  }
  return OK;
}

/* "--top-k=3" -> "top-k" */
static void key_copy(const char *argument, char *key, size_t capacity)
{
  snprintf(key, capacity, "%s", argument + strspn(argument, "-"));
  key[strcspn(key, "=")] = '\0';
}

/* Fail with a message about the option that argp could not read.  state->next is after a bad long
 * option, but not after a bad `-x`. */
static int bad_option(const struct parse *p, const struct argp_state *state)
{
  const char *argument = state->argv[state->next > 0 ? state->next - 1 : 0];
  const char *next = state->next < state->argc ? state->argv[state->next] : "";
  char key[64];
  size_t offset;
  key_copy(argument, key, sizeof key);
  const struct option_row *row = row_find(p->set, key, &offset);
  int is_flag = row && row->type == OPTION_FLAG, has_value = strchr(argument, '=') != NULL;
  int is_long = strncmp(argument, "--", 2) == 0 && (!row || is_flag == has_value);
  CHECK(!is_long || !is_flag, ERR_USAGE, "option '--%s' takes no value", key);
  CHECK(!is_long || !row, ERR_USAGE, "option '--%s' needs a value", key);
  if (!is_long && next[0] == '-') argument = next;
  key_copy(argument, key, sizeof key);
  const char *nearest = key_nearest(p->set, key);
  CHECK(strlen(key) != 1, ERR_USAGE, "unknown option '%s': options are spelled out, such as '--%s'",
        argument, nearest);
  CHECK(nearest, ERR_USAGE, "unknown option '%s': see '%s --help'", argument, p->set->command);
  FAIL(ERR_USAGE, "unknown option '%s', the nearest is '--%s'", argument, nearest);
}

static error_t given_keep(struct parse *p, const struct option_row *row, void *target,
                          const char *text)
{
  struct given *given = realloc(p->given, ((size_t)p->n_given + 1) * sizeof *given);
  if (!given) {
    p->status = status_fail(ERR_MEMORY, __FILE__, __LINE__, "cannot allocate the options");
    return ENOMEM;
  }
  p->given = given;
  p->given[p->n_given++] = (struct given){row, target, text};
  return 0;
}

/* Fail if the value of an option was left out, so that argp took the next option as its value.
 * state->next is after this value. */
static int value_check(const struct option_row *row, const char *text,
                       const struct argp_state *state)
{
  int is_word = text && text == state->argv[state->next - 1];
  CHECK(!is_word || strncmp(text, "--", 2) != 0, ERR_USAGE,
        "option '--%s' needs a value, and '%s' behind it looks like an option: a value of that "
        "name is written '--%s=%s'",
        row->key, text, row->key, text);
  return OK;
}

/* Fail on an extra argument.  If it may come from a pattern that the shell expanded, say how to
 * write the pattern. */
static int argument_fail(const struct parse *p, const char *text)
{
  const struct option_row *row = NULL;
  for (int i = 0; i < p->n_given && !row; i++)
    if (p->given[i].row->type == OPTION_TEXTS) row = p->given[i].row;
  const char *slash = strrchr(text, '/'), *end = strrchr(slash ? slash : text, '.');
  CHECK(row && end, ERR_USAGE, "unexpected argument '%s'", text);
  FAIL(ERR_USAGE,
       "unexpected argument '%s': options such as '--%s' take one name; for several files give a "
       "pattern in quotes, as in --%s '%.*s*%s'",
       text, row->key, row->key, slash ? (int)(slash - text + 1) : 0, text, end);
}

/* argp's parser: keep options with their texts, and positional arguments, for options_parse(). */
static error_t argument_seen(int key, char *text, struct argp_state *state)
{
  struct parse *p = state->input;
  size_t offset = 0;
  if (key >= KEY_BASE && key < ALIAS_BASE + MAX_ROWS) {
    int position = (key - KEY_BASE) % MAX_ROWS;
    const struct option_row *row = options_row(p->set, position, &offset);
    if (key >= ALIAS_BASE) p->has_old[position] = 1;
    for (int i = 0; i < p->n_given; i++)
      if (p->given[i].row == row && row->type != OPTION_TEXTS) {
        p->status =
            status_fail(ERR_USAGE, __FILE__, __LINE__, "option '--%s' is given twice", row->key);
        return EINVAL;
      }
    p->status = value_check(row, text, state);
    if (p->status) return EINVAL;
    return given_keep(p, row, p->values + offset + row->offset, text ? text : "yes");
  }
  if (key == ARGP_KEY_ARG) {
    if (p->n_positional == p->set->max_arguments) {
      p->status = argument_fail(p, text);
      return EINVAL;
    }
    p->positional[p->n_positional++] = text;
    return 0;
  }
  if (key == ARGP_KEY_ERROR && !p->status) p->status = bad_option(p, state);
  return ARGP_ERR_UNKNOWN;
}

static char *help_text(const struct option_row *row)
{
  int has_standard = row->standard && row->type != OPTION_FLAG;
  size_t capacity = strlen(row->help) + (has_standard ? strlen(row->standard) : 0) + 32;
  char *text = malloc(capacity);
  if (text && has_standard)
    snprintf(text, capacity, "%s (default: %s)", row->help, row->standard);
  else if (text)
    snprintf(text, capacity, "%s", row->help);
  return text;
}

/* Write the tables in argp's form, with a titled header before each group. */
static int argp_rows(const struct option_set *set, struct argp_option *out)
{
  int n = 0, position = 0;
  for (int t = 0; t < set->count; t++) {
    out[n++] = (struct argp_option){.doc = set->tables[t].title, .group = t + 1};
    for (int i = 0; i < set->tables[t].count; i++, position++) {
      const struct option_row *row = &set->tables[t].rows[i];
      const char *value = row->type == OPTION_FLAG     ? NULL
                          : row->type == OPTION_CHOICE ? row->choices
                                                       : row->metavar;
      out[n++] = (struct argp_option){.name = row->key,
                                      .key = KEY_BASE + position,
                                      .arg = value,
                                      .doc = help_text(row),
                                      .group = t + 1};
      CHECK(out[n - 1].doc, ERR_MEMORY, "cannot allocate the texts of options");
      if (row->alias)
        out[n++] = (struct argp_option){.name = row->alias,
                                        .key = ALIAS_BASE + position,
                                        .arg = value,
                                        .flags = OPTION_HIDDEN,
                                        .group = t + 1};
    }
  }
  out[n++] =
      (struct argp_option){.name = "help", .key = '?', .doc = "give this help list", .group = -1};
  out[n++] = (struct argp_option){
      .name = "usage", .key = KEY_BASE - 1, .doc = "give a short usage message", .group = -1};
  out[n] = (struct argp_option){0};
  return OK;
}

static int defaults_set(const struct option_set *set, char *values)
{
  size_t offset;
  const struct option_row *row;
  for (int i = 0; (row = options_row(set, i, &offset)); i++)
    if (row->standard) TRY(value_set(row, values + offset + row->offset, row->standard, 0));
  return OK;
}

static const char config_help[] =
    "\nDECK is a text file of options, one `KEY = VALUE` per line, KEY without --;\n"
    "options on the command line override it.\n";

/* Print --help or --usage and exit.  argp is called with ARGP_NO_ERRS, since this program reports
 * errors itself.  With this flag argp prints no help either. */
static int help_give(const struct argp *argp, const struct option_set *set, int argc, char **argv)
{
  for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
    int help = !strcmp(argv[i], "--help") || !strcmp(argv[i], "-?");
    if (!help && strcmp(argv[i], "--usage") != 0) continue;
    argp_help(argp, stdout, help ? ARGP_HELP_STD_HELP : ARGP_HELP_USAGE, (char *)set->command);
    if (help && set->has_config) fputs(config_help, stdout);
    if (help) printf("\n%s", status_codes_text);
    CHECK(fflush(stdout) == 0 && !ferror(stdout), ERR_IO, "cannot write to standard output: %s",
          strerror(errno));
    exit(OK);
  }
  return OK;
}

/* Set the values that the command line gives. */
static int given_set(const struct parse *p)
{
  for (int i = 0; i < p->n_given; i++) {
    int is_more = 0;
    for (int j = 0; j < i; j++) is_more = is_more || p->given[j].row == p->given[i].row;
    TRY(value_set(p->given[i].row, p->given[i].target, p->given[i].text, is_more));
  }
  return OK;
}

const char *options_config_of(const struct option_set *set, const char *const *positional)
{
  const char *first = positional[0];
  size_t length = first ? strlen(first) : 0;
  int is_config = length > 3 && strcmp(first + length - 3, ".in") == 0 && !positional[1];
  return set->has_config || (set->takes_files && is_config) ? first : NULL;
}

/* Is this key on the command line? */
static int is_typed(const struct parse *p, const char *key)
{
  for (int i = 0; i < p->n_given; i++)
    if (strcmp(p->given[i].row->key, key) == 0) return 1;
  return 0;
}

/* With --force on the command line an existing output is replaced, even if the deck says `resume =
 * yes`. */
static int force_win(const struct parse *p)
{
  size_t offset;
  const struct option_row *resume = row_find(p->set, "resume", &offset);
  if (!resume || !is_typed(p, "force") || is_typed(p, "resume")) return OK;
  return value_set(resume, p->values + offset + resume->offset, "no", 0);
}

int options_config(const char *name, const char *text, size_t length)
{
  memset(parsed.has_line, 0, sizeof parsed.has_line);
  TRY(config_parse(name, text, length, line_take, &parsed));
  TRY(given_set(&parsed));
  return force_win(&parsed);
}

int options_parse(const struct option_set *set, int argc, char **argv, void *values,
                  const char **positional)
{
  static struct argp_option rows[2 * MAX_ROWS + 16];
  struct parse *p = &parsed;
  *p = (struct parse){.set = set, .values = values, .positional = positional};
  TRY(argp_rows(set, rows));
  struct argp argp = {
      .options = rows, .parser = argument_seen, .args_doc = set->arguments, .doc = set->doc};
  TRY(help_give(&argp, set, argc, argv));
  char **words = malloc(((size_t)argc + 1) * sizeof *words); /* argp reorders them */
  CHECK(words, ERR_MEMORY, "cannot allocate %d words", argc);
  memcpy(words, argv, ((size_t)argc + 1) * sizeof *words);
  words[0] = (char *)set->command;
  int error = argp_parse(&argp, argc, words, ARGP_NO_ERRS, NULL, p);
  free(words);
  if (p->status) return p->status;
  CHECK(!error, ERR_USAGE, "bad command line: %s", strerror(error));
  CHECK(p->n_positional >= set->min_arguments, ERR_USAGE, "'%s' is missing: see '%s --help'",
        set->arguments, set->command);
  TRY(defaults_set(set, values));
  return given_set(p);
}

int options_has(const struct option_set *set, const char *key)
{
  size_t offset;
  return row_find(set, key, &offset) != NULL;
}

/* Does a row have another value than its default? */
static int is_set(const struct option_row *row, const char *target)
{
  static const size_t sizes[] = {[OPTION_FLAG] = sizeof(int),
                                 [OPTION_INT] = sizeof(idx),
                                 [OPTION_LONG] = sizeof(gidx),
                                 [OPTION_REAL] = sizeof(real)};
  char standard[sizeof(gidx) + sizeof(real)] = {0};
  const char *text;
  memcpy(&text, target, sizeof text);
  if (row->type == OPTION_TEXT || row->type == OPTION_TEXTS || row->type == OPTION_CHOICE)
    return text && (!row->standard || strcmp(text, row->standard) != 0);
  if (row->standard && value_set(row, standard, row->standard, 0)) status_clear();
  return memcmp(target, standard, sizes[row->type]) != 0;
}

const struct option_advice *options_first_set(const struct option_set *set, const void *values,
                                              const struct option_advice *all, int count)
{
  size_t offset;
  for (int i = 0; i < count; i++) {
    const struct option_row *row = row_find(set, all[i].key, &offset);
    if (row && is_set(row, (const char *)values + offset + row->offset)) return &all[i];
  }
  return NULL;
}
