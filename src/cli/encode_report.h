/* SPDX-License-Identifier: BSD-3-Clause
 * What encode and route say: with --dry-run, of what of their options counts, and of what they did.
 *
 * Floor: cli. */
#ifndef CLI_ENCODE_REPORT_H
#define CLI_ENCODE_REPORT_H

#include "cli/command.h"
#include "encode/encode.h"
#include "encoding/encode_files.h"

/* Print how the work is split, and the memory and disk that it needs, as lines or, with --json, as
 * facts.  Rank 0 does. */
int encode_plan_print(const struct run *run, const struct encode_task *task);

/* A --cosine-limit as it counts for k atoms: of those that let their cosine be computed all are the
 * same. */
idx cosine_limit_resolved(idx limit, idx k);

/* Begin the identity of `sagitta encode` of all rows, with the values of a task that routes them
 * and solves codes. */
int encode_identity_begin(struct identity_text *identity, const struct encode_task *task);

/* A number that is an option, else what the dictionary was fitted with, or the most that it may be,
 * else the standard; *by <- which of these, for the log. */
idx encode_number_choose(idx option, idx fitted, idx most, idx standard, const char **by);

/* The summary line, and the tables of phases, GPUs, filter and metrics, after so many seconds.
 * Counts of *result become those of all ranks.  Collective. */
int encode_report(struct run *run, const struct encode_files *files, const struct encode_task *task,
                  struct encode_result *result, double seconds);

/* Publish the result with where it ran and what was counted, and tell run.json.  Rank 0 alone. */
int encode_close(struct encode_files *files, const struct encode_result *result);

#endif
