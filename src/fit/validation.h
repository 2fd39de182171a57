/* SPDX-License-Identifier: BSD-3-Clause
 * What a dictionary explains of rows that it was not fitted to.
 *
 * Floor: fit.  Each rank holds its sum blocks of the rows, as a refit's state does. */
#ifndef FIT_VALIDATION_H
#define FIT_VALIDATION_H

#include "base/memory.h"
#include "base/stop.h"
#include "model/rows.h"
#include "refit/sparse_coder.h"

struct fit_validation {
  struct comm *c;                /* borrowed */
  const struct row_source *rows; /* borrowed; none: there is nothing to judge by */
  struct sparse_coder *coder;    /* borrowed */
  struct coded coded;
  gidx first; /* the first own row */
  idx n;      /* own rows */
  float *x;   /* [n][p] */
  idx *atoms; /* [n][s] */
  float *score;
  real tss;      /* rank 0 */
  uint64_t hash; /* of the rows (model/identity.h); 0: there are none */
  struct arena arena;
};

/* Read the rows, subtract mean[p] unless NULL, and hand them to the coder.  ERR_INPUT, also where
 * they do not vary; ERR_MEMORY.  After a failure a thread may still read into what it was given: *j
 * is then to be kept.  Collective; the same status on every rank. */
int fit_validation_open(struct fit_validation *j, const struct row_source *rows, const real *mean,
                        struct sparse_coder *coder, struct comm *c);

/* Warn where a few of the rows are massive (model/norms.h).  ERR_MEMORY.  Collective. */
int fit_validation_advise(const struct fit_validation *j);
void fit_validation_close(struct fit_validation *j);

/* *explained, on rank 0 <- the explained variance of the rows by the coder's dictionary, coded
 * without penalty; NaN where there are none, and where *stopped: as row_batches_next().
 * Collective, as above. */
int fit_validation_run(struct fit_validation *j, const struct stops *stops, real *explained,
                       int *stopped);

/* *bytes <- what each rank holds of so many rows. */
int fit_validation_bytes(const struct sparse_coder_shape *shape, gidx n, int ranks, gidx *bytes);

#endif
