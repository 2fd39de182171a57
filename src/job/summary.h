/* SPDX-License-Identifier: BSD-3-Clause
 * run.json: what the log of a run says, for programs; doc/formats.md has its entries.
 *
 * Floor: job.  Used by rank 0 alone; not collective.
 *
 * It lies beside the results of the run that published them last, and is written after a result,
 * under a temporary name that is renamed, so that it can be watched.  Where it cannot be written
 * the result is there nevertheless, and a warning says so.  What a report shows is noted for it:
 * phases, metrics and what the facts of a result name as the device. */
#ifndef JOB_SUMMARY_H
#define JOB_SUMMARY_H

#include "base/json.h"
#include "job/run.h"
#include "model/identity.h"
#include "model/results.h"

/* A line of the table of phases: seconds over the ranks, work of all. */
struct summary_phase {
  const char *name, *unit, *on; /* borrowed: of literals */
  gidx calls;
  double least, mean, most, work;
};
void summary_phase_add(const struct summary_phase *phase);
void summary_metrics_set(const struct metrics *metrics, int has_codes);
void summary_device_set(const char *device);
void summary_inputs_set(const struct identity *inputs);
/* The entries of this command stand in the place of all others but phases, under a format of its
 * own, such as "sagitta fit".  The file is written whether a result was published or not. */
void summary_format_set(const char *format);
/* *j <- where a command adds entries of its own, which stand before the others.  ERR_MEMORY. */
int summary_entries(struct json **j);

/* An entry "metrics". */
void metrics_json(const struct metrics *metrics, int has_codes, struct json *j);

/* Write what is noted so far, of a run that goes on, and clear the command's own entries, which it
 * adds anew each time. */
void summary_write(const struct run *run);

/* The run has ended: write it, if the run published a result; and with --json, print its entries
 * but for options, libraries and seats, unless the command printed an object of its own (facts.h).
 * Only the first call counts: main's, or that of a command whose options end with it.
 * ERR_MEMORY. */
int summary_end(const struct run *run);

#endif
