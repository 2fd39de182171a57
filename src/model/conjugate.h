/* SPDX-License-Identifier: BSD-3-Clause
 * The update of all atoms at once without a Gram matrix (N.65): conjugate gradients for each column
 * separately.  The objective is the error of the present rows, plus a term that holds each atom
 * near the atom that earlier rows gave.
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * These plain loops are the reference of device/conjugate.h. */
#ifndef MODEL_CONJUGATE_H
#define MODEL_CONJUGATE_H

#include "base/memory.h"
#include "model/normal.h"

/* Add to weight[k] the squares of each atom's codes: a chain of fma over the rows, ascending. */
void conjugate_weigh(const struct normal_rows *rows, real *weight);

/* Improve atoms[k][p] in place by `steps` steps of conjugate gradients.  They reduce
 *     |x - C d|^2 + sum_a h_a (d_a - d0_a)^2
 * in every column, where h is held[k], and d0 are the given atoms.  weight[k]: the preconditioner.
 * ERR_MEMORY. */
int conjugate_descend(const struct normal_rows *rows, idx k, const real *held, const real *weight,
                      idx steps, real *atoms);

#endif
