/* SPDX-License-Identifier: BSD-3-Clause
 * The sums are in f64, and are rounded up by factors that exceed all their rounding errors. */
#include "model/screen.h"

#include <math.h>

/* x times a factor that exceeds the rounding errors of a few operations. */
static real up(real x)
{
  return x * (1 + 0x1p-30);
}

/* The integer nearest to x, of magnitude at most `levels`. */
static int8_t round_to(float x, int levels)
{
  float q = rintf(x);
  return (int8_t)(q > (float)levels ? levels : q < (float)-levels ? -levels : (int)q);
}

void screen_quantize(const float *v, idx d, idx p, int levels, int8_t *q, struct quantized *out)
{
  gidx n = (gidx)d * p;
  float max = 0;
  for (gidx i = 0; i < n; i++) max = fabsf(v[i]) > max ? fabsf(v[i]) : max;
  float scale = screen_scale(max, levels);
  real norm = 0, norm_short = 0, error = 0;
  for (gidx i = 0; i < n; i++) {
    q[i] = isfinite(v[i]) ? round_to(v[i] / scale, levels) : 0;
    real x = v[i], x_short = (real)scale * q[i], e = x - x_short;
    norm += x * x;
    norm_short += x_short * x_short;
    error += e * e;
  }
  *out = screen_quantized(scale, norm, norm_short, error);
}

/* A bound on (1 + u)^n - 1 with u = 2^-24, the relative error of n roundings to f32, for n <= 2^20
 * (C.3). */
static real roundings(idx n)
{
  real nu = n * 0x1p-24;
  return up(nu * (1 + nu));
}

/* The rounding error of a chain of p terms, for |d| = 1: bounded by all of its terms (C.3), or by
 * its partial sums (C.3a). */
static real chain_loss(const struct quantized *row, idx p)
{
  real g = roundings(p);
  return fmin(g * row->norm, 0x1p-24 * row->norm + g * (1 + g) * row->mean);
}

/* The rounding error of a sum of the matrix unit, for |d~| = 1 (C.8), (C.8a). */
static real unit_loss(const struct quantized *row, idx p, real gamma)
{
  real steps = 16.0 / p * row->norm_short + (1 + gamma) * (row->mean + row->error);
  return gamma * fmin(row->norm_short, steps);
}

struct screen_bound screen_bound(const struct quantized *row, idx d, idx p, real gamma)
{
  /* bound on the size of a computed score, for |d| + |d - d~| = 1 */
  real size = row->norm_short * (1 + gamma);
  struct screen_bound b = {.alpha = row->error + chain_loss(row, p) + unit_loss(row, p, gamma),
                           .beta = size,
                           .rest = p * 0x1p-149 * sqrt(d)};
  if (d > 1) { /* the rounding of the gate itself (C.5) */
    real g = roundings(d);
    b.alpha = (1 + g) * b.alpha + g * size;
    b.beta = (1 + 2 * g) * b.beta;
    b.rest = (1 + g) * b.rest + sqrt(d * 0x1p-149);
  }
  return (struct screen_bound){up(b.alpha), up(b.beta), up(b.rest)};
}
