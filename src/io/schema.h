/* SPDX-License-Identifier: BSD-3-Clause
 * What Sagitta's files hold: the kinds of files, their datasets, and shapes written as letters.
 *
 * Floor: io.  Meaning and invariants: doc/formats.md.
 *
 * CONTRIBUTING.md says how to add a dataset.  To add a kind of file: a <kind>.c with its header,
 * and a row in file_kinds[] of schema.c.  `verify`, `inspect` and `diff` follow the tables. */
#ifndef IO_SCHEMA_H
#define IO_SCHEMA_H

#include <stdio.h>

#include "base/lines.h"
#include "base/memory.h"
#include "io/h5/h5.h"

/* One dataset.  type: TYPE_OTHER where the check of its kind says which it may have.  shape: a
 * letter or word for each dimension, and '|' between alternatives of another rank.  A letter has
 * the same value everywhere in a file, and "N+1" is one more than "N". */
struct object_row {
  const char *path;
  enum h5_type type;
  const char *shape;
  int required;
  const char *meaning;
};
struct object_table {
  const struct object_row *rows;
  int count;
};

enum { NAME_WIDTH = 28 }; /* of the first column of what `inspect` prints */

/* One kind of file.  Its functions are called for any file, a foreign one too, and look for
 * themselves whether their objects are there. */
struct verify;
struct json;
struct file_kind {
  const char *name;                      /* the root attribute `kind` */
  const struct object_table *objects[8]; /* up to the first NULL */
  /* Check what the objects promise beyond type and shape; see check.h. */
  int (*check)(struct verify *v);
  /* Print what `inspect` shows of this kind above and below the list of objects; NULL: nothing.
   * *group <- the group whose attributes the second one has printed. */
  int (*show_above)(const struct h5_file *f, FILE *out);
  int (*show_below)(const struct h5_file *f, FILE *out, const char **group);
  /* Add what it shows beyond attributes as entries; NULL: nothing. */
  int (*tell)(const struct h5_file *f, struct json *j);
};
extern const struct file_kind *const file_kinds[];
extern const int file_kind_count;

/* The kind of a name, or NULL. */
const struct file_kind *file_kind_find(const char *name);
/* Row i of a kind, counted through its tables; NULL behind the last. */
const struct object_row *file_kind_row(const struct file_kind *kind, int i);
/* The first row of a path among all kinds, or NULL. */
const struct object_row *object_find(const char *path);
const char *type_name(enum h5_type type);

/* What the letters of shapes stand for in a file. */
struct dimension {
  char name[8];
  gidx value;
  const char *object; /* borrowed: where it was seen first */
};
struct dimensions {
  struct dimension list[16];
  int count;
};
/* Let a letter stand for a value.  ERR_INPUT when it stands for something else already. */
int dimension_bind(struct dimensions *d, const char *name, gidx value, const char *object);
gidx dimension_value(const struct dimensions *d, const char *name); /* -1: not known */

/* Check the shape of an opened array against its row, and bind the letters. */
int object_check_shape(const struct object_row *row, const struct h5_array *a,
                       struct dimensions *d);

/* Create a dataset of the tables, with its type; rows_per_chunk as in h5_array_create_chunked. */
int object_create(const struct h5_file *f, const char *path, int rank, const gidx *shape,
                  gidx rows_per_chunk, struct h5_array *a);
/* Create a dataset of the tables and write all of its values; the second is for one of rank 1. */
int object_write(const struct h5_file *f, const char *path, int rank, const gidx *shape,
                 const void *values);
int object_write_vector(const struct h5_file *f, const char *path, gidx count, const void *values);
/* values <- all of a dataset of this type and shape; width 0: a vector; the second has them in the
 * arena, and values points to a pointer to them.  ERR_INPUT: it has another type or shape. */
int object_load(const struct h5_file *f, const char *path, gidx rows, gidx width, enum h5_type type,
                void *values);
int object_take(const struct h5_file *f, const char *path, gidx rows, gidx width, enum h5_type type,
                struct arena *arena, void *values);

/* A table of lines, by their form; an attribute names its columns. */
int object_write_lines(const struct h5_file *f, const char *path, const char *columns,
                       const struct line_form *form, const void *lines, gidx count);
/* *lines, which is a pointer to them, <- count of them, from the arena. */
int object_take_lines(const struct h5_file *f, const char *path, const struct line_form *form,
                      struct arena *arena, gidx count, void *lines);

#endif
