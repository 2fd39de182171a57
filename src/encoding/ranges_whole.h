/* SPDX-License-Identifier: BSD-3-Clause
 * The result of all ranges that jobs have written in one file (encode_ranges.h), from their
 * journals alone: no row of it is read again.
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
  gidx *zeros, *counted;    /* [list.count][SUPPORTS_ARRAYS], [list.count]; owned */
  int is_published;         /* it was, by a run that ended before it had removed the journals */
};
/* What is in a folder.  ERR_CREATE: a job is at work there; ERR_INPUT: there is nothing, or a range
 * is missing or not done, whose rows the message names.  ranges_whole_close() follows also then. */
int ranges_whole_open(struct ranges_whole *w, const char *folder);
/* parts[list.count] <- what the journals say, each as if it were a part that is open; parts are
 * closed before the struct.  ERR_INPUT as above. */
int ranges_whole_parts(struct ranges_whole *w, struct part_input *parts);
/* *f <- the file, a result of all rows that are written; who ends it publishes it. */
int ranges_whole_begin(const struct ranges_whole *w, const struct part_input *parts,
                       struct supports_output *f);
/* It is published. */
void ranges_whole_remove(const struct ranges_whole *w);
void ranges_whole_close(struct ranges_whole *w);

#endif
