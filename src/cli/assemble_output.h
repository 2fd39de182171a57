/* SPDX-License-Identifier: BSD-3-Clause
 * The result of assemble: the whole, or what a run that was stopped leaves: the first systems, in
 * the place of the result, from which --resume goes on.
 *
 * Floor: cli. */
#ifndef CLI_ASSEMBLE_OUTPUT_H
#define CLI_ASSEMBLE_OUTPUT_H

#include "io/systems.h"
#include "job/job.h"
#include "refit/all_systems.h"

struct assemble_output {
  struct job job;              /* opened by the next */
  struct all_systems *all;     /* borrowed; set by the caller before job_begin() */
  struct systems_output file;  /* its sink takes the systems behind those of the earlier run */
  struct systems_input before; /* of that run, on rank 0 */
  uint64_t mark;               /* of the classes, on rank 0 */
};

/* Open the job.  Behind job_begin() the systems that are still to be made are those that the
 * earlier run has not.  Collective. */
int assemble_output_open(struct assemble_output *o, struct run *run,
                         const struct output_options *output, int resume,
                         const struct run_inputs *inputs);

/* *fingerprint, of the systems of this run, <- that of all so far; and publish.  Rank 0 alone. */
int assemble_output_end(struct assemble_output *o, uint64_t *fingerprint,
                        const struct run_fact *facts, int n_facts);

#endif
