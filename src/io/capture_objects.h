/* SPDX-License-Identifier: BSD-3-Clause
 * Objects of captures: floats of any type, integers, starts of sequences, and attributes.
 *
 * Floor: io.  Not collective.  Each fails with ERR_INPUT where the object is not what it has to be;
 * the message names the file and what to do. */
#ifndef IO_CAPTURE_OBJECTS_H
#define IO_CAPTURE_OBJECTS_H

#include "base/memory.h"
#include "io/h5/h5.h"

/* Open an array of floats; rank 0: any.  shape is for the message. */
int capture_floats_open(const struct h5_file *f, const char *object, int rank, const char *shape,
                        struct h5_array *a);
/* *(idx or gidx **)values <- a whole array of integers of rank 1 or 2, in the arena; a is to be
 * closed, also when this fails. */
int capture_integers_read(const struct h5_file *f, struct arena *arena, const char *object,
                          int rank, enum h5_type as, struct h5_array *a, void *values);
/* *start <- [*sequences + 1] of an object, rising from 0 to n; the second takes all for one
 * sequence where the object is not there. */
int capture_starts_read(const struct h5_file *f, struct arena *arena, const char *object, gidx n,
                        gidx *sequences, gidx **start);
int capture_sequences_read(const struct h5_file *f, struct arena *arena, const char *object, gidx n,
                           gidx *sequences, gidx **start);
/* *value <- a number that is an attribute of the file, as it is where the file says nothing. */
int capture_number_read(const struct h5_file *f, const char *name, real *value);
/* text[capacity] <- an attribute of the file, empty where it is not there. */
int capture_text_read(const struct h5_file *f, const char *name, char *text, int capacity);

/* The attribute `mixer`, of what is captured: attention where it is not there. */
int capture_mixer_read(const struct h5_file *f, char *text, int capacity);
/* The same of a capture by name. */
int capture_mixer_find(const char *name, char *text, int capacity);

#endif
