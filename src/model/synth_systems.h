/* SPDX-License-Identifier: BSD-3-Clause
 * Synthetic arrow systems of different sizes: most are well-conditioned, and given shares are
 * indefinite or ill-conditioned.
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * Everything is a pure function of the seed and of positions in the batch, without libm, so any
 * system can be generated anywhere. */
#ifndef MODEL_SYNTH_SYSTEMS_H
#define MODEL_SYNTH_SYSTEMS_H

#include "model/systems.h"

enum lengths { LENGTHS_FIXED, LENGTHS_UNIFORM, LENGTHS_POWER };

struct synthetic_systems {
  uint64_t seed;
  gidx count;
  /* Distribution of n, with `rows` as r.  Fixed: r; uniform: 0 .. 2 r; power: 1 .. 16 r, a uniform
   * octave and then a uniform number in it; 0 if r = 0. */
  enum lengths lengths;
  gidx rows;
  idx d, k;
  int mixed;            /* d is drawn from 1 .. d, k from 0 .. k */
  real indefinite, ill; /* shares of indefinite and of ill-conditioned systems; their sum is 0 ..
                         * 1 */
};

enum synthetic_kind { SYNTHETIC_GOOD, SYNTHETIC_BAD_ROW, SYNTHETIC_BAD_BORDER, SYNTHETIC_ILL };

/* Set d, k and row of a shape, after systems_alloc(). */
void synthetic_shape(const struct synthetic_systems *m, struct systems_shape *shape);

/* The kind of system a.  An indefinite system has a bad diagonal block or a bad border.  An ill one
 * has a condition number of about 2^33 or more. */
enum synthetic_kind synthetic_kind(const struct synthetic_systems *m,
                                   const struct systems_shape *shape, gidx a);

/* Write system a to its position in a block.  H_i is R R' + I with normal R; B_i and g_i are
 * normal; C is large enough to make the Schur complement positive definite.  In an ill system H_i
 * is r r' + 2^-33 I, and B_i and g_i are H_i times normal numbers. */
void synthetic_system(const struct synthetic_systems *m, const struct systems_shape *shape, gidx a,
                      const struct systems_block *to);

#endif
