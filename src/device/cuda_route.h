/* SPDX-License-Identifier: BSD-3-Clause
 * One step of routing on a GPU: some rows of a job over the window of the dictionary that is there.
 *
 * Floor: device. */
#ifndef DEVICE_CUDA_ROUTE_H
#define DEVICE_CUDA_ROUTE_H

#include "device/cuda.h"

struct cuda_step {
  struct device *dev;
  struct route_job *job;
  struct kernel_shape shape;
  struct route_form form;
  idx first, n;           /* rows of the job */
  idx slot, slots;        /* of the dictionary */
  const int *row_of;      /* on the device: rows first + row_of[0 .. n - 1] instead; NULL: none */
  struct candidate *out;  /* on the device, [n][take]; row_of names rows here too */
  unsigned long long bad; /* as in struct route_args */
};

/* Support of every row by the direct kernel; waits for it.  ERR_MEMORY. */
int cuda_step_exact(struct cuda_step *t);

/* The job's exclusions for the step's rows, on the device. */
int cuda_step_exclude(struct cuda_step *t);

#endif
