/* SPDX-License-Identifier: BSD-3-Clause
 * The explained variance of rows that a dictionary was not fitted to.
 *
 * Floor: fit.  Each rank has its sum blocks (4,096 rows, N.0) of the rows, as in the state of a
 * refit. */
#ifndef FIT_VALIDATION_H
#define FIT_VALIDATION_H

#include "base/memory.h"
#include "base/stop.h"
#include "model/rows.h"
#include "refit/sparse_coder.h"

struct fit_validation {
  struct comm *c;                /* borrowed */
  const struct row_source *rows; /* borrowed; if it has no rows, nothing is evaluated */
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

/* Read the rows, subtract mean[p] (NULL: none), and give them to the coder.  ERR_INPUT, also if all
 * rows are equal; ERR_MEMORY.  After a failure a thread may still be reading into *j, so keep *j.
 * Collective; the same status on every rank. */
int fit_validation_open(struct fit_validation *j, const struct row_source *rows, const real *mean,
                        struct sparse_coder *coder, struct comm *c);

/* Warn if a few of the rows are massive (model/norms.h).  ERR_MEMORY.  Collective. */
int fit_validation_advise(const struct fit_validation *j);
void fit_validation_close(struct fit_validation *j);

/* *explained, on rank 0 <- the explained variance of the rows with the dictionary of the coder,
 * coded without penalty.  NaN: there are no rows, or the job was stopped.  *stopped <- 1: it was
 * stopped (row_batches.h).  Collective, as above. */
int fit_validation_run(struct fit_validation *j, const struct stops *stops, real *explained,
                       int *stopped);

/* *bytes <- the memory of each rank, for n rows of all ranks. */
int fit_validation_bytes(const struct sparse_coder_shape *shape, gidx n, int ranks, gidx *bytes);

#endif
