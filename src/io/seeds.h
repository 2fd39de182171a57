/* SPDX-License-Identifier: BSD-3-Clause
 * What a dictionary.h5 says of fits of other seeds: how well they found its atoms again (N.38).
 *
 * Floor: io.  Not collective. */
#ifndef IO_SEEDS_H
#define IO_SEEDS_H

#include <stdio.h>

#include "base/json.h"
#include "base/memory.h"
#include "io/schema.h"
#include "model/stability.h"

extern const struct object_table seeds_objects;

enum { SEEDS_MOST = 1000 };

struct seeds_record {
  idx k, wanted;    /* atoms; other seeds that were asked for */
  idx done;         /* of them, so far; 0: nothing is written */
  gidx first;       /* the number of the first of them, which the others follow */
  char extent[128]; /* how far each fit goes, as a text */
  float *cosine;    /* [done][k] of each atom and its pair */
  float *stability; /* [k]; NULL: they are not all done */
};

/* Add it to a dictionary that is being written. */
int seeds_write(const struct h5_file *f, const struct seeds_record *record);
/* *record <- what a dictionary of k atoms that is open says, in the arena, with room for all that
 * are wanted; done 0: nothing.  ERR_INPUT: it is not as seeds_write() makes it. */
int seeds_read(const struct h5_file *f, idx k, struct arena *arena, struct seeds_record *record);

/* The check of dictionaries, and what `inspect` shows of them below the list of objects, and with
 * --json: nothing where there are no other seeds. */
struct verify;
int seeds_check(const struct verify *v);
int seeds_show(const struct h5_file *f, FILE *out, const char **group);
int seeds_json(const struct h5_file *f, struct json *j);
/* The entry "stability"; none for NULL, or without seeds. */
void stability_json(const struct stability *s, struct json *j);

#endif
