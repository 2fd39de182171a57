/* SPDX-License-Identifier: BSD-3-Clause
 * The result of rows whose codes are computed elsewhere, as between the steps of a server: what
 * encode_run() makes of the same rows, bit for bit.
 *
 * Floor: encode.  One rank.  Not collective, and of one thread, which may be another than that
 * which computes. */
#ifndef ENCODE_TALLY_H
#define ENCODE_TALLY_H

#include "encode/encode.h"
#include "model/codes.h"

struct tally; /* tally.c */

/* Some consecutive rows, less the mean, and what the lane said of them (lane.h). */
struct tally_rows {
  gidx first; /* of the task's rows */
  idx n;
  uint64_t terms; /* of the rows as they were read (model/identity.h) */
  const float *x; /* [n][p] */
  const idx *atoms;
  const float *score, *codes;  /* [n][s], [n][s][d] */
  struct row_quality *quality; /* [n] */
};

/* Begin the result of a task, whose rows begin with a sum block of the whole; it and its sink are
 * borrowed, it has codes and no encoder.  Reads the first rows.  *result is free to be used behind
 * tally_close(), and given back by encode_free(). */
int tally_open(struct tally **tally, const struct encode_task *task, uint64_t dictionary,
               struct encode_result *result);

/* Count the next rows, and write what was said of them. */
int tally_add(struct tally *tally, const struct tally_rows *rows);

/* The rows so far, all or whole sum blocks, are the result, unless their status is a failure, which
 * is returned; the decoder cosine is left out.  Gives the tally back, also when it fails; NULL:
 * there is none. */
int tally_close(struct tally *tally, int status);

#endif
