/* SPDX-License-Identifier: BSD-3-Clause
 * Codes of rows whose supports differ in length (N.24k), by the device's operation for rows of
 * equal length: rows of one length at a time.
 *
 * Floor: encode.  Not collective. */
#ifndef ENCODE_RAGGED_H
#define ENCODE_RAGGED_H

#include "base/memory.h"
#include "device/codes.h"

enum { RAGGED_MOST = 2048 }; /* atoms of a row, at most */

struct ragged {
  struct device *device;     /* borrowed; d = 1 */
  idx p, most;               /* columns; rows of a job at most */
  struct buffer rows, slots; /* of some rows of one length */
  struct buffer codes, quality;
  idx *order;                  /* [most] rows by rising length, of equal ones ascending */
  gidx begin[RAGGED_MOST + 2]; /* where those of each length begin in order */
  struct arena arena;
};

/* What jobs of at most so many rows take; ragged_close() is safe on a zeroed struct and comes
 * before the device is closed.  A dry device and arena count.  ERR_MEMORY. */
int ragged_open(struct ragged *w, struct device *device, idx p, idx most);
void ragged_close(struct ragged *w);

struct ragged_job {
  idx n;
  const float *x;              /* [n][p], as the next three of the host */
  const gidx *start;           /* [n + 1] where the entries of each row begin, from any number on */
  const idx *atoms;            /* entries: supports, each of atoms that differ */
  float *codes;                /* entries, written: rounded once */
  struct row_quality *quality; /* [n], written, from the rounded codes; NULL */
  const struct buffer *table;  /* [..][p] float: atoms, on the device side */
  real rho;
};
/* The first of the rows with more than RAGGED_MOST atoms; -1: none. */
idx ragged_long(const struct ragged_job *job);
/* Solve; no row has more. */
int ragged_solve(struct ragged *w, const struct ragged_job *job);

#endif
