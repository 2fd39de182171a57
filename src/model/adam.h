/* SPDX-License-Identifier: BSD-3-Clause
 * Steps of stochastic gradient descent: Adam (Kingma, Ba 2015), its rate, and what is special about
 * unit atoms (N.44).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA. */
#ifndef MODEL_ADAM_H
#define MODEL_ADAM_H

#include "base/types.h"

/* The learning rate: it rises to `most` for `warm_up`, and falls to 0 for `decay` of the steps,
 * linearly. */
struct learning_rate {
  real most, warm_up, decay;
};
/* In step 0 .. steps - 1. */
real learning_rate_at(const struct learning_rate *rate, gidx step, gidx steps);

/* The numbers of a step, all rounded to f32. */
struct adam_rates {
  float rate;       /* learning rate over 1 - 0.9^t */
  float correction; /* 1 over 1 - 0.999^t */
};
/* Of step t - 1: t is 1 in the first one. */
struct adam_rates adam_rates(real rate, gidx t);

/* A step of count parameters w with gradients g; m, v: the moments.  Reference of
 * device_adam(). */
struct adam_state {
  float *w, *m, *v;
  const float *g;
  gidx count;
};
void adam_step(const struct adam_state *s, const struct adam_rates *rates);

/* gradient[p] <- it without what would only change the atom's length. */
void atom_gradient(const float *atom, idx p, float *gradient);

#endif
