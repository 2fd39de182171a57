/* SPDX-License-Identifier: BSD-3-Clause
 * Several arrays written at once, by threads that are spare.
 *
 * Floor: io. */
#ifndef IO_H5_ARRAY_WRITE_H
#define IO_H5_ARRAY_WRITE_H

#include "io/h5/h5.h"

/* As h5_array_write(), of up to H5_TOGETHER arrays with chunks of as many entries, which alternate
 * in the file: list[i] gets the n entries at values[i]. */
enum { H5_TOGETHER = 4 };
int h5_arrays_write(struct h5_array *const *list, int count, gidx first, gidx n,
                    const void *const *values);

/* Write what is pending, the last chunk of an array filled up. */
int h5_array_flush(struct h5_array *a);

/* Before an array is closed: write what is pending, and the hash if it is complete. */
int h5_array_end(struct h5_array *a);

#endif
