/* SPDX-License-Identifier: BSD-3-Clause
 * Operations of a device: codes of rows on their supports, by least squares (N.4, N.5).
 *
 * Floor: device.  Codes, residuals and qualities have the bits of model/codes.h. */
#ifndef DEVICE_CODES_H
#define DEVICE_CODES_H

#include "device/device.h"
#include "model/codes.h"

/* Solve the codes of n rows on their supports, or go on from the codes of shorter supports.
 *
 * Entries before m_old were solved by an earlier call with the same state, rows and slots; entries
 * m_old .. m_new - 1 are added.  state has [n] blocks of device_codes_state_bytes(dev, max_m, rho)
 * bytes each, kept by the caller between the rounds of a block of rows; NULL when m_old is 0 and
 * nothing follows.  Buffers are read and written on the device side. */
struct codes_job {
  idx n;
  idx m_old, m_new, max_m; /* support atoms a row */
  real rho;
  idx first;                   /* this job's rows begin at row first of rows and of residual */
  const struct buffer *rows;   /* [..][p] float: the rows themselves, not residuals */
  const struct buffer *atoms;  /* [..][d][p] float: table of atoms */
  const struct buffer *slot;   /* [n][max_m] idx: place in the table of each support atom */
  const struct buffer *toward; /* [..] float: of each atom of the table, what rho draws its code to
                                * (N.50), of nonnegative codes alone; NULL: 0 */
  struct buffer *state;
  struct buffer *residual; /* [..][p] float, by unrounded codes; NULL: not wanted */
  struct buffer *codes;    /* [n][m_new][d] float, rounded once; NULL: not wanted */
  struct buffer *quality;  /* [n] struct row_quality, from the rounded codes; needs codes; NULL */
};
int device_codes(struct device *dev, const struct codes_job *job);

/* The quality of n rows by codes that are given, whoever found them: row i has entries start[i] ..
 * start[i + 1] - 1 of support and codes.  All arrays are the host's; d = 1.  A CPU has it alone. */
struct quality_job {
  idx n;
  const float *rows, *atoms;   /* [n][p], [..][p] */
  const gidx *start;           /* [n + 1] */
  const idx *support;          /* which of the atoms */
  const float *codes;          /* as they are stored */
  struct row_quality *quality; /* [n], written */
};
int device_quality(struct device *dev, const struct quality_job *job);

/* Bytes of a row's state between rounds; 0 where the device has no codes. */
gidx device_codes_state_bytes(const struct device *dev, idx max_m, real rho);

#endif
