/* SPDX-License-Identifier: BSD-3-Clause
 * Operations of a device: codes of rows on their supports, by least squares (N.4, N.5).
 *
 * Floor: device.  Codes, residuals and qualities have the bits of model/codes.h. */
#ifndef DEVICE_CODES_H
#define DEVICE_CODES_H

#include "device/device.h"
#include "model/codes.h"

/* Solve the codes of n rows on their supports, or extend the codes of shorter supports.
 *
 * An earlier call with the same state, rows and slots has solved entries 0 .. m_old - 1; this call
 * adds entries m_old .. m_new - 1.  `state` has device_codes_state_bytes(dev, max_m, rho) bytes for
 * each of the n rows.  The caller keeps it between the rounds of (N.3r).  It may be NULL if m_old
 * is 0 and no further round follows.  Buffers are read and written on the device side. */
struct codes_job {
  idx n;
  idx m_old, m_new, max_m; /* support atoms per row */
  real rho;
  idx first;                   /* the job's rows are first .. first + n - 1 of rows and residual */
  const struct buffer *rows;   /* [..][p] float: the rows themselves, not residuals */
  const struct buffer *atoms;  /* [..][d][p] float: table of atoms */
  const struct buffer *slot;   /* [n][max_m] idx: the support atoms, as indices into the table */
  const struct buffer *toward; /* [atoms of the table] float: the value to which rho pulls the code
                                * (N.50); nonnegative codes only; NULL: 0 */
  struct buffer *state;
  struct buffer *residual; /* [..][p] float, from unrounded codes; NULL: not wanted */
  struct buffer *codes;    /* [n][m_new][d] float, rounded once; NULL: not wanted */
  /* [n] struct row_quality, of the rounded codes; NULL: not wanted.  `codes` must then not be
   * NULL. */
  struct buffer *quality;
};
int device_codes(struct device *dev, const struct codes_job *job);

/* The quality of n rows for given codes.  Row i has the entries start[i] .. start[i + 1] - 1 of
 * support and codes.  All arrays are host memory; d = 1.  Only the CPU has this operation. */
struct quality_job {
  idx n;
  const float *rows, *atoms;   /* [n][p], [..][p] */
  const gidx *start;           /* [n + 1] */
  const idx *support;          /* indices into atoms */
  const float *codes;          /* as they are stored */
  struct row_quality *quality; /* [n], written */
};
int device_quality(struct device *dev, const struct quality_job *job);

/* Bytes of the state of one row between rounds; 0 if the backend lacks codes. */
gidx device_codes_state_bytes(const struct device *dev, idx max_m, real rho);

#endif
