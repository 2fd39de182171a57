/* SPDX-License-Identifier: BSD-3-Clause
 * Operation of a device: damped Newton steps of arrow systems (N.7 to N.15).
 *
 * Floor: device.  An arrow system is a bordered block-diagonal one; its blocks are eliminated and
 * its Schur complement is factored.  Steps and outcomes have the bits of model/arrow.h. */
#ifndef DEVICE_ARROW_H
#define DEVICE_ARROW_H

#include "device/device.h"
#include "model/arrow.h"

/* Any number of systems, each with its own d, k and n.  Arrays are the host's. */
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
  /* For measuring, GPU alone: the kernels run so often again, seconds[repeats] is written, and all
   * systems are on the device. */
  int repeats;
  double *seconds;
};
/* Threads share the systems, and the rows of long ones.  A GPU leaves systems that are beyond its
 * kernels, and those that fail, to the CPU of the same bits; dev->counts has how many.  A system
 * that is not positive definite is an outcome, not an error.  ERR_INPUT when d or k is beyond
 * model/arrow.h's limits, ERR_MEMORY, ERR_DEVICE without fused multiply-add. */
int device_arrow(struct device *dev, struct arrow_job *job);

/* Load what such a job needs and take its memory, so that device_arrow() finds both there.  No
 * number of the systems is read.  ERR_MEMORY. */
int device_arrow_ready(struct device *dev, const struct arrow_job *job);

/* Bytes that a GPU, and as many page-locked ones that the host, take for jobs whose largest system
 * has so many numbers, steps included; 0 on the CPU. */
gidx device_arrow_bytes(const struct device *dev, gidx largest);

#endif
