/* SPDX-License-Identifier: BSD-3-Clause
 * What a fit adds to run.json (job/summary.h) after each sweep.
 *
 * Floor: cli. */
#ifndef CLI_FIT_SUMMARY_H
#define CLI_FIT_SUMMARY_H

#include "cli/fit_job.h"

/* Add the entries of a fit, `of`, a struct fit_job.  Rank 0 alone; not collective. */
int fit_summary(const void *of, struct json *own);

#endif
