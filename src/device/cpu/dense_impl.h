/* SPDX-License-Identifier: BSD-3-Clause
 * Dense matrices on the CPU: the workspace.
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
  real *a, *b, *own; /* packed operands: a and b shared by all threads, own of each thread */
  real *turned;      /* [panel][max_n] transposed rows of an inverse */
  struct arena arena;
};

#endif
