/* SPDX-License-Identifier: BSD-3-Clause
 * systems.h5 and solutions.h5.
 *
 * Floor: io.  Reading is not collective: every rank opens the file itself; rank 0 alone writes.
 * Objects and types: doc/formats.md. */
#ifndef IO_SYSTEMS_H
#define IO_SYSTEMS_H

#include "io/outputs.h"
#include "model/systems.h"

enum { SYSTEM_ARRAYS = 5 };

struct systems_file {
  struct h5_file h5;
  struct arena arena;
  struct systems_shape shape;
  struct h5_array arrays[SYSTEM_ARRAYS]; /* D_blocks, B_blocks, g_t, hbb, g_b */
  struct system_source source;
};
/* Open the systems of any file that has them, ours or not.  ERR_IO: cannot open; ERR_INPUT: an
 * object lacks or has another type or shape, offsets fall or do not end at the data, d or k out of
 * range, an atom is listed twice. */
int systems_open(struct systems_file *f, const char *path);
void systems_close(struct systems_file *f);

/* Systems being written, in blocks. */
struct systems_result {
  struct result_file result;
  const struct systems_shape *shape; /* borrowed */
  struct h5_array arrays[SYSTEM_ARRAYS], rows;
  int has_rows;
  struct system_sink sink; /* writes blocks here */
};
gidx systems_bytes(const struct systems_shape *shape, int has_rows); /* on disk, from above */
/* The same of count systems of n rows in all, their rows with them. */
gidx systems_bytes_most(gidx n, gidx count, gidx d, gidx k);
/* atom[count] each once, color[count]; has_rows: blocks bring their global rows.  Until a system is
 * written, its k in the shape may be an upper bound. */
int systems_create(struct systems_result *r, const char *path, const struct systems_shape *shape,
                   const idx *atom, const idx *color, int has_rows);
int systems_finish(struct systems_result *r, const struct run_fact *facts, int n_facts);

/* Solutions being written, in blocks. */
enum { OUTCOME_ARRAYS = 9 };
struct solutions_result {
  struct result_file result;
  const struct systems_shape *shape; /* borrowed */
  struct h5_array step_t, step_b, outcomes[OUTCOME_ARRAYS];
  struct solution_sink sink; /* writes blocks here */
};
gidx solutions_bytes(const struct systems_shape *shape);
int solutions_create(struct solutions_result *r, const char *path,
                     const struct systems_shape *shape, const struct arrow_options *options);
int solutions_finish(struct solutions_result *r, const struct run_fact *facts, int n_facts);

#endif
