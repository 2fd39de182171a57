/* SPDX-License-Identifier: BSD-3-Clause
 * Time and work of the phases of a job, for the table at the end of a run.
 *
 * Floor: base. */
#ifndef BASE_PHASE_H
#define BASE_PHASE_H

#include "base/json.h"
#include "base/types.h"

struct phase {
  const char *name;   /* borrowed */
  const char *unit;   /* "GB" or "GMAC": 1e9 units of `work`; NULL if work is not counted */
  const char *device; /* borrowed: "cpu" or "cuda" if it can be either; otherwise NULL */
  /* 1: it runs in parallel to the thread that computes, so its time overlaps other phases */
  int background;
  gidx calls;
  double seconds;
  double work;  /* bytes or multiply-adds of this rank */
  double begun; /* log_seconds() at phase_begin() */
};

/* The phase runs between these two calls; `work` is the work between them. */
void phase_begin(struct phase *p);
void phase_end(struct phase *p, double work);

/* A line of the table: least, mean and most seconds of the ranks, and the work of all ranks. */
struct phase_line {
  const char *name, *unit, *on; /* borrowed: string literals; on: the device, or "" */
  gidx calls;
  double least, mean, most, work;
};
/* Write an array of lines[count]. */
void phase_lines_json(const struct phase_line *lines, int count, struct json *j);

#endif
