/* SPDX-License-Identifier: BSD-3-Clause
 * Save the rows that encode, route and the end of fit have done, at intervals.  A killed job loses
 * only the rows after the last save, and --resume continues there.
 *
 * Floor: encoding.
 *
 * A save is a stop after which the same process goes on.  It leaves the same part or record as a
 * stop, with whole sum blocks (4,096 rows, N.0), and writes run.json, for which it calls the job's
 * summary().  The rows that follow have the bits of a run that was never stopped. */
#ifndef ENCODING_ENCODE_SAVES_H
#define ENCODING_ENCODE_SAVES_H

#include "encoding/encode_files.h"

struct encode_saves {
  /* Set by the caller; pointers are borrowed. */
  struct encode_files *files;
  int (*publish)(void *self); /* publish the result so far, a part or a record; rank 0 calls it */
  void *self;
  int keeps_whole; /* 1: saves do not replace a whole result that is in place; a stop does */
  int count;       /* saves so far */
  gidx rows;       /* rows of all runs so far; the members below are of these runs, too */
  struct phase phases[ENCODE_PHASES];
  struct device_counts counts;
  struct screen_counts filter;
};

/* Call this before the first encode_run().  The task of s->files can then be stopped.  It is also
 * stopped for saves, if its job has save_seconds and the disk has room for a part and for the file
 * that begins with it; otherwise the log says so.  Not collective. */
void encode_saves_begin(struct encode_saves *s);
/* Call this after each encode_run().  If the run ended only for a save, its result is published,
 * *more <- 1, and the task is for the rows that are left: run it again.  The last result has the
 * rows since the last save, with phases and counts of all runs.  Collective. */
int encode_saves_take(struct encode_saves *s, struct encode_result *result, int *more);

/* Seconds until the next save, if the last one took `took` seconds.  The more rows there are, the
 * longer a save may take.  So the pause is 9 times `took`, and saves take about a tenth of the
 * time.  But the pause is at least save_seconds and at most 20 times save_seconds. */
double encode_saves_pause(double save_seconds, double took);

#endif
