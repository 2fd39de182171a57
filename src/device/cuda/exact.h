/* SPDX-License-Identifier: BSD-3-Clause
 * One launch of routing on a GPU: some rows of a job over the window that is there; and how the
 * direct kernels do it.
 *
 * Floor: device. */
#ifndef DEVICE_CUDA_EXACT_H
#define DEVICE_CUDA_EXACT_H

#include "device/cuda/cuda.h"

struct route_launch {
  struct device *dev;
  struct route_job *job;
  const float *rows; /* the job's, on the device, or those times their powers of two */
  struct kernel_shape shape;
  struct route_form form;
  idx first, n;           /* rows of the job */
  idx slot, slots;        /* of the dictionary: the window */
  const idx *excluded;    /* on the device: of row `first`; NULL: none */
  const int *row_of;      /* on the device: rows first + row_of[0 .. n - 1] instead; NULL: none */
  struct candidate *out;  /* on the device, [n][top_k]; row_of names rows here too */
  unsigned long long bad; /* as in struct route_args */
};

/* Bring the job's exclusions for the launch's rows to the device, where they are not there yet. */
int cuda_launch_exclude(struct route_launch *t);

/* Route the launch's rows by pack, route and merge; waits for it.  ERR_MEMORY. */
int cuda_launch_exact(struct route_launch *t);

#endif
