/* SPDX-License-Identifier: BSD-3-Clause
 * Several arrays written at once, by threads that are spare.
 *
 * Floor: io. */
#ifndef IO_H5_ARRAY_WRITE_H
#define IO_H5_ARRAY_WRITE_H

#include "base/team.h"
#include "io/h5/h5.h"

/* As h5_array_write(), of up to H5_TOGETHER arrays with chunks of as many entries, which alternate
 * in the file: list[i] gets the n entries at values[i]. */
enum { H5_TOGETHER = 4 };
int h5_arrays_write(struct h5_array *const *list, int count, gidx first, gidx n,
                    const void *const *values);

/* The same in two steps: the values are written, and may still be hashed behind the caller, which
 * writes other arrays meanwhile and leaves them as they are; then they are.  The second step comes
 * also when the first fails. */
struct h5_part {
  struct h5_array *list[H5_TOGETHER];
  const unsigned char *bytes[H5_TOGETHER]; /* of the entries that are being written */
  int count;
  gidx n; /* entries */
  int is_hashing;
  struct spare_loop hashing;
  struct h5_hashed {
    int status;
    double seconds;
  } hashed[H5_TOGETHER];
};
int h5_arrays_begin(struct h5_part *p, struct h5_array *const *list, int count, gidx first, gidx n,
                    const void *const *values);
int h5_arrays_end(struct h5_part *p);

/* Before an array is closed: write what is pending, and the hash if it is complete. */
int h5_array_end(struct h5_array *a);

#endif
