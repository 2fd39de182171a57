/* SPDX-License-Identifier: BSD-3-Clause
 * How long a fit takes, by the rates of a machine.
 *
 * Floor: fit.  Not collective. */
#ifndef FIT_TIMES_H
#define FIT_TIMES_H

#include "fit/forecast.h"
#include "model/rates.h"

/* Add to *t the times of `runs` fits of a task by `ranks` ranks together: all its sweeps, without
 * the encoding at the end.  Returns the seconds of one sweep. */
double fit_times(const struct fit_task *task, const struct fit_forecast *f, int ranks, int runs,
                 const struct rates *r, struct times *t);

#endif
