/* SPDX-License-Identifier: BSD-3-Clause
 * Solutions of arrow systems: solutions.h5.
 *
 * Floor: io.  Used by rank 0 alone; not collective. */
#ifndef IO_SOLUTIONS_H
#define IO_SOLUTIONS_H

#include "io/identity.h"
#include "io/outputs.h"
#include "io/schema.h"
#include "io/systems_part.h"
#include "model/systems.h"

extern const struct file_kind solutions_kind, solutions_part_kind;

enum { OUTCOME_ARRAYS = 10 };

/* solutions.h5 being written. */
struct solutions_output {
  struct result_file result;
  const struct systems_shape *shape; /* borrowed */
  struct h5_array step_t, step_b, outcomes[OUTCOME_ARRAYS];
  struct solution_sink sink; /* blocks are written here, in order */
};
gidx solutions_bytes(const struct systems_shape *shape); /* size on disk, an upper bound */
int solutions_output_create(struct solutions_output *r, const char *path,
                            const struct systems_shape *shape, const struct arrow_options *options);
/* Publish.  inputs: hashes of the inputs of the systems.  part: how many solutions the file has. */
int solutions_output_finish(struct solutions_output *r, const struct identity *inputs,
                            const struct systems_part *part, const struct run_fact *facts,
                            int n_facts);

/* The solutions that a stopped run left; or a complete file, for which part.systems is 0. */
struct solutions_input {
  struct h5_file h5;
  struct systems_part part;
  struct arrow_options options;
};
/* Verify and open it.  Call solutions_input_close() also after a failure.  ERR_IO: cannot open;
 * ERR_INPUT: damaged, or a file of another kind. */
int solutions_input_open(struct solutions_input *f, const char *path);
void solutions_input_close(struct solutions_input *f);
/* Write the f->part.systems solutions of the file to a sink.  shape: the shape of all systems.
 * ERR_INPUT: the steps have another shape. */
int solutions_copy(const struct solutions_input *f, const struct systems_shape *shape,
                   const struct solution_sink *sink);

#endif
