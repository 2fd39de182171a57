/* SPDX-License-Identifier: BSD-3-Clause
 * Saving what encode and route have done every so often: a job that is killed loses what came after
 * the last save, and --resume goes on from there.
 *
 * Floor: encoding.
 *
 * A save is a stop after which the same process goes on: it leaves the same part or record, a whole
 * number of sum blocks, and what follows has the bits of a run that was never stopped. */
#ifndef ENCODING_ENCODE_SAVES_H
#define ENCODING_ENCODE_SAVES_H

#include "encoding/encode_files.h"

struct encode_saves {
  struct encode_files *files; /* borrowed; set by the caller, as is the next: publish the result */
  int (*publish)(struct encode_files *files, const struct encode_result *result);
  const struct encode_result *result; /* that is saved */
  int count;                          /* of saves so far */
  gidx rows;                          /* of the runs before each save, as are the next */
  struct phase phases[ENCODE_PHASES];
  struct device_counts counts;
  struct screen_counts filter;
};

/* Before the first of what is encoded.  Not collective. */
void encode_saves_begin(struct encode_saves *s);
/* After encode_run(): is it ended for a save alone?  Then that is published, and *more: the task is
 * for what is left, and is run again.  In the end the result is that of the rows since the last
 * save, its phases and counts are of all.  Collective. */
int encode_saves_take(struct encode_saves *s, struct encode_result *result, int *more);

/* Seconds until the next save, of a job with this --save-seconds, where the last took so long:
 * since that may take longer the more there is, saves become rarer, to take a tenth of the time. */
double encode_saves_pause(double save_seconds, double took);

#endif
