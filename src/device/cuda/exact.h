/* SPDX-License-Identifier: BSD-3-Clause
 * A launch of routing on a GPU takes some rows of a job over the window that is on the device.  The
 * direct kernels do it without the certified filter.
 *
 * Floor: device. */
#ifndef DEVICE_CUDA_EXACT_H
#define DEVICE_CUDA_EXACT_H

#include "device/cuda/cuda.h"

struct route_launch {
  struct device *dev;
  struct route_job *job;
  const float *rows; /* on the device: the job's rows, or these times their powers of two */
  struct kernel_shape shape;
  struct route_form form;
  idx first, n;           /* rows first .. first + n - 1 of the job */
  idx slot, slots;        /* the window: its first slot, and its number of slots */
  const idx *excluded;    /* on the device: exclusions from row `first` on; NULL: none */
  const int *row_of;      /* on the device; if not NULL, the rows are first + row_of[0 .. n - 1] */
  struct candidate *out;  /* on the device, [n][top_k]; with row_of, indexed by row_of[] */
  unsigned long long bad; /* as in struct route_args */
};

/* Copy the job's exclusions for the rows of the launch to the device, unless they are there. */
int cuda_launch_exclude(struct route_launch *t);

/* Route the rows of the launch with the kernels pack, route and merge, and wait for the result.
 * ERR_MEMORY. */
int cuda_launch_exact(struct route_launch *t);

#endif
