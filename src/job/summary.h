/* SPDX-License-Identifier: BSD-3-Clause
 * What a run says of itself, for programs: /run of its results, run.json, and the object that
 * --json prints; doc/formats.md and doc/json.md have their entries.
 *
 * Floor: job.  Used by rank 0 alone; not collective.
 *
 * run.json is the log for programs, beside the results of the run that published them last.  It is
 * written after a result, under a temporary name that is then renamed, so that it can be watched.
 * If it cannot be written, a warning says so.  Reports note here what it needs: phases, metrics,
 * and the device that the facts of a result name. */
#ifndef JOB_SUMMARY_H
#define JOB_SUMMARY_H

#include "base/json.h"
#include "base/phase.h"
#include "job/run.h"
#include "model/identity.h"
#include "model/results.h"

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

void summary_phase_add(const struct phase_line *phase);
void summary_metrics_set(const struct metrics *metrics, int has_codes);
void summary_device_set(const char *device);
void summary_inputs_set(const struct identity *inputs);
/* The entries of this command replace all others except phases, under a format of its own, such as
 * "sagitta fit".  The file is then written whether a result was published or not. */
void summary_format_set(const char *format);
/* *j <- where a command adds entries of its own, which come before the others.  ERR_MEMORY. */
int summary_entries(struct json **j);

/* Write what is noted so far, for a run that continues, and clear the command's own entries, which
 * it adds anew each time. */
void summary_write(const struct run *run);

/* The run has ended: write the file if the run published a result.  With --json print its entries,
 * without options, libraries and seats, unless the command printed an object of its own.
 * Only the first call counts: that of main, or of a command whose options are freed at its end.
 * ERR_MEMORY. */
int summary_end(const struct run *run);

#endif
