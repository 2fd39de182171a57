/* SPDX-License-Identifier: BSD-3-Clause
 * What a refit computes and says of a sweep; refit_sweeps.h has when, and what becomes of it.
 *
 * Floor: cli.  Collective. */
#ifndef CLI_REFIT_STEPS_H
#define CLI_REFIT_STEPS_H

#include "cli/refit_job.h"

/* Line 0 of the history: what the codes explain as they come. */
int refit_start_evaluate(struct refit_job *j);
/* *explained, on rank 0 <- what the codes of the state explain, by their residuals; a warning where
 * a file says something else. */
int refit_state_evaluate(struct refit_job *j, const char *file, real said, real *explained);
/* j->held <- what the atoms explain of rows that the refit does not see. */
int refit_held_out_evaluate(struct refit_job *j);

/* Of ranks that all have all rows, all or none take their steps on a GPU. */
int refit_steps_open(struct refit_job *j);
int refit_classes_find(struct refit_job *j);
/* Round, code and evaluate the state. */
int refit_state_finish(struct refit_job *j, int reroute);
/* The line of a sweep, whose steps were these.  Rank 0 alone. */
void refit_line_add(struct refit_job *j, const struct sweep_counts *counts);

#endif
