/* SPDX-License-Identifier: BSD-3-Clause
 * The contents of Sagitta's files as tables: kinds of files, their datasets, and shapes written as
 * letters.
 *
 * Floor: io.  Meaning and invariants: doc/formats.md.
 *
 * CONTRIBUTING.md says how to add a dataset.  To add a kind of file, add a <kind>.c with its
 * header, and a row in file_kinds[] of schema.c.  `verify`, `inspect` and `diff` use the tables. */
#ifndef IO_SCHEMA_H
#define IO_SCHEMA_H

#include <stdio.h>

#include "base/lines.h"
#include "base/memory.h"
#include "io/h5/h5.h"

/* One dataset.  With type TYPE_OTHER several types are allowed, and the check of the kind tests the
 * type.  shape: a letter or word per dimension; '|' separates alternatives of different rank.  A
 * letter has the same value everywhere in a file; "N+1" is one more than "N". */
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

enum { NAME_WIDTH = 28 }; /* of the first column that `inspect` prints */

/* One kind of file.  Its functions are called for any file, also of another program, so they test
 * whether their objects exist. */
struct verify;
struct json;
struct file_kind {
  const char *name;                      /* the root attribute `kind` */
  const struct object_table *objects[8]; /* up to the first NULL */
  /* Check the invariants of the objects beyond type and shape; see check.h. */
  int (*check)(struct verify *v);
  /* Print what `inspect` shows of this kind above and below the list of objects; NULL: nothing.
   * *group <- the group whose attributes show_below() has printed. */
  int (*show_above)(const struct h5_file *f, FILE *out);
  int (*show_below)(const struct h5_file *f, FILE *out, const char **group);
  /* Add entries to the JSON of `inspect`, for the contents that are no attributes; NULL:
   * nothing. */
  int (*tell)(const struct h5_file *f, struct json *j);
};
extern const struct file_kind *const file_kinds[];
extern const int file_kind_count;

/* The kind with this name, or NULL. */
const struct file_kind *file_kind_find(const char *name);
/* Row i of all tables of a kind; NULL after the last. */
const struct object_row *file_kind_row(const struct file_kind *kind, int i);
/* The first row with this path among all kinds, or NULL. */
const struct object_row *object_find(const char *path);
const char *type_name(enum h5_type type);

/* What the letters of shapes stand for in a file. */
struct dimension {
  char name[8];
  gidx value;
  const char *object; /* borrowed: the object that bound it */
};
struct dimensions {
  struct dimension list[16];
  int count;
};
/* Bind a letter to a value.  ERR_INPUT: it is bound to another value already. */
int dimension_bind(struct dimensions *d, const char *name, gidx value, const char *object);
gidx dimension_value(const struct dimensions *d, const char *name); /* -1: not known */

/* Check the shape of an opened array against its row, and bind the letters. */
int object_check_shape(const struct object_row *row, const struct h5_array *a,
                       struct dimensions *d);

/* Create a dataset that is in the tables, with its type; rows_per_chunk as in
 * h5_array_create_chunked(). */
int object_create(const struct h5_file *f, const char *path, int rank, const gidx *shape,
                  gidx rows_per_chunk, struct h5_array *a);
/* Create a dataset that is in the tables, and write all of its values; object_write_vector() is for
 * rank 1. */
int object_write(const struct h5_file *f, const char *path, int rank, const gidx *shape,
                 const void *values);
int object_write_vector(const struct h5_file *f, const char *path, gidx count, const void *values);
/* Read all of a dataset of this type and shape (rows, width), or with width 0 (rows).
 * object_load() fills `values`; object_take() allocates in the arena, and `values` points to the
 * pointer that it sets.  ERR_INPUT: it has another type or shape. */
int object_load(const struct h5_file *f, const char *path, gidx rows, gidx width, enum h5_type type,
                void *values);
int object_take(const struct h5_file *f, const char *path, gidx rows, gidx width, enum h5_type type,
                struct arena *arena, void *values);

/* Write an array of structs as a matrix, one line per struct, as `form` says; an attribute names
 * its columns. */
int object_write_lines(const struct h5_file *f, const char *path, const char *columns,
                       const struct line_form *form, const void *lines, gidx count);
/* The reverse: *lines, a pointer to structs, <- `count` lines, in the arena. */
int object_take_lines(const struct h5_file *f, const char *path, const struct line_form *form,
                      struct arena *arena, gidx count, void *lines);

#endif
