/* SPDX-License-Identifier: BSD-3-Clause
 * The objects of Sagitta's files, described once: writing, verifying and inspecting use this table.
 *
 * Floor: io.  Meaning and invariants: doc/formats.md. */
#ifndef IO_SCHEMA_H
#define IO_SCHEMA_H

#include "io/h5.h"

#define FORMAT_NAME "sagitta"
enum { FORMAT_VERSION = 1 };

/* One dataset.  shape: dimensions by letter, alternatives divided by '|'; a letter has the same
 * value everywhere in a file, and "N+1" is one more than "N". */
struct object_row {
  const char *kind, *path; /* kind of file, from its root attribute */
  enum h5_type type;
  const char *shape;
  int required;
  const char *meaning;
};
extern const struct object_row object_rows[];
extern const int object_count;

/* The row of a path; NULL when there is none.  kind may be NULL: any. */
const struct object_row *object_find(const char *kind, const char *path);
const char *type_name(enum h5_type type);

/* NAME_formula, the attribute beside a metric. */
void metric_formula_name(const char *metric, char *out, int room);

/* What the letters stand for in a file. */
struct dimension {
  char name[8];
  gidx value;
  const char *object; /* borrowed: where it was seen first */
};
struct dimensions {
  struct dimension list[16];
  int count;
};
/* ERR_INPUT when the letter stands for something else already. */
int dimension_bind(struct dimensions *d, const char *name, gidx value, const char *object);
gidx dimension_value(const struct dimensions *d, const char *name); /* -1: not known */

/* Check the shape of an opened array against its row, and bind its letters. */
int object_check_shape(const struct object_row *row, const struct h5_array *a,
                       struct dimensions *d);

/* Create a dataset of the table, with its type; chunks as in h5_array_create_chunked. */
int object_create(const struct h5_file *f, const char *path, int rank, const gidx *shape,
                  gidx rows_per_chunk, struct h5_array *a);

/* Create a dataset of the table with one dimension and write all of values[count]. */
int object_write_vector(const struct h5_file *f, const char *path, gidx count, const void *values);

#endif
