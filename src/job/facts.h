/* SPDX-License-Identifier: BSD-3-Clause
 * Facts about a run: in /run of a result, and in the object that --json prints, which doc/json.md
 * describes.
 *
 * Floor: job.  Used by rank 0 alone; not collective. */
#ifndef JOB_FACTS_H
#define JOB_FACTS_H

#include "base/json.h"
#include "job/run.h"

/* Fill the facts of /run: version, revision, numerics, command, options, host, ranks, threads,
 * device, start and end.  Returns how many there are; their texts are valid until the next call. */
enum { MAX_FACTS = 64 };
int run_facts(const struct run *run, const char *device, int threads, struct run_fact *facts);

/* Begin an object with the entries that all such objects have. */
void facts_head(struct json *j, const struct program *program, const char *command);

/* For run->wants_json: begin the object, with the entries of all commands.  facts_end() ends it and
 * prints it to stdout, so a command that fails in between prints nothing.  ERR_MEMORY. */
int facts_begin(const struct run *run, struct json *j);
int facts_end(struct json *j);

/* Has the command printed its object? */
int facts_are_printed(void);

#endif
