/* SPDX-License-Identifier: BSD-3-Clause
 * The mean that was subtracted from the rows before anything else, /mean: a dictionary has it, and
 * supports repeat it.
 *
 * Floor: io.  Not collective. */
#ifndef IO_MEAN_H
#define IO_MEAN_H

#include "io/schema.h"

extern const struct object_table mean_objects;

/* *mean <- the vector, which the caller frees also when this fails; *length <- its entries.
 * ERR_INPUT when it is not a vector of p reals; p -1: of any length. */
int mean_read(const struct h5_file *f, gidx p, real **mean, gidx *length);

/* ERR_INPUT: a value of a file's mean is not finite, or beyond float32.  mean may be NULL. */
int mean_values_check(const real *mean, gidx p, const char *file);

/* The same of a file that is verified. */
int mean_check(const struct verify *v);

#endif
