/* SPDX-License-Identifier: BSD-3-Clause
 * Detectors of the atoms that a fit has found (N.36, N.37), as `sagitta detect` makes them.
 *
 * Floor: cli.  Nothing is done where --detectors is not given. */
#ifndef CLI_FIT_DETECTORS_H
#define CLI_FIT_DETECTORS_H

#include "cli/fit_job.h"

/* Before any work: can there be some, and is there memory for them?  Collective. */
int fit_detectors_check(struct fit_job *j);
/* *bytes <- what this rank takes for them; 0: there are to be none.  Not collective. */
int fit_detectors_bytes(const struct fit_job *j, gidx *bytes);
/* supports.h5 is there: make them, and write dictionary.h5 again with them.  Collective. */
int fit_detectors_run(struct fit_job *j);

#endif
