/* SPDX-License-Identifier: BSD-3-Clause
 * What encode and route print: the plan of --dry-run, the options that took effect, and the
 * results.
 *
 * Floor: cli. */
#ifndef CLI_ENCODE_REPORT_H
#define CLI_ENCODE_REPORT_H

#include "cli/command.h"
#include "cli/report.h"
#include "encode/encode.h"
#include "encoding/encode_files.h"

/* Print how the work is split, the memory and disk that it needs, and how long it takes: as lines,
 * or with --json as an object.  Rank 0 prints. */
int encode_plan_print(const struct run *run, const struct encode_task *task,
                      const struct plan_rates *rates, const struct times *times);

/* The --cosine-limit that the identity has for k atoms: all limits that let the cosine be computed
 * count as the same. */
idx cosine_limit_resolved(idx limit, idx k);

/* Begin the identity of `sagitta encode` for all rows, with the values of a task that routes them
 * and solves codes. */
int encode_identity_begin(struct identity_text *identity, const struct encode_task *task);

/* The option if it is given; else the number that the dictionary was fitted with, at most `most`;
 * else the standard.  *by <- which of these it is, for the log. */
idx encode_number_choose(idx option, idx fitted, idx most, idx standard, const char **by);

/* Print the summary line, and the tables of phases, GPUs, filter and metrics.  seconds: of the
 * whole run.  Counts of *result become those of all ranks.  Collective. */
int encode_report(struct run *run, const struct encode_files *files, const struct encode_task *task,
                  struct encode_result *result, double seconds);

/* Publish the result with its devices and counts, and add them to run.json.  Rank 0 alone. */
int encode_close(struct encode_files *files, const struct encode_result *result);

#endif
