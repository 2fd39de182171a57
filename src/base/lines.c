/* SPDX-License-Identifier: BSD-3-Clause
 * Members are copied one by one, by their types. */
#include "base/lines.h"

#include <math.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"

static real value_of(const struct line_member *m, const char *line)
{
  gidx whole;
  idx index;
  real value;
  if (m->type == LINE_LONG) {
    memcpy(&whole, line + m->offset, sizeof whole);
    return (real)whole;
  }
  if (m->type == LINE_INDEX) {
    memcpy(&index, line + m->offset, sizeof index);
    return (real)index;
  }
  memcpy(&value, line + m->offset, sizeof value);
  return value;
}

/* Is this a value that value_set() can store?  An integer must be one, and in its range. */
static int value_fits(const struct line_member *m, real value)
{
  real end = m->type == LINE_INDEX ? 0x1p31 : 0x1p63;
  return m->type == LINE_REAL || (value >= -end && value < end && value == floor(value));
}

static void value_set(const struct line_member *m, real value, char *line)
{
  if (m->type == LINE_LONG)
    memcpy(line + m->offset, &(gidx){(gidx)value}, sizeof(gidx));
  else if (m->type == LINE_INDEX)
    memcpy(line + m->offset, &(idx){(idx)value}, sizeof(idx));
  else
    memcpy(line + m->offset, &value, sizeof value);
}

void lines_pack(const struct line_form *form, const void *lines, gidx count, real *table)
{
  const char *line = lines;
  for (gidx i = 0; i < count; i++, line += form->bytes, table += form->columns)
    for (int k = 0; k < form->count; k++) {
      const struct line_member *m = &form->members[k];
      if (m->column) table[m->column - 1] = value_of(m, line);
    }
}

int lines_unpack(const struct line_form *form, const real *table, gidx count, void *lines)
{
  char *line = lines;
  memset(lines, 0, (size_t)count * form->bytes);
  for (gidx i = 0; i < count; i++, line += form->bytes, table += form->columns)
    for (int k = 0; k < form->count; k++) {
      const struct line_member *m = &form->members[k];
      if (!m->column) continue;
      if (!value_fits(m, table[m->column - 1])) return 0;
      value_set(m, table[m->column - 1], line);
    }
  return 1;
}

static void member_json(const struct line_member *m, const char *line, int is_old, struct json *j)
{
  int is_known = !is_old || m->column;
  real value = is_known ? value_of(m, line) : nan_canonical();
  if (m->type == LINE_REAL || !is_known)
    json_real(j, m->key, value);
  else
    json_long(j, m->key, (gidx)value);
}

void lines_json(const struct line_form *form, const void *lines, gidx count, gidx old,
                struct json *j)
{
  const char *line = lines;
  for (gidx i = 0; i < count; i++, line += form->bytes) {
    json_object(j, NULL);
    for (int k = 0; k < form->count; k++) {
      const struct line_member *m = &form->members[k];
      if (!form->without || strcmp(m->key, form->without) != 0) member_json(m, line, i < old, j);
    }
    json_end(j);
  }
}

int lines_copy(struct arena *arena, void *array, gidx *max, const void *lines, gidx count,
               size_t bytes)
{
  void **at = array;
  if (count > *max) {
    *max = 2 * count;
    TRY(arena_alloc(arena, at, *max, bytes));
  }
  if (count) memcpy(*at, lines, (size_t)count * bytes);
  return OK;
}
