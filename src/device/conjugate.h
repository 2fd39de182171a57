/* SPDX-License-Identifier: BSD-3-Clause
 * The update of all atoms without a Gram matrix (N.65), on a CPU, with the bits of
 * model/conjugate.h.
 *
 * Floor: device.
 *
 * Columns are divided among threads, in tiles of at least 8.  A tile needs nothing of another tile.
 * A rank with few columns therefore uses few threads.  Nothing here is collective. */
#ifndef DEVICE_CONJUGATE_H
#define DEVICE_CONJUGATE_H

#include "device/device.h"

/* Some columns of the rows of all ranks. */
struct conjugate_job {
  gidx n;
  idx s, k, columns, steps;
  const idx *atoms;   /* [n][s]; the atoms of a row are distinct */
  const float *codes; /* [n][s] */
  const float *x;     /* [n][x_stride], the job's columns first */
  gidx x_stride;
  const real *before; /* [k][before_stride], the job's columns first: the atoms as they are */
  gidx before_stride;
  const real *held, *weight; /* [k] as in conjugate_descend() */
  real *after;               /* [k][columns] <- the atoms */
  void *work;                /* cpu_conjugate_bytes() */
};

/* ERR_DEVICE without fused multiply-add; the device is a CPU. */
int cpu_conjugate(struct device *dev, const struct conjugate_job *job);
gidx cpu_conjugate_bytes(int threads, gidx n, idx k, idx columns);

#endif
