/* SPDX-License-Identifier: BSD-3-Clause
 * A fit that leaves no files: the atoms of its best sweep stay in memory.
 *
 * Floor: fit. */
#ifndef FIT_QUIET_H
#define FIT_QUIET_H

#include "fit/fit.h"

struct fit_quiet {
  const char *name;     /* borrowed: what its lines in the log begin with */
  float *atoms;         /* [k][p] the caller's; <- those of the best sweep, on every rank */
  real *mean;           /* [p] the caller's, <- that of the fitted rows; NULL: not centered */
  struct fit_line best; /* <- the line of the best sweep */
  enum fit_end end;     /* FIT_STOPPED: atoms are those until then */
  gidx sweeps;          /* done */
  struct stops stops;   /* asked before a sweep, inside it, and while rows are read and coded */
};

/* Fit a task that begins anew.  Statuses are those of fit_run().  Collective; the same status on
 * every rank. */
int fit_quiet_run(const struct fit_task *task, struct comm *c, struct fit_quiet *quiet);

#endif
