/* SPDX-License-Identifier: BSD-3-Clause
 * Each function walks through the rows of a set; values are printed by type. */
#include "base/options_write.h"

#include <stdlib.h>
#include <string.h>

#include "base/options_config.h"
#include "base/types.h"

/* Is this a whole number without a default that was not given (options_write())? */
static int is_left_out(const struct option_row *row, const char *target)
{
  idx small;
  memcpy(&small, target, sizeof small);
  return row->type == OPTION_INT && !row->standard && row->min > 0 && small == 0;
}

/* Write a line for each text; there are several if the option was repeated. */
static void texts_write(const struct option_row *row, const char *text, FILE *out)
{
  for (const char *line = text; line; line = strchr(line, '\n'), line += line != NULL) {
    fprintf(out, "%s = ", row->key);
    config_value_write(line, strcspn(line, "\n"), out);
    fputc('\n', out);
  }
}

static void value_write(const struct option_row *row, const char *target, FILE *out)
{
  if (is_left_out(row, target)) return;
  int flag;
  idx small;
  gidx wide;
  real value;
  const char *text;
  if (row->type == OPTION_FLAG) {
    memcpy(&flag, target, sizeof flag);
    fprintf(out, "%s = %s\n", row->key, flag ? "yes" : "no");
  } else if (row->type == OPTION_INT) {
    memcpy(&small, target, sizeof small);
    fprintf(out, "%s = %d\n", row->key, small);
  } else if (row->type == OPTION_LONG) {
    memcpy(&wide, target, sizeof wide);
    fprintf(out, "%s = %lld\n", row->key, (long long)wide);
  } else if (row->type == OPTION_REAL) {
    memcpy(&value, target, sizeof value);
    fprintf(out, "%s = %.17g\n", row->key, value);
  } else {
    memcpy(&text, target, sizeof text);
    if (text) texts_write(row, text, out);
  }
}

void options_write(const struct option_set *set, const void *values, FILE *out)
{
  fprintf(out, "# %s\n", set->command);
  for (int t = 0; t < set->count; t++) {
    const struct option_table *table = &set->tables[t];
    fprintf(out, "\n# %s\n", table->title);
    for (int i = 0; i < table->count; i++)
      value_write(&table->rows[i], (const char *)values + table->offset + table->rows[i].offset,
                  out);
  }
}

/* Fifteen digits suffice for most numbers that people type, and seventeen for any value. */
static void real_write(const struct option_row *row, real value, FILE *out)
{
  char text[40];
  for (int digits = 15; digits <= 17; digits++) {
    snprintf(text, sizeof text, "%.*g", digits, value);
    if (strtod(text, NULL) == value) break;
  }
  fprintf(out, "%s = %s\n", row->key, text);
}

void options_bits(const struct option_set *set, const void *values, FILE *out)
{
  size_t offset;
  real value;
  const struct option_row *row;
  for (int i = 0; (row = options_row(set, i, &offset)); i++) {
    const char *target = (const char *)values + offset + row->offset;
    if (row->effect > OPTION_BITS || row->flags & OPTION_INPUT) continue;
    if (row->type != OPTION_REAL) value_write(row, target, out);
    if (row->type == OPTION_REAL) memcpy(&value, target, sizeof value);
    if (row->type == OPTION_REAL) real_write(row, value, out);
  }
}

void options_lines(const struct option_set *set, const void *values, unsigned without, FILE *out)
{
  size_t offset;
  const struct option_row *row;
  for (int i = 0; (row = options_row(set, i, &offset)); i++)
    if (!(row->flags & without)) value_write(row, (const char *)values + offset + row->offset, out);
}

