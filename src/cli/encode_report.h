/* SPDX-License-Identifier: BSD-3-Clause
 * What encode and route tell of what they did.
 *
 * Floor: cli. */
#ifndef CLI_ENCODE_REPORT_H
#define CLI_ENCODE_REPORT_H

#include "encoding/encode_files.h"
#include "cli/command.h"

/* The summary line, and the tables of phases, GPUs, filter and metrics, after so many seconds.
 * Counts of *result become those of all ranks.  Collective. */
int encode_report(struct run *run, const struct encode_files *files, const struct encode_task *task,
                  struct encode_result *result, double seconds);

/* Publish the result with where it ran and what was counted, and tell run.json.  Rank 0 alone. */
int encode_close(struct encode_files *files, const struct encode_result *result);

#endif
