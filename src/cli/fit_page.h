/* SPDX-License-Identifier: BSD-3-Clause
 * What a fit adds to run.json (run_page.h), which it writes after each result.
 *
 * Floor: cli.  Used by rank 0 alone; not collective. */
#ifndef CLI_FIT_PAGE_H
#define CLI_FIT_PAGE_H

#include "base/memory.h"
#include "cli/command.h"
#include "encode/encode.h"
#include "cli/fit_parts.h"
#include "fit/fit.h"
#include "io/seeds.h"

struct fit_page {
  const struct run *run; /* borrowed, as are the next; filled in by the caller */
  const struct fit_task *task;
  const struct fit_result *result; /* as far as it is known */
  const struct fit_parts *parts;
  const char *rows, *holdout;          /* names of the inputs; holdout may be NULL */
  double seconds;                      /* since the fit began */
  const struct encode_result *encoded; /* of all rows; NULL until the fit has ended */
  const struct stability *stable;      /* seeds 0: no other seeds were fitted */
  idx encode_s;                        /* atoms a row of these */
  const gidx *left_out;                /* [2] rows to fit and to judge by (seed/outliers.h) */
  real held_out_encoded;               /* what as many explain of the held-out rows, or NaN */
  struct fit_line *lines;              /* [lines_max] */
  gidx lines_max, sweep, best;
  gidx first; /* sweep after which this run began, -1: it began with the start */
  uint64_t rows_hash, held_hash;
  struct arena arena;
};

void fit_page_free(struct fit_page *page);

/* Take the lines of what is there now, of an earlier run or of a sweep.  ERR_MEMORY. */
int fit_page_take(struct fit_page *page, const struct fit_point *point, gidx best);

/* Write it; print it where --json asks for it. */
void fit_page_write(const struct fit_page *page);
int fit_page_print(const struct fit_page *page);

#endif
