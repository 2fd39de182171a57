/* SPDX-License-Identifier: BSD-3-Clause
 * run.json: what the log of a fit says, for programs; doc/formats.md has its entries.
 *
 * Floor: cli.  Used by rank 0 alone; not collective.
 *
 * It is the page of the run that published the results beside it: it is written anew after each of
 * them, under a temporary name that is renamed, so that it can be watched, and a run that fails
 * leaves the last one.  Where it cannot be written the result is there nevertheless, and a warning
 * says so. */
#ifndef CLI_FIT_PAGE_H
#define CLI_FIT_PAGE_H

#include "base/memory.h"
#include "cli/command.h"
#include "encode/encode.h"
#include "fit/fit.h"

struct fit_page {
  const struct run *run; /* borrowed, as are the next; filled in by the caller */
  const struct fit_task *task;
  const struct fit_result *result;     /* as far as it is known */
  const char *rows, *holdout;          /* names of the inputs; holdout may be NULL */
  double seconds;                      /* since the fit began */
  const struct encode_result *encoded; /* of all rows; NULL until the fit has ended */
  char path[4096];
  struct fit_line *lines; /* [lines_max] */
  gidx lines_max, sweep, best;
  gidx first; /* sweep after which this run began, -1: it began with the start */
  uint64_t rows_hash, held_hash;
  struct arena arena;
};

/* Claim run.json beside a result (io/place.h). */
int fit_page_claim(struct fit_page *page, const struct output_place *beside);
void fit_page_free(struct fit_page *page);

/* Take the lines of what is there now, of an earlier run or of a sweep.  ERR_MEMORY. */
int fit_page_take(struct fit_page *page, const struct fit_point *point, gidx best);

/* Write it. */
void fit_page_write(const struct fit_page *page);

#endif
