/* SPDX-License-Identifier: BSD-3-Clause
 * The receiver of a matrix whose rows are computed block by block.
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA. */
#ifndef MODEL_SINK_H
#define MODEL_SINK_H

#include "base/types.h"

/* Blocks are written in ascending order.  The io floor fills this struct for files. */
struct matrix_sink {
  void *self; /* borrowed */
  int (*write)(void *self, gidx first, gidx count, const float *values);
};

#endif
