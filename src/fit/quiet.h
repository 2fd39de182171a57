/* SPDX-License-Identifier: BSD-3-Clause
 * A fit that leaves no files: the atoms of its best sweep stay in memory.
 *
 * Floor: fit. */
#ifndef FIT_QUIET_H
#define FIT_QUIET_H

#include "fit/fit.h"

struct fit_quiet {
  const char *name;     /* borrowed: prefix of its lines in the log */
  float *atoms;         /* [k][p], of the caller; <- the atoms of the best sweep, on every rank */
  real *mean;           /* [p], of the caller; <- the mean of the fitted rows; NULL: not centered */
  struct fit_line best; /* <- the line of the best sweep */
  enum fit_end end;     /* FIT_STOPPED: the best sweep is one of those before the stop */
  gidx sweeps;          /* sweeps done */
  struct stops stops;   /* asked before a sweep, inside it, and while rows are read and coded */
};

/* Run a task that does not resume.  Returns the statuses of fit_run().  Collective; the same status
 * on every rank. */
int fit_quiet_run(const struct fit_task *task, struct comm *c, struct fit_quiet *quiet);

#endif
