/* SPDX-License-Identifier: BSD-3-Clause
 * Where the rows of a matrix go when they are made block by block.
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA. */
#ifndef MODEL_SINK_H
#define MODEL_SINK_H

#include "base/types.h"

/* Takes blocks in ascending order.  The io floor fills it for files. */
struct matrix_sink {
  void *self; /* borrowed */
  int (*write)(void *self, gidx first, gidx count, const float *values);
};

#endif
