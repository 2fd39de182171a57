/* SPDX-License-Identifier: BSD-3-Clause
 * Steps of stochastic gradient descent: Adam (Kingma, Ba 2015), its rate, and gradients of unit
 * atoms (N.44).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA. */
#ifndef MODEL_ADAM_H
#define MODEL_ADAM_H

#include "base/types.h"

/* The learning rate rises linearly to `most` during the first `warm_up` part of the steps, and
 * falls linearly to 0 during the last `decay` part. */
struct learning_rate {
  real most, warm_up, decay;
};
/* The rate of step 0 .. steps - 1. */
real learning_rate_at(const struct learning_rate *rate, gidx step, gidx steps);

/* The factors of a step that are the same for all parameters, rounded to f32. */
struct adam_rates {
  float rate;       /* learning rate over 1 - 0.9^t */
  float correction; /* 1 over 1 - 0.999^t */
};
/* The factors of step t - 1; t is 1 in the first step. */
struct adam_rates adam_rates(real rate, gidx t);

/* Take a step of count parameters w with gradients g and moments m, v.  Reference of
 * device_adam(). */
struct adam_state {
  float *w, *m, *v;
  const float *g;
  gidx count;
};
void adam_step(const struct adam_state *s, const struct adam_rates *rates);

/* Subtract from gradient[p] its component along atom[p], which would only change the length of the
 * atom. */
void atom_gradient(const float *atom, idx p, float *gradient);

#endif
