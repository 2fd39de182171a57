/* SPDX-License-Identifier: BSD-3-Clause
 * What --dry-run of encode and route says, and what of their options counts.
 *
 * Floor: cli. */
#ifndef CLI_ENCODE_PLAN_H
#define CLI_ENCODE_PLAN_H

#include "cli/command.h"
#include "encode/encode.h"

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

#endif
