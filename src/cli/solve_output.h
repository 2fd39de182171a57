/* SPDX-License-Identifier: BSD-3-Clause
 * The result of solve: the whole, or what a run that was stopped leaves: the solutions of the first
 * systems, in the place of the result, from which --resume goes on.
 *
 * Floor: cli. */
#ifndef CLI_SOLVE_OUTPUT_H
#define CLI_SOLVE_OUTPUT_H

#include "cli/command.h"
#include "io/solutions.h"
#include "io/systems.h"
#include "solve/solve.h"

struct solve_output {
  gidx begun;                    /* systems that an earlier run has solved; on every rank */
  int is_complete;               /* that run has solved all; then nothing is begun */
  struct output_place place;     /* on rank 0, as are the next */
  struct solutions_output file;  /* its sink takes the systems behind those */
  struct solutions_input before; /* of the earlier run */
  struct solve_result counted;   /* its outcomes */
  uint64_t mark;                 /* of the systems */
};

/* Claim the place, with resume find what an earlier run left, and begin used.in and run.log.
 * ERR_CREATE: there is something else.  Collective. */
int solve_output_open(struct solve_output *f, struct run *run, const struct output_options *output,
                      int resume, const char *systems, gidx total);

/* Is what is complete of the same job, by run->identity?  ERR_INPUT says in what it differs.
 * f->counted, on rank 0 <- its outcomes.  Collective. */
int solve_output_complete(struct solve_output *f, struct run *run,
                          const struct systems_input *systems);

/* Begin the result with what the earlier run left, if it is of the same job: ERR_INPUT.
 * Collective. */
int solve_output_begin(struct solve_output *f, struct run *run, const struct systems_input *systems,
                       const struct arrow_options *options);

/* Add what the earlier run counted to the result of this one, and publish.  Rank 0 alone. */
void solve_output_join(const struct solve_output *f, struct solve_result *result);
int solve_output_end(struct solve_output *f, const struct systems_input *systems,
                     const struct solve_result *result, const struct run_fact *facts, int n_facts);

#endif
