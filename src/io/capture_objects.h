/* SPDX-License-Identifier: BSD-3-Clause
 * Objects of captures: floats of any type, integers, starts of sequences, and attributes.
 *
 * Floor: io.  Not collective.  Each function fails with ERR_INPUT if the object is not as required;
 * the message names the file and what to do. */
#ifndef IO_CAPTURE_OBJECTS_H
#define IO_CAPTURE_OBJECTS_H

#include "base/memory.h"
#include "io/h5/h5.h"

/* Open an array of floats with `rank` dimensions; 0: with any number of dimensions.  shape is for
 * the message. */
int capture_floats_open(const struct h5_file *f, const char *object, int rank, const char *shape,
                        struct h5_array *a);
/* *values <- a whole array of integers of rank 1 or 2, in the arena.  values points to an idx * if
 * `as` is TYPE_I32, and to a gidx * if it is TYPE_I64.  The caller closes *a, also after a
 * failure. */
int capture_integers_read(const struct h5_file *f, struct arena *arena, const char *object,
                          int rank, enum h5_type as, struct h5_array *a, void *values);
/* *start <- [*sequences + 1] of an object, ascending from 0 to n.  Without the object
 * capture_sequences_read() gives one sequence of all n. */
int capture_starts_read(const struct h5_file *f, struct arena *arena, const char *object, gidx n,
                        gidx *sequences, gidx **start);
int capture_sequences_read(const struct h5_file *f, struct arena *arena, const char *object, gidx n,
                           gidx *sequences, gidx **start);
/* *value <- a numeric attribute of the file; unchanged if there is none. */
int capture_number_read(const struct h5_file *f, const char *name, real *value);
/* text[capacity] <- a text attribute of the file; "" if there is none. */
int capture_text_read(const struct h5_file *f, const char *name, char *text, int capacity);

/* text[capacity] <- the attribute `mixer`, the kind of layer that was captured; "attention" if
 * there is none. */
int capture_mixer_read(const struct h5_file *f, char *text, int capacity);
/* The same, for a capture that is given by name.  ERR_IO: cannot open. */
int capture_mixer_find(const char *name, char *text, int capacity);

#endif
