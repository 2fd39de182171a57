/* SPDX-License-Identifier: BSD-3-Clause
 * Operation of a device: damped Newton steps of arrow systems (N.7 to N.15).
 *
 * Floor: device.  An arrow system is block-diagonal with a border.  The solver eliminates the
 * blocks and factors the Schur complement.  Steps and outcomes have the bits of model/arrow.h. */
#ifndef DEVICE_ARROW_H
#define DEVICE_ARROW_H

#include "device/device.h"
#include "model/arrow.h"

/* Any number of systems, each with its own d, k and n.  All arrays are host memory. */
struct arrow_item {
  struct arrow_system system;   /* borrowed arrays */
  struct arrow_start start;     /* zeroed: a fresh system */
  real *step_t;                 /* [n][d], written */
  real *step_b;                 /* [k], written */
  struct arrow_outcome outcome; /* written */
};
struct arrow_job {
  struct arrow_options options;
  struct arrow_item *items;
  gidx count;
  /* For measurements on a GPU: seconds[repeats] gets the times of `repeats` further runs of the
   * kernels.  All systems are then on the device. */
  int repeats;
  double *seconds;
};
/* On a CPU, threads share the systems, and the rows of long systems.  A GPU leaves a system to the
 * CPU if its kernels cannot take the system, or if the system failed on the GPU.  The CPU gives the
 * same bits; dev->counts counts these systems.  A system that is not positive definite is an
 * outcome, not an error.  ERR_INPUT: d or k is beyond the limits of model/arrow.h; ERR_MEMORY;
 * ERR_DEVICE without fused multiply-add. */
int device_arrow(struct device *dev, struct arrow_job *job);

/* Load the kernels and take the memory that such a job needs, so that device_arrow() finds both
 * ready.  Reads the sizes and the addresses of the arrays, not their numbers.  ERR_MEMORY. */
int device_arrow_ready(struct device *dev, const struct arrow_job *job);

/* Bytes of GPU memory that jobs take at most.  largest: the count of numbers of the largest system
 * and its step.  The same limit holds for page-locked host memory.  0 on the CPU. */
gidx device_arrow_bytes(const struct device *dev, gidx largest);

#endif
