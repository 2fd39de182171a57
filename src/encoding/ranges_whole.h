/* SPDX-License-Identifier: BSD-3-Clause
 * Make the result of all ranges that jobs have written into one file (encode_ranges.h).  It is made
 * from their journals.  Only the first and the last chunk of each array and range are read again.
 *
 * Floor: encoding.  On rank 0; not collective. */
#ifndef ENCODING_RANGES_WHOLE_H
#define ENCODING_RANGES_WHOLE_H

#include "io/journal.h"
#include "io/part.h"
#include "io/ranges.h"
#include "io/supports.h"

struct ranges_whole {
  char path[4096]; /* of the result */
  struct range_list list;
  struct journal *journals; /* [list.count], locked; owned */
  /* Of each record: chunks of each array that are all zeros, and codes that are not 0.
   * [list.count][SUPPORTS_ARRAYS], [list.count]; owned. */
  gidx *zeros, *counted;
  int is_published; /* 1: an earlier run published the result, but ended before it removed the
                     * journals */
};
/* Find and lock the journals in a folder.  ERR_CREATE: a job is still writing a range, or the
 * result exists and no ranges are left.  ERR_INPUT: there are no ranges, or their growing file is
 * lost or replaced.  Call ranges_whole_close() after a failure, too. */
int ranges_whole_open(struct ranges_whole *w, const char *folder);
/* parts[list.count] <- one part for each journal, as if it were opened from a file.  Close the
 * parts before the struct.  ERR_INPUT: a range is missing, not done, or of another shape than the
 * others. */
int ranges_whole_parts(struct ranges_whole *w, struct part_input *parts);
/* *f <- the file with the rows of all ranges.  The caller ends and publishes it. */
int ranges_whole_begin(const struct ranges_whole *w, const struct part_input *parts,
                       struct supports_output *f);
/* Call this after the result is published: remove the journals. */
void ranges_whole_remove(const struct ranges_whole *w);
void ranges_whole_close(struct ranges_whole *w);

#endif
