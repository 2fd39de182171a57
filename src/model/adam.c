/* SPDX-License-Identifier: BSD-3-Clause
 * State and arithmetic are f32; factors that all parameters share are computed in f64. */
#include "model/adam.h"

#include <math.h>

static const real BETA_1 = 0.9, BETA_2 = 0.999;
static const float KEEP_1 = 0.9f, ADD_1 = 0.1f, KEEP_2 = 0.999f, ADD_2 = 0.001f, LEAST = 1e-8f;

real learning_rate_at(const struct learning_rate *r, gidx step, gidx steps)
{
  real up = (real)(step + 1) / fmax(1, r->warm_up * (real)steps);
  real down = (real)(steps - step) / fmax(1, r->decay * (real)steps);
  return r->most * fmin(1, fmin(up, down));
}

/* beta^t by multiplications, since pow() differs between libraries.  The loop ends early when the
 * value is at most 2^-60, since 1 - value is then 1. */
static real power(real beta, gidx t)
{
  real value = 1;
  for (gidx i = 0; i < t && value > 0x1p-60; i++) value *= beta;
  return value;
}

struct adam_rates adam_rates(real rate, gidx t)
{
  return (struct adam_rates){.rate = (float)(rate / (1 - power(BETA_1, t))),
                             .correction = (float)(1 / (1 - power(BETA_2, t)))};
}

void adam_step(const struct adam_state *s, const struct adam_rates *rates)
{
  for (gidx i = 0; i < s->count; i++) {
    float g = s->g[i];
    s->m[i] = KEEP_1 * s->m[i] + ADD_1 * g;
    s->v[i] = KEEP_2 * s->v[i] + ADD_2 * g * g;
    float size = sqrtf(s->v[i] * rates->correction) + LEAST;
    s->w[i] -= rates->rate * s->m[i] / size;
  }
}

void atom_gradient(const float *atom, idx p, float *gradient)
{
  real along = 0;
  for (idx c = 0; c < p; c++) along = fma((real)gradient[c], (real)atom[c], along);
  for (idx c = 0; c < p; c++) gradient[c] = (float)fma(-along, (real)atom[c], (real)gradient[c]);
}
