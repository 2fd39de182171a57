/* SPDX-License-Identifier: BSD-3-Clause
 * systems.h5: arrow systems (model/arrow.h).
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
  struct identity inputs;   /* hashes of the inputs of the systems, if the file has them */
  struct systems_part part; /* for a file that a stopped run left */
  idx *atom, *color;        /* [shape.count] set by systems_part_open(); in the arena */
};
/* Open the systems of any file that has them, ours or not.  ERR_IO: cannot open; ERR_INPUT: an
 * object is missing or has another type or shape, offsets decrease or do not end at the end of the
 * data, d or k is out of range, an atom is listed twice, or the file is what a stopped run left. */
int systems_input_open(struct systems_input *f, const char *path);
void systems_input_close(struct systems_input *f);
/* *mark <- a hash that identifies these systems: of all sizes, of some of their values, and of the
 * hashes in a file that Sagitta wrote. */
int systems_input_mark(const struct systems_input *f, uint64_t *mark);

/* Verify and open a file that a stopped run left, or a complete file, for which part.systems is 0.
 * Call systems_input_close() also after a failure.  ERR_IO: cannot open; ERR_INPUT: damaged, or
 * something else. */
int systems_part_open(struct systems_input *f, const char *path);
/* Write the systems of the file, with their rows, to a sink. */
int systems_copy(const struct systems_input *f, const struct system_sink *sink);

/* systems.h5 being written. */
struct systems_output {
  struct result_file result;
  const struct systems_shape *shape; /* shape, atom, color: borrowed */
  const idx *atom, *color;
  struct h5_array arrays[SYSTEM_ARRAYS], rows;
  int has_rows;
  struct system_sink sink; /* blocks are written here, in order */
};
/* Size on disk, an upper bound; systems_max_bytes() is for `count` systems with n rows in all. */
gidx systems_bytes(const struct systems_shape *shape, int has_rows);
gidx systems_max_bytes(gidx n, gidx count, gidx d, gidx k);
/* atom[count] has no atom twice; color[count].  has_rows: the blocks written include global row
 * numbers.  Until a system is written, its k in the shape may be an upper bound. */
int systems_output_create(struct systems_output *r, const char *path,
                          const struct systems_shape *shape, const idx *atom, const idx *color,
                          int has_rows);
/* Publish.  inputs: hashes of the inputs of the systems.  part: how many systems the file has, and
 * a mark.  part NULL: the file must have all systems (if not, ERR_INTERNAL), and gets no mark. */
int systems_output_finish(struct systems_output *r, const struct identity *inputs,
                          const struct systems_part *part, const struct run_fact *facts,
                          int n_facts);

#endif
