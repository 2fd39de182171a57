/* SPDX-License-Identifier: BSD-3-Clause
 * Dense work on the CPU from inside: the workspace.
 *
 * Floor: device; included by dense*.c only. */
#ifndef DEVICE_CPU_DENSE_IMPL_H
#define DEVICE_CPU_DENSE_IMPL_H

#include "base/memory.h"
#include "device/cpu/dense_loops.h"
#include "device/dense.h"

/* The workspace of a struct dense. */
struct dense_state {
  const struct dense_loops *loops;
  int threads;
  real *a, *b, *own; /* packed operands: of all threads, of each */
  real *turned;      /* [panel][max_n] rows of an inverse, transposed */
  struct arena arena;
};

#endif
