/* SPDX-License-Identifier: BSD-3-Clause
 * The values of a dataset or an attribute of any type and shape, block by block in C order.
 *
 * Floor: io.  Inspecting, verifying and comparing files use this; code that knows what it reads
 * uses the arrays and attributes of h5.h. */
#ifndef IO_H5_VALUES_H
#define IO_H5_VALUES_H

#include "io/h5/h5.h"

/* A dataset or an attribute that is being read.  The current block holds items
 * first .. first + count - 1. */
struct h5_values {
  int64_t id, type;
  const struct h5_file *file; /* borrowed */
  char name[512];             /* for messages: the object, and " @" with the attribute */
  int is_attribute;
  int is_text;     /* of variable length: the block holds descriptors, see h5_text in vlen_text.h */
  int is_readable; /* 0: the type holds other variable-length data, which is never read */
  int rank;
  gidx shape[32], total;
  gidx stored;              /* bytes on disk */
  size_t bytes;             /* of an item in the block */
  gidx first, count;        /* items in the block */
  unsigned char *block;     /* owned */
  struct h5_chunks *chunks; /* NULL when HDF5 reads all; owned */
  struct h5_digest *digest; /* the hash of a dataset of ours; NULL: none; owned */
};
/* Open a dataset, or with attribute not NULL that attribute of the object.  ERR_INPUT: it is not
 * there, or damaged.  h5_values_close() follows in any case. */
int h5_values_open(const struct h5_file *f, const char *object, const char *attribute,
                   struct h5_values *v);
void h5_values_close(struct h5_values *v);
/* Read the next block; v->count is 0 at the end.  ERR_INPUT also when the block is the last and the
 * dataset is not what was written. */
int h5_values_next(struct h5_values *v);
/* Threads that are spare read the chunks of a dataset side by side: are they what was written?
 * 0: not known either. */
int h5_values_are_whole(const struct h5_values *v);
/* ERR_INPUT: the hashes of a dataset's chunks are not those of which it has the root. */
int h5_values_leaves(const struct h5_values *v);
/* *text <- the text of item i of the block, which the caller frees, with a NUL behind its bytes. */
int h5_values_text(const struct h5_values *v, gidx i, char **text, size_t *length);

/* Have two the same type in the file, byte order included? */
int h5_values_same_type(const struct h5_values *a, const struct h5_values *b);
/* *differ <- whether item i of the two blocks differs: in any bit, or in the bytes of a text. */
int h5_values_compare(const struct h5_values *a, const struct h5_values *b, gidx i, int *differ);

/* Write the type, the shape, or item i of the block to out[capacity] as a person reads it. */
void h5_values_type(const struct h5_values *v, char *out, int capacity);
void h5_values_shape(const struct h5_values *v, char *out, int capacity);
int h5_values_print(const struct h5_values *v, gidx i, char *out, int capacity);
/* Add item i of the block as an entry: a number as one, anything else as the text above. */
struct json;
int h5_values_json(const struct h5_values *v, gidx i, const char *key, struct json *j);

#endif
