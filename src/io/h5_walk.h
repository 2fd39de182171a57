/* SPDX-License-Identifier: BSD-3-Clause
 * What is in an HDF5 file, ours or foreign: a list of its objects, and values of any type in
 * blocks.
 *
 * Floor: io.  Links to other files are listed, never followed; a group is entered once. */
#ifndef IO_H5_WALK_H
#define IO_H5_WALK_H

#include "io/h5.h"

enum h5_kind { KIND_GROUP, KIND_DATASET, KIND_TYPE, KIND_SOFT, KIND_EXTERNAL, KIND_OTHER };

struct h5_entry {
  char *path; /* owned; of attributes: the name */
  enum h5_kind kind;
  char *target; /* of a soft or external link; owned, or NULL */
};
/* Sorted by path (bytes).  Zero it first; free it in any case. */
struct h5_listing {
  struct h5_entry *entries; /* owned */
  gidx count, room;
};
/* All objects, the root "/" first.  ERR_INPUT: damaged, too many, or too deep. */
int h5_list(const struct h5_file *f, struct h5_listing *list);
/* The names of an object's attributes. */
int h5_list_attributes(const struct h5_file *f, const char *object, struct h5_listing *list);
void h5_listing_free(struct h5_listing *list);

/* A dataset (attribute NULL) or an attribute of any type and shape, item by item in C order. */
struct h5_values {
  int64_t id, type;
  const struct h5_file *file; /* borrowed */
  char name[512];             /* for messages: object, and attribute */
  int is_attribute;
  int is_text;     /* variable-length: values are read by h5_values_text */
  int is_readable; /* 0: holds other variable-length data, which is not read */
  int rank;
  gidx shape[32], total;
  gidx stored;              /* bytes on disk */
  size_t bytes;             /* of an item in block */
  gidx first, count;        /* items in block */
  unsigned char *block;     /* owned */
  struct h5_chunks *chunks; /* NULL when HDF5 reads all; owned */
};
int h5_values_open(const struct h5_file *f, const char *object, const char *attribute,
                   struct h5_values *v);
void h5_values_close(struct h5_values *v);
/* Read the next block; count is 0 at the end. */
int h5_values_next(struct h5_values *v);

int h5_values_same_type(const struct h5_values *a, const struct h5_values *b);
/* *differ is set when item i of the blocks differs: bits, or the bytes of a text. */
int h5_values_compare(const struct h5_values *a, const struct h5_values *b, gidx i, int *differ);

/* Readable forms: of the type, the shape, and item i of the block. */
void h5_values_type(const struct h5_values *v, char *out, int room);
void h5_values_shape(const struct h5_values *v, char *out, int room);
int h5_values_print(const struct h5_values *v, gidx i, char *out, int room);

#endif
