/* SPDX-License-Identifier: BSD-3-Clause
 * The pair of files beside a result: used.in, the deck that repeats the run, and run.log.
 *
 * Floor: io.  Used by rank 0 alone; not collective.
 *
 * The pair is that of the last run that published a result: of a run in progress both have
 * temporary names (temporary.h) until its first result is there.  Where there is no pair yet, they
 * have their names from the beginning.  Of a run that fails before its first result they become
 * used.failed.in and run.failed.log. */
#ifndef IO_SIDECARS_H
#define IO_SIDECARS_H

#include <stdio.h>

#include "io/place.h"

/* Begin both files of a claimed place; *used and *log <- open for writing.  A run that goes on with
 * an earlier one appends to its log.  ERR_CREATE. */
int sidecars_open(const struct output_path *place, int appends, FILE **used, FILE **log);
/* used.in is written: bring it to the disk, close it, and show the pair where there is none.
 * Returns NULL in *log_name, or where the log is until then; borrowed.  ERR_IO. */
int sidecars_begin(FILE *used, const char **log_name);
/* A result of this run is there: the pair gets its names.  Nothing to do without a pair, or the
 * second time.  What fails is a warning, since the result is whole, and tried again with the next
 * result. */
void sidecars_publish(void);
/* Is a result of this run there? */
int sidecars_are_published(void);

#endif
