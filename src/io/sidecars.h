/* SPDX-License-Identifier: BSD-3-Clause
 * The pair of files beside a result: used.in, the deck that repeats the run, and run.log.
 *
 * Floor: io.  Used by rank 0 alone; not collective.
 *
 * The pair belongs to the last run that published a result.  A run in progress writes its pair
 * under temporary names (temporary.h) until it publishes its first result.  If there is no pair
 * yet, it uses the final names at once.  If a run fails before its first result, its pair becomes
 * used.failed.in and run.failed.log. */
#ifndef IO_SIDECARS_H
#define IO_SIDECARS_H

#include <stdio.h>

#include "io/place.h"

/* Begin both files of a claimed place; *used and *log <- the files, open for writing.  appends: the
 * run continues an earlier one, and appends to its log.  ERR_CREATE. */
int sidecars_open(const struct output_path *place, int appends, FILE **used, FILE **log);
/* Call this when used.in is written: sync and close it.  If neither used.in nor run.log exists yet,
 * give both files their final names.  *log_name <- NULL, or the temporary name of the log;
 * borrowed.  ERR_IO. */
int sidecars_begin(FILE *used, const char **log_name);
/* Call this after a result was published: the pair gets its final names.  It does nothing if there
 * is no pair, or if the pair has its final names already.  A failure is only a warning, since the
 * result is complete; the renaming is tried again after the next result. */
void sidecars_publish(void);
/* Has this run published a result? */
int sidecars_are_published(void);

#endif
