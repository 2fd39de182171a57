/* SPDX-License-Identifier: BSD-3-Clause
 * What a run says about itself, for programs: /run of its results, run.json, and the object that
 * --json prints; doc/formats.md and doc/json.md list the entries.
 *
 * Floor: job.  Used by rank 0 alone; not collective.
 *
 * run.json is the log for programs.  It lies beside the results, and describes the run that
 * published the last of them.  It is written after a result, under a temporary name that is then
 * renamed, so no reader sees half of it.  If it cannot be written, a warning says so.  The
 * functions summary_..._add() and _set() note its contents. */
#ifndef JOB_SUMMARY_H
#define JOB_SUMMARY_H

#include "base/json.h"
#include "base/phase.h"
#include "job/run.h"
#include "model/identity.h"
#include "model/results.h"

/* Fill the facts of /run (doc/formats.md), and note the device for run.json.  Returns the number of
 * facts; their texts are valid until the next call. */
enum { MAX_FACTS = 64 };
int run_facts(const struct run *run, const char *device, int threads, struct run_fact *facts);

/* Begin an object with the entries that every object of --json has. */
void facts_head(struct json *j, const struct program *program, const char *command);

/* For run->wants_json: begin an object, with these entries.  facts_end() ends it and prints it to
 * stdout, so a command that fails before that prints nothing.  ERR_MEMORY. */
int facts_begin(const struct run *run, struct json *j);
int facts_end(struct json *j);

void summary_phase_add(const struct phase_line *phase);
void summary_metrics_set(const struct metrics *metrics, int has_codes);
void summary_device_set(const char *device);
void summary_inputs_set(const struct identity *inputs);
/* Give run.json a command's own format, such as "sagitta fit".  The command's entries then replace
 * device, inputs, metrics, seconds and stopped.  The file is written even without a result. */
void summary_format_set(const char *format);
/* *j <- where a command adds its own entries, which precede those noted above.  ERR_MEMORY. */
int summary_entries(struct json **j);

/* Write run.json with what is noted so far, for a run that continues.  Then clear the command's own
 * entries, since it adds them anew each time. */
void summary_write(const struct run *run);

/* The run has ended: write run.json if the run published a result.  With --json print its entries,
 * without host, start, options, libraries, job, ranks and cores, unless the command printed its own
 * object.  Only the first call counts: that of main, or of a command whose options are freed at its
 * end.  ERR_MEMORY. */
int summary_end(const struct run *run);

#endif
