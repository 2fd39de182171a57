/* SPDX-License-Identifier: BSD-3-Clause
 * What encode and route print: the plan of --dry-run and the results.  Also rules for the values
 * of --top-s, --rounds and --cosine-limit, which several commands use.
 *
 * Floor: cli. */
#ifndef CLI_ENCODE_REPORT_H
#define CLI_ENCODE_REPORT_H

#include "cli/command.h"
#include "cli/report.h"
#include "encode/encode.h"
#include "encoding/encode_files.h"

/* Print the plan, as lines, or with --json as an object: how the work is split, the memory and disk
 * that it needs, and with --rates how long it takes.  Rank 0 prints. */
int encode_plan_print(const struct run *run, const struct encode_task *task,
                      const struct plan_rates *rates, const struct times *times);

/* The --cosine-limit in the identity, for k atoms: all limits with which the decoder cosine is
 * computed count as one. */
idx cosine_limit_resolved(idx limit, idx k);

/* Begin the identity (job/identity.h) that `sagitta encode` would have for this task.  The task
 * must route all rows of its source, without an encoder, and solve codes.  cmd_encode.c defines
 * it. */
int encode_identity_begin(struct identity_text *identity, const struct encode_task *task);

/* Returns the option if it is not 0.  Otherwise returns the number with which the dictionary was
 * fitted, at most `most`, or the standard if that number is 0.  *by <- which of these it is, for
 * the log. */
idx encode_number_choose(idx option, idx fitted, idx most, idx standard, const char **by);

/* Log the summary line, and the tables of phases, GPUs, filter and metrics.  seconds: of the whole
 * run.  The counts in *result become those of all ranks.  Collective. */
int encode_report(struct run *run, const struct encode_files *files, const struct encode_task *task,
                  struct encode_result *result, double seconds);

/* Publish the result with the devices and counts of the run, and add its entries to run.json.  Rank
 * 0 alone. */
int encode_close(struct encode_files *files, const struct encode_result *result);

#endif
