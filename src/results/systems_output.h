/* SPDX-License-Identifier: BSD-3-Clause
 * The results of solve and of assemble: the whole, or what a run that was stopped leaves: the first
 * systems, or their solutions, in the place of the result, from which --resume goes on.
 *
 * Floor: results. */
#ifndef RESULTS_SYSTEMS_OUTPUT_H
#define RESULTS_SYSTEMS_OUTPUT_H

#include "io/solutions.h"
#include "io/systems.h"
#include "job/job.h"
#include "refit/all_systems.h"
#include "solve/solve.h"

struct solve_output {
  struct job job; /* set by the caller, as are the next two, borrowed */
  const struct systems_input *systems;
  const struct arrow_options *options;
  /* On rank 0. */
  struct solutions_output file;  /* its sink takes the systems behind those of the earlier run */
  struct solutions_input before; /* of that run */
  struct solve_result counted;   /* its outcomes, after job_begin() or job_complete() */
  uint64_t mark;                 /* of the systems */
};
/* Open the job, whose inputs are the systems.  Collective. */
int solve_output_open(struct solve_output *f, const char *systems);
/* Publish what this run and the earlier one solved.  Rank 0 alone. */
int solve_output_end(struct solve_output *f, const struct solve_result *result,
                     const struct run_fact *facts, int n_facts);

struct assemble_output {
  struct job job;              /* set by the caller */
  struct all_systems *all;     /* borrowed; set by the caller before job_begin() */
  struct systems_output file;  /* its sink takes the systems behind those of the earlier run */
  struct systems_input before; /* of that run, on rank 0 */
  uint64_t mark;               /* of the classes, on rank 0 */
};
/* Open the job.  Behind job_begin() the systems that are still to be made are those that the
 * earlier run has not.  Collective. */
int assemble_output_open(struct assemble_output *o, const struct run_inputs *inputs);
/* *fingerprint, of the systems of this run, <- that of all so far; and publish.  Rank 0 alone. */
int assemble_output_end(struct assemble_output *o, uint64_t *fingerprint,
                        const struct run_fact *facts, int n_facts);

#endif
