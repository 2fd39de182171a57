/* SPDX-License-Identifier: BSD-3-Clause
 * What a run logs at its end: phases over ranks, counters and metrics; and what --dry-run prints
 * about time and memory.
 *
 * Floor: cli. */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include "base/phase.h"
#include "comm/comm.h"
#include "device/device.h"
#include "job/run.h"
#include "model/rates.h"
#include "model/results.h"

/* Log one line per phase that ran, and note it for run.json.  The line has the largest number of
 * calls on a rank; the smallest, mean and largest seconds of a rank; the rate, which is the work of
 * all ranks divided by the largest seconds; and where the phase ran: the device, or "background"
 * if a thread other than the main one ran it.  Collective. */
int report_phases(struct comm *c, const struct phase *phases, int count);

/* *counts <- the sums over all ranks.  Log what the GPUs did, if any rank used one.  Collective. */
int report_counts(struct comm *c, struct device_counts *counts);

/* *counts <- the sums over all ranks; counts->max <- the largest of all ranks.  Log how often the
 * certified filter routed a row, and how often a row took the direct path, for each reason.  Log
 * nothing if the filter was off.  Collective. */
int report_filter(struct comm *c, struct screen_counts *counts);

/* ERR_USAGE: --rates (path) is given without --dry-run. */
int report_rates_check(const char *path, int dry_run);

struct json;
struct plan_rates {
  const char *path; /* NULL: no rates */
  struct rates rates;
  char differ[256]; /* what differs between this job and the measurement; "": nothing */
};
/* *r <- the rates in the file `path` of --rates; NULL: not given.  *t <- the seconds of the start,
 * if there are rates.  threads: per rank; device: "auto", "cpu" or "cuda".  Rank 0 alone. */
int report_rates_read(const struct run *run, const char *path, idx threads, const char *device,
                      struct plan_rates *r, struct times *t);

/* Print the lines of --dry-run about time; or add the times to an open JSON object, if there are
 * rates.  ERR_INPUT: there is no rate for a phase.  Rank 0 alone. */
int report_times(const struct plan_rates *r, const struct times *t);
int report_times_json(const struct plan_rates *r, const struct times *t, struct json *j);

/* Print the line of --dry-run about the memory that each rank can have: `present` bytes.  The line
 * says so if a rank needs more.  Rank 0 alone. */
void report_present(gidx needed, gidx present);

/* Log one line per metric; run.json gets them, too.  Without codes, metrics of codes are left out.
 * Rank 0 alone. */
void report_metrics(const struct metrics *m, int has_codes);

#endif
