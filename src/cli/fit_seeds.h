/* SPDX-License-Identifier: BSD-3-Clause
 * Fits of other seeds behind a fit: how well they find its atoms again (N.38).
 *
 * Floor: cli.
 *
 * They run one after another, with the same rows and options, and leave no files.  dictionary.h5 is
 * written again after each: a run that is stopped goes on behind the last one that ended. */
#ifndef CLI_FIT_SEEDS_H
#define CLI_FIT_SEEDS_H

#include "cli/fit_job.h"

/* Before any work: is there memory, and what has an earlier run left?  Collective. */
int fit_seeds_open(struct fit_job *j);
/* The fit has ended: fit the other seeds, and write dictionary.h5 with what they say; without any,
 * only what the fit left open.  It may stop (j->run->stopped).  Collective. */
int fit_seeds_run(struct fit_job *j);
/* Rows are encoded, and so it is known how often atoms fire: count what the seeds say, and say it.
 * Rank 0; not collective. */
int fit_seeds_count(struct fit_job *j);
void fit_seeds_log(const struct fit_job *j);

#endif
