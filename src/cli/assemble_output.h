/* SPDX-License-Identifier: BSD-3-Clause
 * The result of assemble: the whole, or what a run that was stopped leaves: the first systems, in
 * the place of the result, from which --resume goes on.
 *
 * Floor: cli. */
#ifndef CLI_ASSEMBLE_OUTPUT_H
#define CLI_ASSEMBLE_OUTPUT_H

#include "cli/command.h"
#include "io/systems.h"
#include "refit/all_systems.h"

struct assemble_output {
  gidx begun;                  /* systems that an earlier run has made; on every rank */
  int is_complete;             /* that run has made all; then nothing is begun */
  struct output_place place;   /* on rank 0, as are the next */
  struct systems_output file;  /* its sink takes the systems behind those */
  struct systems_input before; /* of the earlier run */
  uint64_t mark;               /* of the classes */
};

/* Claim the place, with resume find what an earlier run left, and begin used.in and run.log.
 * ERR_CREATE: there is something else.  Collective. */
int assemble_output_open(struct assemble_output *o, struct run *run,
                         const struct output_options *output, int resume,
                         const struct run_inputs *inputs);

/* Is what is complete of the same job?  ERR_INPUT says in what it differs.  Collective. */
int assemble_output_complete(struct assemble_output *o, struct run *run,
                             const struct all_systems *all);

/* Begin the result with what the earlier run left, if it is of the same job: ERR_INPUT; the systems
 * that are still to be made are then those behind.  Collective. */
int assemble_output_begin(struct assemble_output *o, struct run *run, struct all_systems *all);

/* *fingerprint, of the systems of this run, <- that of all so far; and publish.  Rank 0 alone. */
int assemble_output_end(struct assemble_output *o, const struct all_systems *all,
                        uint64_t *fingerprint, const struct run_fact *facts, int n_facts);

#endif
