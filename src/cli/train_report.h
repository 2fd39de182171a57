/* SPDX-License-Identifier: BSD-3-Clause
 * What a training says in its log and in run.json.
 *
 * Floor: cli.  Rank 0 alone; not collective. */
#ifndef CLI_TRAIN_REPORT_H
#define CLI_TRAIN_REPORT_H

#include "base/lines.h"
#include "cli/train_job.h"

/* With --dry-run: how the work is split, and the memory and disk that it needs, as lines or, with
 * --json, as facts. */
int train_plan_show(struct train_job *j);

/* The next line that was not shown, with the pace. */
void train_line_log(struct train_job *j, const struct train_point *point);
/* Steps that are too long may end where all is finite, and nothing was learned: a warning. */
void train_outcome_check(const struct train_job *j, const struct train_point *point);
/* At the end. */
void train_report(const struct train_job *j);

/* A struct train_line: in run.json, and as a struct training_line. */
extern const struct line_form train_line_form;
/* What a training, `of`, adds to run.json at the end, or while it goes on. */
int train_summary_json(const void *of, struct json *own);

#endif
