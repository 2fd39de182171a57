/* SPDX-License-Identifier: BSD-3-Clause
 * One atom's K = 1 arrow system and its solution (N.7 to N.15): a block-diagonal matrix with a
 * border.  It is solved by eliminating the diagonal blocks of its rows, and factoring the Schur
 * complement of the border.
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 *      [ diag(H_i + ridge_t I)   B               ] [ t ]       [ g   ]
 *      [          B'             C + ridge_b I   ] [ b ]  =  - [ g_b ]
 *
 * There are n diagonal blocks H_i of d x d, one per row, each with a coupling B_i of d x k, and one
 * border block C of k x k.  Blocks are stored one after another, each column-major, as in
 * systems.h5, where H, B, g, C and g_b are called D_blocks, B_blocks, g_t, hbb and g_b.  Only the
 * lower triangles of H_i and C are read.  k = 0 and n = 0 are allowed.  doc/numerics.md, section 4,
 * explains the system. */
#ifndef MODEL_ARROW_H
#define MODEL_ARROW_H

#include "base/det_pair.h"
#include "base/types.h"
#include "model/ridges.h"

enum {
  ARROW_MAX_D = 8,         /* d is 1 .. ARROW_MAX_D */
  ARROW_MAX_BORDER = 1024, /* k is 0 .. ARROW_MAX_BORDER */
  ARROW_MAX_RETRIES = 22,
};

struct arrow_system {
  idx d, k;
  gidx n;
  const real *h;   /* [n][d d] diagonal blocks H_i */
  const real *b;   /* [n][d k] couplings of rows and border */
  const real *g;   /* [n][d] gradient of the rows */
  const real *c;   /* [k k] border block */
  const real *g_b; /* [k] gradient of the border */
};

struct arrow_options {
  real ridge_t, ridge_b; /* >= 0, added to every diagonal block and to C */
  int escalate;          /* try a failed system again with larger ridges (N.15) */
};

enum arrow_status {
  ARROW_OK,
  ARROW_ROW_NOT_PD,   /* failed_at: the first row whose H_i is not positive definite */
  ARROW_SCHUR_NOT_PD, /* failed_at: the pivot of the Schur complement S */
  /* failed_at: the first entry that is not finite, counted through H, B, g, C, g_b */
  ARROW_NOT_FINITE,
};

/* The outcome for a system.  If it failed, all steps are +0, log_det is NaN and pair is (NaN,
 * 0). */
struct arrow_outcome {
  int status;             /* of the last try */
  gidx failed_at;         /* see arrow_status; -1 if OK */
  real suggested_bump;    /* for the ridge of the block that failed (N.14); 0 if OK or not finite */
  real ridge_t, ridge_b;  /* of the last try */
  struct ridges addition; /* added to the ridges by (N.15) in the last try; 0 in the first try */
  idx retries;
  struct det_pair pair; /* the determinant of the matrix with ridges, as a pair (N.13) */
  real log_det;
  idx lost_bits; /* (N.13l); the caller sets it, by arrow_lost_bits() */
};

/* Where the escalation of (N.15) starts: the additions to the ridges in the first try, and the
 * number of earlier retries.  All 0 for a new system.  After a try without additions, the additions
 * follow from the suggested bump.  Each further try adds ten times as much. */
struct arrow_start {
  struct ridges addition;
  idx retries;
};

/* Reference: step_t[n][d] and step_b[k] <- the solution, *out <- the outcome.  work has
 * arrow_work(d, k) reals.  Every NaN that is written is nan_canonical(). */
gidx arrow_work(idx d, idx k);
void arrow_reference(const struct arrow_system *s, const struct arrow_options *options,
                     struct arrow_start start, real *step_t, real *step_b,
                     struct arrow_outcome *out, real *work);

/* "ok", "row not positive definite", ... for reports. */
const char *arrow_status_name(int status);

#endif
