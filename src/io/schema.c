/* SPDX-License-Identifier: BSD-3-Clause
 * The table of file kinds.  A kind is found by name, an object by path.  Shapes are parsed word by
 * word. */
#include "io/schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "io/attribution.h"
#include "io/capture_output.h"
#include "io/classes.h"
#include "io/comparison.h"
#include "io/dictionary.h"
#include "io/h5/dataset.h"
#include "io/ledger.h"
#include "io/mixer_state.h"
#include "io/part.h"
#include "io/rows.h"
#include "io/solutions.h"
#include "io/supports.h"
#include "io/sweep.h"
#include "io/systems.h"
#include "io/terminal.h"
#include "io/top.h"
#include "io/truth.h"

const struct file_kind *const file_kinds[] = {
    &rows_kind,         &dictionary_kind,     &supports_kind, &classes_kind,     &systems_kind,
    &solutions_kind,    &terminal_kind,       &part_kind,     &comparison_kind,  &top_kind,
    &systems_part_kind, &solutions_part_kind, &capture_kind,  &attribution_kind, &sweep_kind,
    &truth_kind,        &ledger_kind,         &state_kind,
};
const int file_kind_count = LENGTH(file_kinds);

const struct file_kind *file_kind_find(const char *name)
{
  for (int i = 0; i < file_kind_count; i++)
    if (strcmp(file_kinds[i]->name, name) == 0) return file_kinds[i];
  return NULL;
}

const struct object_row *file_kind_row(const struct file_kind *kind, int i)
{
  for (int t = 0; t < LENGTH(kind->objects) && kind->objects[t]; t++) {
    if (i < kind->objects[t]->count) return &kind->objects[t]->rows[i];
    i -= kind->objects[t]->count;
  }
  return NULL;
}

const struct object_row *object_find(const char *path)
{
  for (int k = 0; k < file_kind_count; k++) {
    const struct object_row *row;
    for (int i = 0; (row = file_kind_row(file_kinds[k], i)); i++)
      if (strcmp(row->path, path) == 0) return row;
  }
  return NULL;
}

const char *type_name(enum h5_type type)
{
  static const char *const names[] = {"int32",   "int64",    "float32",     "float64",
                                      "float16", "bfloat16", "another type"};
  return names[type];
}

int dimension_bind(struct dimensions *d, const char *name, gidx value, const char *object)
{
  for (int i = 0; i < d->count; i++) {
    const struct dimension *known = &d->list[i];
    if (strcmp(known->name, name) != 0) continue;
    CHECK(known->value == value, ERR_INPUT, "'%s' has %s = %lld, '%s' has %lld" ANEW, object, name,
          (long long)value, known->object, (long long)known->value);
    return OK;
  }
  CHECK(d->count < LENGTH(d->list) && strlen(name) < sizeof d->list[0].name, ERR_INTERNAL,
        "too many dimensions");
  struct dimension *new = &d->list[d->count++];
  *new = (struct dimension){.value = value, .object = object};
  strcpy(new->name, name);
  return OK;
}

gidx dimension_value(const struct dimensions *d, const char *name)
{
  for (int i = 0; i < d->count; i++)
    if (strcmp(d->list[i].name, name) == 0) return d->list[i].value;
  return -1;
}

/* The number of words up to the next '|'. */
static int words_count(const char *words)
{
  int count = 1;
  for (; *words && *words != '|'; words++) count += *words == ' ';
  return count;
}

/* The alternative of a shape with this rank; NULL: there is none. */
static const char *alternative(const char *shape, int rank)
{
  while (shape && words_count(shape) != rank) {
    shape = strchr(shape, '|');
    shape += shape != NULL;
  }
  return shape;
}

