/* SPDX-License-Identifier: BSD-3-Clause
 * The tables at the end of a run: phases over ranks, metrics.
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

/* One line per phase that ran: its calls; its seconds (smallest, mean and largest over the ranks);
 * the rate of all ranks together, by the largest time; and where it ran: the device, or in the
 * background of the main thread.  Collective. */
int report_phases(struct comm *c, const struct phase *phases, int count);

/* What GPUs did, if there were any; *counts becomes the counts of all ranks.  Collective. */
int report_counts(struct comm *c, struct device_counts *counts);

/* What the certified filter did, and how many rows took the direct path for each reason; nothing if
 * it was off.  *counts becomes the counts of all ranks.  Collective. */
int report_filter(struct comm *c, struct screen_counts *counts);

/* --rates goes with --dry-run alone. */
int report_rates_check(const char *path, int dry_run);

/* Read the rates of --rates for a job of so many threads a rank on a device; path NULL: there are
 * none.  *t is then empty.  Rank 0 alone. */
struct json;
struct plan_rates {
  const char *path;
  struct rates rates;
  char differ[256]; /* what differs from where they were measured; "": nothing */
};
int report_rates_read(const struct run *run, const char *path, idx threads, const char *device,
                      struct plan_rates *r, struct times *t);

/* The lines of --dry-run about time, or its entries of an object.  ERR_INPUT: there is no rate for
 * a phase.  Rank 0 alone. */
int report_times(const struct plan_rates *r, const struct times *t);
int report_times_json(const struct plan_rates *r, const struct times *t, struct json *j);

/* The line of --dry-run about the memory that each rank has, which may be less than it needs.  Rank
 * 0 alone. */
void report_present(gidx needed, gidx present);

/* One line per metric.  Rank 0 alone. */
void report_metrics(const struct metrics *m, int has_codes);

#endif
