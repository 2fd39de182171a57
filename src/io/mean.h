/* SPDX-License-Identifier: BSD-3-Clause
 * The vector /mean, which is subtracted from all rows first.  A dictionary has it, and supports
 * repeat it.
 *
 * Floor: io.  Not collective. */
#ifndef IO_MEAN_H
#define IO_MEAN_H

#include "io/schema.h"

extern const struct object_table mean_objects;

/* *mean <- the vector, which the caller frees, also after a failure; *length <- its number of
 * entries.  ERR_INPUT: it is not a vector of p reals.  With p -1 any length is accepted. */
int mean_read(const struct h5_file *f, gidx p, real **mean, gidx *length);

/* ERR_INPUT: a value is not finite, or beyond the range of float32.  mean may be NULL. */
int mean_values_check(const real *mean, gidx p, const char *file);

/* The same for the mean of a file that is being verified. */
int mean_check(const struct verify *v);

#endif
