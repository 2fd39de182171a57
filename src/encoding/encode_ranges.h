/* SPDX-License-Identifier: BSD-3-Clause
 * A range of rows that a job encodes into a file that several jobs write, each a range of its own
 * (--join; io/ranges.h).
 *
 * Floor: encoding.  On rank 0, unless a comment says otherwise; not collective.
 *
 * The name of the growing file depends on all options that the jobs must share, so a job with other
 * options never writes into it.  The dictionary's hash is not known before the dictionary is read.
 * It is then compared with the records of other ranges, and again when the result is published. */
#ifndef ENCODING_ENCODE_RANGES_H
#define ENCODING_ENCODE_RANGES_H

#include "encoding/encode_files.h"

/* The number of rows of the file that the job writes, and where the job's rows begin in it. */
static inline gidx ranges_rows(const struct encode_files *f)
{
  return f->joins ? f->all->n : f->n;
}
static inline gidx ranges_first(const struct encode_files *f)
{
  return f->joins ? f->first : 0;
}

/* Check that the range begins and ends where segments do (io/h5/slabs.h), or at the end of all
 * rows.  ERR_USAGE: it does not, and the message names the nearest range that does; or the task has
 * an encoder; or all rows are one segment. */
int encode_ranges_check(const struct encode_task *task, gidx all, gidx first, gidx end);

/* If f->joins: claim the range and its journal; open the growing file, or make it.  f->job.left <-
 * the journal, if it has a record that --force does not discard.  ERR_CREATE: the range cannot be
 * claimed.  ERR_INPUT: the existing growing file is of another job.  Collective. */
int encode_ranges_open(struct encode_files *f);
/* f->file <- the growing file, to write rows of the range after the recorded rows. */
int encode_ranges_begin(struct encode_files *f, const struct supports_shape *shape);
/* The same for a range whose rows are all recorded.  ERR_INPUT: the file is too short. */
int encode_ranges_reopen(struct encode_files *f, const struct supports_shape *shape);
/* ERR_IO: the growing file or the journal was removed or replaced since the job began. */
int encode_ranges_are_named(const struct encode_files *f);

#endif
