/* SPDX-License-Identifier: BSD-3-Clause
 * A synthetic world: rows are made of known features, which a dictionary should find (N.31).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * There are many more features than columns, frequent and rare ones, trees of features whose
 * children exclude each other, correlated firing, and varying magnitudes.  These are the statistics
 * of SynthSAEBench.  Features 0 .. trees - 1 are roots.  Node q of a level has the children 4 q ..
 * 4 q + 3 of the next level; levels follow each other.  All other features fire independently of
 * trees.  Everything is a pure function of the seed and of the global index of a row or feature. */
#ifndef MODEL_WORLD_H
#define MODEL_WORLD_H

#include "base/memory.h"
#include "base/types.h"

enum {
  WORLD_CHILDREN = 4,
  WORLD_LEVELS = 3,      /* below the roots */
  WORLD_TREE = 85,       /* features of a tree: 1 + 4 + 16 + 64 */
  WORLD_FACTORS = 25,    /* rank of the correlation */
  WORLD_SPREAD_STEPS = 6 /* steps that make features less coherent */
};

struct world {
  uint64_t seed;
  idx f, p, trees;  /* number of features, columns and trees */
  real most, least; /* probabilities that the first and the last feature fire */
  /* world_init() sets the rest; arrays live in an arena. */
  real *probability; /* [f] probability that the feature fires */
  real *threshold;   /* [f] a normal number above it makes the feature fire, if its parent fires */
  real *factor;      /* [f][WORLD_FACTORS] */
  real *rest;        /* [f] 1 / sqrt(1 - |factor|^2) */
  real *deviation;   /* [f] standard deviation of its magnitude */
  real *bias;        /* [p] */
  real *tail;        /* upper tail of the normal distribution, tabulated */
};

/* ERR_USAGE: too few features for the trees, or invalid probabilities. */
int world_check(const struct world *w);

/* Set the arrays; the arena may be dry. */
int world_init(struct world *w, struct arena *arena);

/* world_parent() returns the parent of a feature; -1 for a root or a feature outside of trees.
 * world_child() returns its first child; -1 if it has none. */
idx world_parent(const struct world *w, idx feature);
idx world_child(const struct world *w, idx feature);

/* Mean magnitude of a feature. */
real world_mean(const struct world *w, idx feature);

/* out[p] <- the unit vector of a feature before it is made less coherent. */
void world_vector(const struct world *w, idx feature, real *out);

/* gram[count][p] <- rows first .. first + count - 1 of V'V, v[f][p]; each entry is a chain over
 * features. */
void world_gram(const struct world *w, const real *v, idx first, idx count, real *gram);

/* v[count][p] <- each v times (4/3 I - G / (3 a)), scaled to norm 1, with a = max(1, f / p) and G =
 * gram[p][p]; work [p].  This is a step of gradient descent on the squared inner products of
 * features, with step size 1 / 3 for a tight frame. */
void world_spread(const struct world *w, const real *gram, idx count, real *v, real *work);

/* atoms[], codes[] <- the features that fire in a row, ascending, and their magnitudes; both need
 * room for f.  Returns how many fire. */
idx world_features(const struct world *w, gidx row, idx *atoms, float *codes);

/* out[p] <- the row: the bias plus the sum of codes times vectors[f][p]; work [p]. */
void world_row(const struct world *w, const float *vectors, idx n, const idx *atoms,
               const float *codes, float *out, real *work);

#endif
