/* SPDX-License-Identifier: BSD-3-Clause
 * A range of rows that a job encodes in the file of all rows, beside other jobs with ranges of
 * theirs (--join; io/ranges.h).
 *
 * Floor: encoding.  On rank 0, unless a comment says otherwise; not collective.
 *
 * The growing file is named by what the jobs have to have in common, so that a job with other
 * options never writes in it; which dictionary it is turns out when that is read, and is compared
 * with what another range has recorded, and by who publishes. */
#ifndef ENCODING_ENCODE_RANGES_H
#define ENCODING_ENCODE_RANGES_H

#include "encoding/encode_files.h"

/* Rows of the file that a job writes, and which of them is the first of its rows. */
static inline gidx ranges_rows(const struct encode_files *f)
{
  return f->joins ? f->all->n : f->n;
}
static inline gidx ranges_first(const struct encode_files *f)
{
  return f->joins ? f->first : 0;
}

/* Are the ends of the range those of segments?  ERR_USAGE names the nearest, or says why rows of
 * this shape cannot be joined. */
int encode_ranges_check(const struct encode_task *task, gidx all, gidx first, gidx end);

/* Where f->joins: claim the place of the range, and its journal; take the growing file, or make it;
 * f->job.left <- the journal, if something is recorded and wanted.  ERR_CREATE: it cannot be,
 * ERR_INPUT: the file that grows there is of another job.  Collective. */
int encode_ranges_open(struct encode_files *f);
/* f->file <- that file, to write rows of the range behind those that are recorded. */
int encode_ranges_begin(struct encode_files *f, const struct supports_shape *shape);

#endif
