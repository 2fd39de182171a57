/* SPDX-License-Identifier: BSD-3-Clause
 * Solutions of arrow systems: solutions.h5.
 *
 * Floor: io.  Used by rank 0 alone; not collective. */
#ifndef IO_SOLUTIONS_H
#define IO_SOLUTIONS_H

#include "io/identity.h"
#include "io/outputs.h"
#include "io/schema.h"
#include "model/systems.h"

extern const struct file_kind solutions_kind;

enum { OUTCOME_ARRAYS = 9 };

/* solutions.h5 being written. */
struct solutions_output {
  struct result_file result;
  const struct systems_shape *shape; /* borrowed */
  struct h5_array step_t, step_b, outcomes[OUTCOME_ARRAYS];
  struct solution_sink sink; /* blocks are written here, in order */
};
gidx solutions_bytes(const struct systems_shape *shape); /* size on disk, estimated from above */
int solutions_output_create(struct solutions_output *r, const char *path,
                            const struct systems_shape *shape, const struct arrow_options *options);
/* Publish; inputs: what the systems were made from.  ERR_INTERNAL when solutions are missing. */
int solutions_output_finish(struct solutions_output *r, const struct identity *inputs,
                            const struct run_fact *facts, int n_facts);

#endif
