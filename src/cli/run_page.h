/* SPDX-License-Identifier: BSD-3-Clause
 * run.json: what the log of a run says, for programs; doc/formats.md has its entries.
 *
 * Floor: cli.  Used by rank 0 alone; not collective.
 *
 * It lies beside the results of the run that published them last, and is written after a result,
 * under a temporary name that is renamed, so that it can be watched.  Where it cannot be written
 * the result is there nevertheless, and a warning says so.  What a report shows is noted for it:
 * phases, metrics and what the facts of a result name as the device. */
#ifndef CLI_RUN_PAGE_H
#define CLI_RUN_PAGE_H

#include "base/json.h"
#include "base/phase.h"
#include "cli/command.h"
#include "model/identity.h"
#include "model/results.h"

/* A line of the table of phases: seconds over the ranks, work of all. */
struct page_phase {
  const char *name, *unit, *on; /* borrowed: of literals */
  gidx calls;
  double least, mean, most, work;
};
void run_page_phase(const struct page_phase *phase);
void run_page_metrics(const struct metrics *metrics, int has_codes);
void run_page_device(const char *device);
void run_page_inputs(const struct identity *inputs);
/* *j <- where a command adds entries of its own, which stand before the others.  ERR_MEMORY. */
int run_page_own(struct json **j);

/* An entry "metrics", and one that is a hash of 64 bits. */
void page_metrics_tell(const struct metrics *metrics, int has_codes, struct json *j);
void page_hash_tell(struct json *j, const char *key, uint64_t hash);

/* Write the page of a command, whose own entries tell() adds. */
void run_page_write(const struct run *run, const char *format,
                    void (*tell)(const void *self, struct json *j), const void *self);

/* Write the page of what is noted so far, of a run that goes on, and forget the command's own
 * entries, which it adds anew each time. */
void run_page_now(const struct run *run);

/* The run has ended: write the page of a command that has none of its own, if the run published a
 * result. */
void run_page_end(const struct run *run);

/* With --json, print the page's entries but for options, libraries and seats, unless the command
 * printed an object of its own (facts.h); the second is for one that has a page of its own.
 * ERR_MEMORY. */
int run_page_print(const struct run *run);
int run_page_print_own(const struct run *run, void (*tell)(const void *self, struct json *j),
                       const void *self);

#endif
