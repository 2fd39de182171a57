/* SPDX-License-Identifier: BSD-3-Clause
 * Operations of a device for the update of all atoms at once, with the bits of model/normal.h.
 *
 * Floor: device.
 *
 * Ranks share the work by columns of the data and by atoms: a job has some columns of the target,
 * and some rows of the Gram matrix.  Arrays are the host's.  Nothing here is collective.
 * ERR_DEVICE without fused multiply-add. */
#ifndef DEVICE_NORMAL_H
#define DEVICE_NORMAL_H

#include "device/dense.h"
#include "model/normal.h"

/* Add rows to the rows first .. first + count - 1 of the Gram matrix, and to the columns begin ..
 * end - 1 of the target. */
struct normal_job {
  struct normal_rows rows;
  idx k, first, count, begin, end;
  real *gram;   /* [count][k] */
  real *target; /* [k][end - begin] */
  idx *start;   /* [k + 1] to work in */
  idx *entry;   /* [n s] to work in */
};
int device_normal_add(struct device *dev, const struct normal_job *job);

/* One pass of normal_descend() over atoms[k][columns], in place, with gram[k][k] and
 * target[k][columns]; work[NORMAL_BLOCK][columns].  d->max_n is at least NORMAL_BLOCK and
 * columns. */
int device_normal_descend(struct dense *d, const real *gram, const real *target, idx k, idx columns,
                          real *atoms, real *work);

#endif
