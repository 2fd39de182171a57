/* SPDX-License-Identifier: BSD-3-Clause
 * Colouring: supports in, classes out.
 *
 * Floor: stage.  Knows no files: supports come from a source.
 *
 * The greedy order of (N.6) is serial, and its work is small beside a sweep's: rank 0 does it. */
#ifndef STAGE_COLOR_H
#define STAGE_COLOR_H

#include "comm/comm.h"
#include "model/classes.h"
#include "model/supports.h"

struct color_result { /* of rank 0; elsewhere empty */
  struct classes classes;
  struct class_report report;
  uint64_t fingerprint;
  double read_seconds, color_seconds;
};

/* Collective; the same status on every rank. */
int color_run(struct comm *c, const struct support_source *source, struct color_result *result);
void color_free(struct color_result *result);

/* Read rows first .. first + n - 1 in a worker thread, until the comm's deadline.  Not
 * collective. */
int supports_access(struct comm *c, const struct support_source *source, gidx first, gidx n,
                    int with_codes, struct supports *out);

#endif
