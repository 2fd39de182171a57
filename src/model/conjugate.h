/* SPDX-License-Identifier: BSD-3-Clause
 * The update of all atoms at once without a Gram matrix (N.65): conjugate gradients for each column
 * by itself, on the rows at hand and on what earlier ones said of each atom.
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * These plain loops are the reference of device/conjugate.h. */
#ifndef MODEL_CONJUGATE_H
#define MODEL_CONJUGATE_H

#include "base/memory.h"
#include "model/normal.h"

/* weight[k] <- it and the squares of the codes: a chain of fma over the rows, ascending. */
void conjugate_weigh(const struct normal_rows *rows, real *weight);

/* Steps of conjugate gradients from atoms[k][p], in place, which come nearer to the least
 *     |x - C d|^2 + sum_a h_a (d_a - d0_a)^2
 * of every column; h is held, and d0 are the atoms as they come.  ERR_MEMORY: it allocates. */
int conjugate_descend(const struct normal_rows *rows, idx k, const real *held, const real *weight,
                      idx steps, real *atoms);

#endif
