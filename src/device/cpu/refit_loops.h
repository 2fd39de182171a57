/* SPDX-License-Identifier: BSD-3-Clause
 * The hot loops of a refit of one instruction set, as a table.
 *
 * Floor: device.
 *
 * Rows are taken in groups of REFIT_GROUP, one a lane; a chain never runs across lanes. */
#ifndef DEVICE_CPU_REFIT_LOOPS_H
#define DEVICE_CPU_REFIT_LOOPS_H

#include "device/refit.h"
#include "model/dictionary.h"

enum { REFIT_GROUP = 8 };

struct group_move {
  const real *const *row; /* [REFIT_GROUP] of [p] */
  const real *u_old, *u_new, *l;
  const real *t_old; /* [d][REFIT_GROUP] */
  real *t_new;       /* [d][REFIT_GROUP] */
  real *objective;   /* [REFIT_GROUP] */
  real *work;        /* [p][REFIT_GROUP] */
  idx d, p;
  real rho;
  int nonnegative;
};

struct refit_loops {
  /* out[count][REFIT_GROUP] <- chains over p of REFIT_GROUP rows with each vector; NULL: with
   * themselves */
  void (*products)(const real *const *row, const real *vectors, idx count, idx p, real *out);
  /* out[p] <- chains over n rows, weights with a stride */
  void (*sum)(const real *residual, const idx *rows, idx n, idx p, const real *weight, idx stride,
              real *out);
  void (*move)(const struct group_move *move);
  /* r[p] <- the residual after the move (model/step.h, step_row) */
  void (*keep)(real *r, const real *u_old, const real *t_old, const real *u_new, const real *t_new,
               idx d, idx p);
  /* r[p] <- x less its reconstruction by vector[m] with codes[m] */
  void (*residual)(const float *x, const real *const *vector, idx m, idx p, const real *codes,
                   real *r);
  real (*dot)(const real *a, const real *b, idx p);
  /* v[p] <- fma(-s, b, v) */
  void (*subtract)(real s, const real *b, idx p, real *v);
};

#endif
