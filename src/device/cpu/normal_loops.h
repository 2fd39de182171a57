/* SPDX-License-Identifier: BSD-3-Clause
 * The hot loops of the normal equations of one instruction set, as a table.
 *
 * Floor: device. */
#ifndef DEVICE_CPU_NORMAL_LOOPS_H
#define DEVICE_CPU_NORMAL_LOOPS_H

#include "device/normal.h"

struct normal_loops {
  /* gram[k] <- the row of the Gram matrix goes on over the rows of n entries; entry is row s +
   * place */
  void (*gram)(const struct normal_rows *rows, const idx *entry, idx n, real *gram);
  /* to[count] <- columns begin .. begin + count - 1 of the target go on */
  void (*target)(const struct normal_rows *rows, const idx *entry, idx n, idx begin, idx count,
                 real *to);
  /* d[count] <- (acc - sum of g[b] d_b over b = 0 .. n - 1 but `at`) / g[at] of atoms[n][stride],
   * where d_at is written */
  void (*descend)(const real *g, idx n, idx at, const real *acc, idx count, gidx stride,
                  real *atoms);
  /* energy[rows->n] of normal_energies() go on */
  void (*energies)(const struct normal_rows *rows, const real *atoms, idx begin, idx columns,
                   real *energy);
};

#endif
