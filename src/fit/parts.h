/* SPDX-License-Identifier: BSD-3-Clause
 * How many rows of a fit are in memory at a time: as --minibatch says, as the run had it that is
 * resumed, or as memory allows.
 *
 * Floor: fit.
 *
 * The atoms depend on the number.  So it is settled once, and from then on it is an option like any
 * other: used.in, run.json, dictionary.h5 and what --resume compares have it. */
#ifndef FIT_PARTS_H
#define FIT_PARTS_H

#include "fit/fit.h"

struct fit_parts {
  gidx rows;        /* of a part; 0: all rows are one; -1: not settled, "auto" */
  const char *from; /* what settled it, as run.json says it */
  char why[1024];   /* where memory chose parts: what was short */
  char text[24];    /* as the option says it */
};

/* Read the option: "auto", "none" or a number.  ERR_USAGE.  Not collective. */
int fit_parts_parse(struct fit_parts *parts, const char *text);

/* Settle what is open, by the minibatch of an earlier run, -1: there is none, or by memory; and
 * tell the task.  Collective. */
int fit_parts_settle(struct fit_parts *parts, struct fit_task *task, struct comm *c, gidx earlier);

/* What the log says of parts that no option named. */
void fit_parts_log(const struct fit_parts *parts);

#endif
