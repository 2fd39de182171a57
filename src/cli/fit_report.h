/* SPDX-License-Identifier: BSD-3-Clause
 * What a fit says in its log and in run.json.
 *
 * Floor: cli.  Rank 0 alone; not collective. */
#ifndef CLI_FIT_REPORT_H
#define CLI_FIT_REPORT_H

#include "base/lines.h"
#include "cli/fit_job.h"
#include "fit/forecast.h"

/* With --dry-run: how the work is split, and the memory and disk that the whole job needs, as lines
 * or, with --json, as facts.  j->encode is the encoding at the end, its grid chosen. */
int fit_plan_show(const struct fit_job *j, const struct fit_forecast *forecast);

/* Behind a sweep: its line, with the pace and how long the rest takes at most. */
void fit_line_log(const struct fit_job *j, const struct fit_sweep *sweep);

/* At the end, when all rows are encoded. */
void fit_report(struct fit_job *j);

/* A struct fit_line: in run.json, and as a struct history_line. */
extern const struct line_form fit_line_form;
/* What a fit, `of`, adds to run.json (job/summary.h) after each sweep. */
int fit_summary_json(const void *of, struct json *j);

#endif
