/* SPDX-License-Identifier: BSD-3-Clause
 * The results of solve and of assemble.  A run that is stopped leaves a part of the result in its
 * place: the first systems, or their solutions.  --resume continues after this part.
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
  struct job job; /* set by the caller, like systems and options, which are borrowed */
  const struct systems_input *systems;
  const struct arrow_options *options;
  /* On rank 0. */
  struct solutions_output file;  /* its sink begins after the systems of the earlier run */
  struct solutions_input before; /* what the earlier run left */
  struct solve_result counted;   /* totals of `before`, after job_begin() or job_complete() */
  uint64_t mark;                 /* identifies the systems */
};
/* Open the job, whose inputs are the systems.  Collective. */
int solve_output_open(struct solve_output *f, const char *systems);
/* Publish what this run and the earlier one solved.  Rank 0 alone. */
int solve_output_end(struct solve_output *f, const struct solve_result *result,
                     const struct run_fact *facts, int n_facts);

struct assemble_output {
  struct job job;              /* set by the caller */
  struct all_systems *all;     /* borrowed; set by the caller before job_begin() */
  struct systems_output file;  /* its sink begins after the systems of the earlier run */
  struct systems_input before; /* the part of the earlier run, on rank 0 */
  uint64_t mark;               /* identifies the classes, on rank 0 */
};
/* Open the job.  After job_begin(), o->all has only the systems that the earlier run did not make.
 * Collective. */
int assemble_output_open(struct assemble_output *o, const struct run_inputs *inputs);
/* Publish.  *fingerprint: on entry of this run's systems, on return of all systems.  Rank 0. */
int assemble_output_end(struct assemble_output *o, uint64_t *fingerprint,
                        const struct run_fact *facts, int n_facts);

#endif
