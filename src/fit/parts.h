/* SPDX-License-Identifier: BSD-3-Clause
 * The number of fitted rows of a part; a sweep of a fit uses one part.  The number is given by
 * --minibatch, or by the run that is resumed.  If neither gives it, and all rows fit in memory, a
 * part has all rows.  If they do not fit, the number follows from the number of atoms and the atoms
 * per row (fit_chosen_part()).
 *
 * Floor: fit.
 *
 * The atoms depend on this number.  So it is settled once, and is then like any other option:
 * used.in, run.json, dictionary.h5 and the comparison of --resume have it. */
#ifndef FIT_PARTS_H
#define FIT_PARTS_H

#include "fit/fit.h"

struct fit_parts {
  gidx rows;        /* rows of a part; 0: all rows are one part; -1: not settled ("auto") */
  const char *from; /* the source of the number, for run.json */
  char why[1024];   /* if the number was chosen: why all rows did not fit; "": they fit */
  char text[24];    /* the number as text of the option */
};

/* Read the option: "auto", "none" or a number.  ERR_USAGE.  Not collective. */
int fit_parts_parse(struct fit_parts *parts, const char *text);

/* Settle the number if it is "auto", and set task->minibatch.  earlier: the minibatch of the run
 * that is resumed; -1: none.  Collective. */
int fit_parts_settle(struct fit_parts *parts, struct fit_task *task, struct comm *c, gidx earlier);

/* Log the number of rows of a part, if there are parts and no option gave the number. */
void fit_parts_log(const struct fit_parts *parts);

#endif
