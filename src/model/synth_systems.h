/* SPDX-License-Identifier: BSD-3-Clause
 * Synthetic arrow systems: ragged, well-conditioned, with stated shares of bad ones.
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * Everything is a pure function of the seed and of places in the batch, without libm, so any system
 * can be made anywhere. */
#ifndef MODEL_SYNTH_SYSTEMS_H
#define MODEL_SYNTH_SYSTEMS_H

#include "model/systems.h"

enum lengths { LENGTHS_FIXED, LENGTHS_UNIFORM, LENGTHS_POWER };

struct made_systems {
  uint64_t seed;
  gidx count;
  enum lengths lengths; /* of n: rows; 0 .. 2 rows; 1 .. 16 rows, evenly over octaves */
  gidx rows;
  idx d, k; /* or, mixed, 1 .. d and 0 .. k, evenly */
  int mixed;
  real indefinite, ill; /* shares, 0 .. 1 together */
};

enum made_kind { MADE_GOOD, MADE_BAD_ROW, MADE_BAD_BORDER, MADE_ILL };

/* d, k and row of a shape whose arrays are taken. */
void made_shape(const struct made_systems *m, struct systems_shape *shape);

/* What system a is: an indefinite one has a bad row block or a bad border, one with a condition
 * number of about 2^33 or more is ill. */
enum made_kind made_kind(const struct made_systems *m, const struct systems_shape *shape, gidx a);

/* Write system a to its place in a block.  H_i is R R' + I (ill: r r' + 2^-33 I), B_i and g_i are
 * normal (ill: H_i times normal), C is large enough for S to be positive definite. */
void made_system(const struct made_systems *m, const struct systems_shape *shape, gidx a,
                 const struct systems_block *to);

#endif
