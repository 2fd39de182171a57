/* SPDX-License-Identifier: BSD-3-Clause
 * Hot loops of a refit, of one instruction set, as a table.
 *
 * Floor: device.
 *
 * Rows go through in groups of GROUP, one a lane; a chain never runs along a vector. */
#ifndef DEVICE_REFIT_LOOPS_H
#define DEVICE_REFIT_LOOPS_H

#include "device/refit.h"
#include "model/dictionary.h"

enum { GROUP = 8 };

struct group_move {
  const real *const *row; /* [GROUP] of [p] */
  const real *u_old, *u_new, *l;
  const real *t_old; /* [d][GROUP] */
  real *t_new;       /* [d][GROUP] */
  real *objective;   /* [GROUP] */
  real *work;        /* [p][GROUP] */
  idx d, p;
  real rho;
};

struct refit_loops {
  /* out[count][GROUP] <- chains over p of GROUP rows with each vector; NULL: with themselves */
  void (*products)(const real *const *row, const real *vectors, idx count, idx p, real *out);
  /* out[p] <- chains over n rows, weights with a stride */
  void (*sum)(const real *residual, const idx *rows, idx n, idx p, const real *weight, idx stride,
              real *out);
  void (*move)(const struct group_move *move);
  /* r[p] moves as step_row has it */
  void (*keep)(real *r, const real *u_old, const real *t_old, const real *u_new, const real *t_new,
               idx d, idx p);
  /* r[p] <- x less the description by vector[m] with codes[m] */
  void (*residual)(const float *x, const real *const *vector, idx m, idx p, const real *codes,
                   real *r);
  real (*dot)(const real *a, const real *b, idx p);
  /* v[p] <- fma(-s, b, v) */
  void (*subtract)(real s, const real *b, idx p, real *v);
};
extern const struct refit_loops refit_avx2, refit_avx512;

#endif
