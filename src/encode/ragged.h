/* SPDX-License-Identifier: BSD-3-Clause
 * Codes of rows whose supports have different lengths (N.24k).  The device's operation takes rows
 * of one length at a time.
 *
 * Floor: encode.  Not collective. */
#ifndef ENCODE_RAGGED_H
#define ENCODE_RAGGED_H

#include "base/memory.h"
#include "device/codes.h"

enum { RAGGED_MOST = 2048 }; /* largest number of atoms of a row */

struct ragged {
  struct device *device;     /* borrowed; d = 1 */
  idx p, most;               /* columns; largest number of rows of a job */
  struct buffer rows, slots; /* of a piece of the rows of one length */
  struct buffer codes, quality;
  idx *order;                  /* [most] rows by rising length; rows of one length ascend */
  gidx begin[RAGGED_MOST + 2]; /* where the rows of each length begin in order */
  struct arena arena;
};

/* Memory for jobs of at most `most` rows.  A dry device and arena only count it.  ERR_MEMORY.
 * ragged_close() is safe on a zeroed struct, and must come before the device is closed. */
int ragged_open(struct ragged *w, struct device *device, idx p, idx most);
void ragged_close(struct ragged *w);

struct ragged_job {
  idx n;
  const float *x;              /* [n][p] on the host, as start, atoms and codes are */
  const gidx *start;           /* [n + 1] where each row's entries begin; start[0] may be any
                                * number */
  const idx *atoms;            /* entries: supports; the atoms of a row differ */
  float *codes;                /* entries, written: rounded once */
  struct row_quality *quality; /* [n], written, from the rounded codes; NULL: not wanted */
  const struct buffer *table;  /* float [..][p]: the atoms, on the device */
  real rho;
};
/* The first row with more than RAGGED_MOST atoms; -1: none. */
idx ragged_long(const struct ragged_job *job);
/* Solve all rows; none may have more than RAGGED_MOST atoms. */
int ragged_solve(struct ragged *w, const struct ragged_job *job);

#endif