int object_check_shape(const struct object_row *row, const struct h5_array *a, struct dimensions *d)
{
  const char *shape = alternative(row->shape, a->rank);
  CHECK(shape, ERR_INPUT, "'%s' has %d dimensions, its shape is to be %s", row->path, a->rank,
        row->shape);
  for (int i = 0; i < a->rank; i++, shape += *shape == ' ') {
    char word[8] = {0};
    int length = (int)strcspn(shape, " |");
    snprintf(word, sizeof word, "%.*s", length, shape);
    shape += length;
    char *plus = strchr(word, '+');
    gidx more = plus ? atoi(plus) : 0, size = a->shape[i] - more;
    if (plus) *plus = '\0';
    CHECK(size >= 0, ERR_INPUT, "'%s' has %lld entries, at least %lld are needed", row->path,
          (long long)a->shape[i], (long long)more);
    if (word[0] >= '0' && word[0] <= '9')
      CHECK(size == atoi(word), ERR_INPUT, "'%s' has %lld entries, not %s" ANEW, row->path,
            (long long)size, word);
    else
      TRY(dimension_bind(d, word, size, row->path));
  }
  return OK;
}

int object_create(const struct h5_file *f, const char *path, int rank, const gidx *shape,
                  gidx rows_per_chunk, struct h5_array *a)
{
  const struct object_row *row = object_find(path);
  *a = (struct h5_array){0};
  CHECK(row, ERR_INTERNAL, "no object '%s' in the tables", path);
  TRY(h5_array_create_chunked(f, path, row->type, rank, shape, rows_per_chunk, a));
  return OK;
}

int object_write(const struct h5_file *f, const char *path, int rank, const gidx *shape,
                 const void *values)
{
  struct h5_array a;
  int status = object_create(f, path, rank, shape, 0, &a);
  if (status == OK) status = h5_array_write(&a, 0, shape[0], values);
  int closed = h5_array_close(&a);
  return status ? status : closed;
}

int object_write_vector(const struct h5_file *f, const char *path, gidx count, const void *values)
{
  return object_write(f, path, 1, &count, values);
}

int object_load(const struct h5_file *f, const char *path, gidx rows, gidx width, enum h5_type type,
                void *values)
{
  struct h5_array a;
  TRY(h5_array_open(f, path, &a));
  int fits = a.rank == 1 + (width > 0) && a.type == type && a.shape[0] == rows &&
             (!width || a.shape[1] == width);
  int status = fits ? h5_array_read(&a, 0, rows, type, values) : OK;
  h5_array_close(&a);
  CHECK(fits, ERR_INPUT, "'%s' of '%s' has another type or shape than its atoms need" ANEW, path,
        f->path);
  return status;
}

int object_take(const struct h5_file *f, const char *path, gidx rows, gidx width, enum h5_type type,
                struct arena *arena, void *values)
{
  void *room;
  TRY(arena_alloc(arena, &room, rows * (width ? width : 1), h5_type_bytes(type)));
  *(void **)values = room;
  return object_load(f, path, rows, width, type, room);
}

int object_write_lines(const struct h5_file *f, const char *path, const char *columns,
                       const struct line_form *form, const void *lines, gidx count)
{
  const gidx shape[] = {count, form->columns};
  struct arena arena = {0};
  real *table;
  TRY(arena_alloc(&arena, &table, count * form->columns, sizeof *table));
  lines_pack(form, lines, count, table);
  int status = object_write(f, path, 2, shape, table);
  arena_free(&arena);
  TRY(status);
  return h5_attribute_text(f, path, "columns", columns);
}

int object_take_lines(const struct h5_file *f, const char *path, const struct line_form *form,
                      struct arena *arena, gidx count, void *lines)
{
  real *table;
  void **at = lines;
  TRY(object_take(f, path, count, form->columns, TYPE_F64, arena, &table));
  TRY(arena_alloc(arena, at, count, form->bytes));
  CHECK(lines_unpack(form, table, count, *at), ERR_INPUT,
        "'%s' of '%s' has a count that is no integer" ANEW, path, f->path);
  return OK;
}
