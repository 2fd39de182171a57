/* SPDX-License-Identifier: BSD-3-Clause
 * The part of a dictionary.h5 about fits with other random seeds: how well they found the same
 * atoms again (N.38).
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
  idx k, wanted;    /* atoms; number of other seeds that were requested */
  idx done;         /* how many of these are done; 0: nothing is written */
  gidx first;       /* the first of the seeds, which are consecutive */
  char extent[128]; /* how far each fit goes, as a text */
  float *cosine;    /* [done][k] cosine of each atom and its match in that fit */
  float *stability; /* [k]; NULL: not all seeds are done */
};

/* Add the record to a dictionary that is being written. */
int seeds_write(const struct h5_file *f, const struct seeds_record *record);
/* *record <- the record of an open dictionary of k atoms, in the arena, with room for all `wanted`
 * seeds; record->done is 0 if the dictionary has no such record.  ERR_INPUT: it is not as
 * seeds_write() makes it. */
int seeds_read(const struct h5_file *f, idx k, struct arena *arena, struct seeds_record *record);

/* The check of this part of a dictionary, what `inspect` shows of it below the list of objects, and
 * its JSON.  All do nothing if there are no other seeds. */
struct verify;
int seeds_check(const struct verify *v);
int seeds_show(const struct h5_file *f, FILE *out, const char **group);
int seeds_json(const struct h5_file *f, struct json *j);
/* Add the entry "stability", unless s is NULL or has no seeds. */
void stability_json(const struct stability *s, struct json *j);

#endif
