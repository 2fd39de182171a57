/* SPDX-License-Identifier: BSD-3-Clause
 * The sweeps of a fit: what is shown, published and saved of each, and where a job that is asked to
 * stop leaves.
 *
 * Floor: cli. */
#ifndef CLI_FIT_SWEEPS_H
#define CLI_FIT_SWEEPS_H

#include "cli/fit_job.h"

/* Fit, until all that is to be published of the sweeps is there, or will not be.  j->best and
 * j->mean <- those of the best sweep.  Collective. */
int fit_sweeps_run(struct fit_job *j);

#endif
