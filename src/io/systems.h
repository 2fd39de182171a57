/* SPDX-License-Identifier: BSD-3-Clause
 * Arrow systems: systems.h5.
 *
 * Floor: io.  Reading is not collective: every rank opens the file itself.  Rank 0 alone writes. */
#ifndef IO_SYSTEMS_H
#define IO_SYSTEMS_H

#include "io/identity.h"
#include "io/outputs.h"
#include "io/schema.h"
#include "io/systems_part.h"
#include "model/systems.h"

extern const struct file_kind systems_kind, systems_part_kind;

enum { SYSTEM_ARRAYS = 5 };

struct systems_input {
  struct h5_file h5;
  struct arena arena;
  struct systems_shape shape;
  struct h5_array arrays[SYSTEM_ARRAYS]; /* D_blocks, B_blocks, g_t, hbb, g_b */
  struct system_source source;
  struct identity inputs;   /* that the systems were made from, where the file says it */
  struct systems_part part; /* of what a run that was stopped left */
  idx *atom, *color;        /* [shape.count], the same */
};
/* Open the systems of any file that has them, ours or not.  ERR_IO: cannot open; ERR_INPUT: an
 * object is missing or has another type or shape, offsets fall or do not end at the data, d or k is
 * out of range, an atom is listed twice; they are what a run that was stopped left. */
int systems_input_open(struct systems_input *f, const char *path);
void systems_input_close(struct systems_input *f);
/* *mark <- a hash by which these systems are told from others: of all sizes, of some of their
 * numbers, and of the hashes that a file of ours has. */
int systems_input_mark(const struct systems_input *f, uint64_t *mark);

/* Verify and open what a run that was stopped left, or a whole, whose part has 0 systems.
 * systems_input_close() follows also when it fails.  ERR_IO: cannot open; ERR_INPUT: damaged, or
 * something else. */
int systems_part_open(struct systems_input *f, const char *path);
/* Write its systems, with their rows, to a sink. */
int systems_copy(const struct systems_input *f, const struct system_sink *sink);

/* systems.h5 being written. */
struct systems_output {
  struct result_file result;
  const struct systems_shape *shape; /* borrowed, as are the next */
  const idx *atom, *color;
  struct h5_array arrays[SYSTEM_ARRAYS], rows;
  int has_rows;
  struct system_sink sink; /* blocks are written here, in order */
};
/* Size on disk, estimated from above; the second of count systems that have n rows in all. */
gidx systems_bytes(const struct systems_shape *shape, int has_rows);
gidx systems_max_bytes(gidx n, gidx count, gidx d, gidx k);
/* atom[count], each once, and color[count].  With has_rows blocks bring their global rows.  Until a
 * system is written, its k in the shape may be an upper bound. */
int systems_output_create(struct systems_output *r, const char *path,
                          const struct systems_shape *shape, const idx *atom, const idx *color,
                          int has_rows);
/* Publish; inputs: what the systems were made from.  part: how many are there, with a mark; NULL:
 * all are, or ERR_INTERNAL, and they have none. */
int systems_output_finish(struct systems_output *r, const struct identity *inputs,
                          const struct systems_part *part, const struct run_fact *facts,
                          int n_facts);

#endif
