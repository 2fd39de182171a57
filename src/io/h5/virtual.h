/* SPDX-License-Identifier: BSD-3-Clause
 * Virtual datasets.  Their rows are rows of datasets in other files.
 *
 * Floor: io.  HDF5 would read zeros if one of these files is missing, and would open any path that
 * the dataset names.  So the sources are only listed here.  The caller opens them like other
 * inputs. */
#ifndef IO_H5_VIRTUAL_H
#define IO_H5_VIRTUAL_H

#include "io/h5/h5.h"

/* Rows first .. first + count - 1 of the dataset are rows from .. from + count - 1 of another. */
struct h5_source {
  char *file, *object; /* as the dataset names them; owned */
  gidx first, from, count;
  int is_whole; /* these are all rows of the other dataset */
};
struct h5_sources {
  struct h5_source *list; /* [count], in the order of rows; they cover all rows; owned */
  gidx count;             /* 0: the dataset is not virtual */
  enum h5_type type;
  gidx shape[2];
};
/* ERR_INPUT: a source is not a contiguous range of whole rows, or the sources do not cover all
 * rows. */
int h5_sources_read(const struct h5_file *f, const char *object, struct h5_sources *s);
void h5_sources_free(struct h5_sources *s);

#endif
