/* SPDX-License-Identifier: BSD-3-Clause
 * HDF5 in the few verbs that Sagitta needs: typed arrays and attributes, errors with names.
 *
 * Floor: io; h5*.c are the only users of hdf5.h.  The serial driver; nothing is collective.
 *
 * Written datasets are little-endian, C order, chunked with Fletcher-32, without times, in the 1.10
 * format (reliability: a flipped bit is then never silent). */
#ifndef IO_H5_H
#define IO_H5_H

#include "base/types.h"

enum h5_type { TYPE_I32, TYPE_I64, TYPE_F32, TYPE_F64, TYPE_F16, TYPE_BF16, TYPE_OTHER };

struct h5_file {
  int64_t id;       /* 0: not open */
  const char *path; /* borrowed */
};

/* Open for reading.  ERR_IO when the file is missing or unreadable, ERR_INPUT when it is not HDF5
 * or damaged. */
int h5_open(struct h5_file *f, const char *path);
/* Create (truncating).  ERR_CREATE. */
int h5_create(struct h5_file *f, const char *path);
/* Close; safe on a zeroed struct.  ERR_IO when pending writes fail. */
int h5_close(struct h5_file *f);

/* Is there a link of this name?  What cannot be told counts as there: opening it names the
 * damage. */
int h5_exists(const struct h5_file *f, const char *object);

/* Create a group, and those above it, unless it is there. */
int h5_group_create(const struct h5_file *f, const char *object);

/* A dataset opened for reading or writing in blocks of its first dimension. */
struct h5_array {
  int64_t id;
  enum h5_type type;
  int rank; /* as in the file; shape is known for 1 to 3 */
  gidx shape[3];
  int swap;         /* 16-bit floats stored in the other byte order */
  const char *path; /* borrowed: file */
  char object[256];
  gidx chunk_rows;          /* writing: of the first dimension, in a chunk */
  gidx next, held;          /* writing: entries taken so far, and those of them in pending */
  unsigned char *pending;   /* writing: the chunk being filled; owned */
  struct h5_chunks *chunks; /* reading: NULL when HDF5 reads all; owned */
};
/* ERR_INPUT: no such dataset, damaged, data in other files, or far more claimed than stored. */
int h5_array_open(const struct h5_file *f, const char *object, struct h5_array *a);
/* Create a dataset of rank 1 to 3; type is I32, I64, F32 or F64.  Missing groups are created.  A
 * chunk has about a megabyte, or rows_per_chunk entries of the first dimension. */
int h5_array_create(const struct h5_file *f, const char *object, enum h5_type type, int rank,
                    const gidx *shape, struct h5_array *a);
int h5_array_create_chunked(const struct h5_file *f, const char *object, enum h5_type type,
                            int rank, const gidx *shape, gidx rows_per_chunk, struct h5_array *a);
/* Writing: the array ends with what is written so far, as long as that is less than its shape. */
int h5_array_cut(struct h5_array *a);
/* Write what is pending and close; safe on a zeroed struct.  ERR_INTERNAL when entries are
 * missing. */
int h5_array_close(struct h5_array *a);

/* Read entries first .. first + count - 1 of the first dimension, whole rows, as the array's type
 * (16-bit floats raw, in native order), as F32 from any float (one rounding), or widened.  One
 * thread at a time: the last chunk is kept. */
int h5_array_read(const struct h5_array *a, gidx first, gidx count, enum h5_type as, void *out);
/* Write the next entries: first must be where the last call ended.  NaN gets its one pattern. */
int h5_array_write(struct h5_array *a, gidx first, gidx count, const void *in);

/* out[count] <- f32 of raw F16, BF16 or F64 values. */
void h5_to_f32(enum h5_type from, const void *in, gidx count, float *out);

/* Attributes of an object ("/" or a path; the group is created when missing). */
int h5_attribute_text(const struct h5_file *f, const char *object, const char *name, const char *v);
int h5_attribute_long(const struct h5_file *f, const char *object, const char *name, gidx v);
int h5_attribute_longs(const struct h5_file *f, const char *object, const char *name, int n,
                       const gidx *v);
int h5_attribute_real(const struct h5_file *f, const char *object, const char *name, real v);
/* ERR_INPUT: no such attribute, or of another type or length. */
int h5_attribute_exists(const struct h5_file *f, const char *object, const char *name);
int h5_read_text(const struct h5_file *f, const char *object, const char *name, char *out,
                 int room);
int h5_read_long(const struct h5_file *f, const char *object, const char *name, gidx *out);
int h5_read_longs(const struct h5_file *f, const char *object, const char *name, int n, gidx *out);
int h5_read_real(const struct h5_file *f, const char *object, const char *name, real *out);

#endif
