/* SPDX-License-Identifier: BSD-3-Clause
 * The result of rows whose codes are computed elsewhere, as by a server: the same bits as
 * encode_run() gives for these rows.
 *
 * Floor: encode.  One rank.  Not collective.  All calls come from one thread; another thread may
 * compute the codes. */
#ifndef ENCODE_TALLY_H
#define ENCODE_TALLY_H

#include "encode/encode.h"
#include "model/codes.h"

struct tally; /* tally.c */

/* Some consecutive rows, less the mean, and the results of a lane for them (lane.h). */
struct tally_rows {
  gidx first; /* number of the first row among the task's rows */
  idx n;
  uint64_t terms; /* sum of the hash terms of the rows as they were read (model/identity.h) */
  const float *x; /* [n][p] */
  const idx *atoms;
  const float *score, *codes;  /* [n][s], [n][s][d] */
  struct row_quality *quality; /* [n] */
};

/* Begin the result of a task.  The task and its sink are borrowed.  The task's rows begin a sum
 * block of the whole.  The task has codes and no encoder.  Reads the first rows.  *result may be
 * used after tally_close(), and is freed by encode_free(). */
int tally_open(struct tally **tally, const struct encode_task *task, uint64_t dictionary,
               struct encode_result *result);

/* Count the next rows, and write their results to the sink. */
int tally_add(struct tally *tally, const struct tally_rows *rows);

/* End the result after the rows so far, which are all rows or whole sum blocks.  If `status` is a
 * failure, that failure is returned, and there is no result.  The decoder cosine is left out.
 * Frees the tally, also when it fails; NULL is allowed. */
int tally_close(struct tally *tally, int status);

#endif