static void value_json(const struct option_row *row, const char *target, struct json *out)
{
  int flag;
  idx small;
  gidx wide;
  real value;
  const char *text;
  if (is_left_out(row, target)) return;
  if (row->type == OPTION_FLAG) {
    memcpy(&flag, target, sizeof flag);
    json_flag(out, row->key, flag);
  } else if (row->type == OPTION_INT) {
    memcpy(&small, target, sizeof small);
    json_long(out, row->key, small);
  } else if (row->type == OPTION_LONG) {
    memcpy(&wide, target, sizeof wide);
    json_long(out, row->key, wide);
  } else if (row->type == OPTION_REAL) {
    memcpy(&value, target, sizeof value);
    json_real(out, row->key, value);
  } else {
    memcpy(&text, target, sizeof text);
    if (text) json_text(out, row->key, text);
  }
}

void options_json(const struct option_set *set, const void *values, struct json *out)
{
  size_t offset;
  const struct option_row *row;
  for (int i = 0; (row = options_row(set, i, &offset)); i++)
    value_json(row, (const char *)values + offset + row->offset, out);
}

void options_list(const struct option_set *set, FILE *out)
{
  size_t offset;
  const struct option_row *row;
  for (int i = 0; (row = options_row(set, i, &offset)); i++) fprintf(out, "--%s\n", row->key);
}

/* Write the default in the option's type. */
static void standard_describe(const struct option_row *row, struct json *out)
{
  const char *text = row->standard;
  if (text && row->type == OPTION_FLAG)
    json_flag(out, "default", strcmp(text, "yes") == 0);
  else if (text && (row->type == OPTION_INT || row->type == OPTION_LONG))
    json_long(out, "default", strtoll(text, NULL, 10));
  else if (text && row->type == OPTION_REAL)
    json_real(out, "default", strtod(text, NULL));
  else
    json_text(out, "default", text);
}

static void range_describe(const struct option_row *row, struct json *out)
{
  if (row->type == OPTION_INT || row->type == OPTION_LONG) {
    json_long(out, "min", (gidx)row->min);
    json_long(out, "max", (gidx)row->max);
  } else if (row->type == OPTION_REAL) {
    json_real(out, "min", row->min);
    json_real(out, "max", row->max);
  } else {
    json_text(out, "min", NULL);
    json_text(out, "max", NULL);
  }
}

static void choices_describe(const struct option_row *row, struct json *out)
{
  char *copy = row->choices ? strdup(row->choices) : NULL, *rest = copy;
  json_array(out, "choices");
  for (char *word; copy && (word = strsep(&rest, "|"));) json_text(out, NULL, word);
  json_end(out);
  free(copy);
}

static void row_describe(const struct option_row *row, const char *group, struct json *out)
{
  static const char *const types[] = {
      [OPTION_FLAG] = "flag",    [OPTION_INT] = "integer", [OPTION_LONG] = "integer",
      [OPTION_REAL] = "real",    [OPTION_TEXT] = "text",   [OPTION_TEXTS] = "texts",
      [OPTION_CHOICE] = "choice"};
  static const char *const effects[] = {[OPTION_UNMARKED] = "unmarked",
                                        [OPTION_BITS] = "bits",
                                        [OPTION_EXTENT] = "extent",
                                        [OPTION_RUN] = "run"};
  json_object(out, NULL);
  json_text(out, "name", row->key);
  json_text(out, "alias", row->alias);
  json_text(out, "group", group);
  json_text(out, "type", types[row->type]);
  json_text(out, "value", row->metavar);
  standard_describe(row, out);
  range_describe(row, out);
  choices_describe(row, out);
  json_text(out, "effect", effects[row->effect]);
  json_flag(out, "per_rank", row->flags & OPTION_PER_RANK);
  json_flag(out, "input", row->flags & OPTION_INPUT);
  json_flag(out, "output", row->flags & OPTION_OUTPUT);
  json_text(out, "help", row->help);
  json_end(out);
}

void options_describe(const struct option_set *set, struct json *out)
{
  for (int t = 0; t < set->count; t++)
    for (int i = 0; i < set->tables[t].count; i++)
      row_describe(&set->tables[t].rows[i], set->tables[t].title, out);
}
