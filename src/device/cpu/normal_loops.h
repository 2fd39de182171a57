/* SPDX-License-Identifier: BSD-3-Clause
 * The hot loops of the normal equations of one instruction set, as a table.
 *
 * Floor: device. */
#ifndef DEVICE_CPU_NORMAL_LOOPS_H
#define DEVICE_CPU_NORMAL_LOOPS_H

#include "device/cpu/conjugate_loops.h"
#include "device/normal.h"

struct normal_loops {
  /* gram[k] <- one row of the Gram matrix, continued over n entries of its atom.  An entry is
   * row s + index in the row's support. */
  void (*gram)(const struct normal_rows *rows, const idx *entry, idx n, real *gram);
  /* to[count] <- columns begin .. begin + count - 1 of the target, continued */
  void (*target)(const struct normal_rows *rows, const idx *entry, idx n, idx begin, idx count,
                 real *to);
  /* atoms[at][..] <- (acc - sum of g[b] atoms[b][..] over b = 0 .. n - 1 without `at`) / g[at], for
   * count columns of atoms[n][stride] */
  void (*descend)(const real *g, idx n, idx at, const real *acc, idx count, gidx stride,
                  real *atoms);
  /* energy[rows->n] <- normal_energies(), continued */
  void (*energies)(const struct normal_rows *rows, const real *atoms, idx begin, idx columns,
                   real *energy);
  const struct conjugate_loops *conjugate;
};

#endif
