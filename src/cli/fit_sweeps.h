/* SPDX-License-Identifier: BSD-3-Clause
 * The sweeps of a fit: what is shown, published and saved of each, and where a job that is asked to
 * stop leaves.
 *
 * Floor: cli. */
#ifndef CLI_FIT_SWEEPS_H
#define CLI_FIT_SWEEPS_H

#include "cli/fit_job.h"

/* j->sink <- what fit_run() calls.  Not collective. */
void fit_sweeps_begin(struct fit_job *j);
/* Behind fit_run(), with its status: wait until all that is to be published of the sweeps is there,
 * or will not be.  j->best and j->mean are those of the best sweep.  Collective. */
int fit_sweeps_end(struct fit_job *j, int status);

#endif
