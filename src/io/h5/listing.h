/* SPDX-License-Identifier: BSD-3-Clause
 * List all objects of any HDF5 file, and the attributes of an object.
 *
 * Floor: io.  Links to other files are listed but never followed.  A group with several links is
 * listed with its contents only at the first link. */
#ifndef IO_H5_LISTING_H
#define IO_H5_LISTING_H

#include "io/h5/h5.h"

enum h5_entry_kind {
  ENTRY_GROUP,
  ENTRY_DATASET,
  ENTRY_TYPE,
  ENTRY_SOFT,
  ENTRY_EXTERNAL,
  ENTRY_OTHER
};

struct h5_entry {
  char *path; /* path of an object, or name of an attribute; owned */
  enum h5_entry_kind kind;
  char *target; /* of a soft or external link; owned, or NULL */
};
/* Entries sorted by path, byte by byte.  The caller zeroes it first, and frees it also when listing
 * failed. */
struct h5_listing {
  struct h5_entry *entries; /* owned */
  gidx count, capacity;
};
/* List all objects, the root "/" first.  ERR_INPUT: the file is damaged, has too many objects, or
 * nests groups too deeply. */
int h5_list(const struct h5_file *f, struct h5_listing *list);
/* List the names of an object's attributes. */
int h5_list_attributes(const struct h5_file *f, const char *object, struct h5_listing *list);
void h5_listing_free(struct h5_listing *list);

#endif
