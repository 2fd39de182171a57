/* SPDX-License-Identifier: BSD-3-Clause
 * The values of a dataset or an attribute of any type and shape, block by block in C order.
 *
 * Floor: io.  Used to inspect, verify and compare files.  Code that knows the type and shape uses
 * the arrays and attributes of h5.h. */
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
  int is_text;     /* 1: texts of variable length; the block then holds descriptors (struct h5_text,
                    * vlen_text.h) */
  int is_readable; /* 0: the type holds other variable-length data, which is never read */
  int rank;
  gidx shape[32], total;
  gidx stored;              /* bytes on disk */
  size_t bytes;             /* of an item in the block */
  gidx first, count;        /* items in the block */
  unsigned char *block;     /* owned */
  struct h5_chunks *chunks; /* NULL if HDF5 reads all; owned */
  struct h5_digest *digest; /* the digest, if Sagitta wrote the dataset; NULL: none; owned */
};
/* Open a dataset, or with attribute not NULL that attribute of the object.  ERR_INPUT: the dataset
 * or attribute is missing or damaged.  Call h5_values_close() in any case. */
int h5_values_open(const struct h5_file *f, const char *object, const char *attribute,
                   struct h5_values *v);
void h5_values_close(struct h5_values *v);
/* Read the next block; v->count is 0 at the end.  ERR_INPUT also after the last block if the
 * dataset's hash differs. */
int h5_values_next(struct h5_values *v);
/* Compare all chunks of a dataset with its digest, on spare threads.  Returns 1 if they agree; 0:
 * they differ, or it is not known. */
int h5_values_are_whole(const struct h5_values *v);
/* ERR_INPUT: the stored hashes of a dataset's chunks do not give its root (leaves.h). */
int h5_values_leaves(const struct h5_values *v);
/* *text <- the text of item i of the block, which the caller frees, with a NUL after its bytes. */
int h5_values_text(const struct h5_values *v, gidx i, char **text, size_t *length);

/* Do both have the same type in the file, byte order included? */
int h5_values_same_type(const struct h5_values *a, const struct h5_values *b);
/* *differ <- does item i of the two blocks differ in any bit, or for texts in any byte? */
int h5_values_compare(const struct h5_values *a, const struct h5_values *b, gidx i, int *differ);

/* out[capacity] <- the type, the shape, or item i of the block, as text for a reader. */
void h5_values_type(const struct h5_values *v, char *out, int capacity);
void h5_values_shape(const struct h5_values *v, char *out, int capacity);
int h5_values_print(const struct h5_values *v, gidx i, char *out, int capacity);
/* Add item i of the block as an entry: a number as a number, anything else as the text of
 * h5_values_print(). */
struct json;
int h5_values_json(const struct h5_values *v, gidx i, const char *key, struct json *j);

#endif
