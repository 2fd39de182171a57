/* SPDX-License-Identifier: BSD-3-Clause
 * Write several arrays at once, on spare threads.
 *
 * Floor: io. */
#ifndef IO_H5_ARRAY_WRITE_H
#define IO_H5_ARRAY_WRITE_H

#include "io/h5/h5.h"

/* As h5_array_write(), for up to H5_TOGETHER arrays whose chunks have the same number of entries;
 * the chunks of the arrays alternate in the file.  list[i] gets the n entries at values[i]. */
enum { H5_TOGETHER = 4 };
int h5_arrays_write(struct h5_array *const *list, int count, gidx first, gidx n,
                    const void *const *values);

/* Write the pending entries as a chunk, padded with zeros. */
int h5_array_flush(struct h5_array *a);

/* Call this before an array is closed: write the pending entries, and the hash if the array is
 * complete. */
int h5_array_end(struct h5_array *a);

#endif
