/* SPDX-License-Identifier: BSD-3-Clause
 * Units and additions are products and quotients of sizes.  So if rows or border are scaled by a
 * power of two, the additions scale exactly. */
#include "model/ridges.h"

#include <math.h>

#include "model/arrow.h"

/* The largest magnitude among a[0], a[stride], .. below a[count]. */
static real largest(const real *a, gidx count, gidx stride)
{
  real most = 0;
  for (gidx i = 0; i < count; i += stride) most = fmax(most, fabs(a[i]));
  return most;
}

/* The largest magnitude on the diagonals of n x n blocks. */
static real diagonal_largest(const real *a, gidx blocks, idx n)
{
  real most = 0;
  for (gidx i = 0; i < blocks; i++) most = fmax(most, largest(a + i * n * n, (gidx)n * n, n + 1));
  return most;
}

/* If a diagonal is 0, its unit follows from the couplings. */
struct ridges ridges_units(const struct arrow_system *s)
{
  struct ridges u = {diagonal_largest(s->h, s->n, s->d), diagonal_largest(s->c, 1, s->k)};
  if (u.t > 0 && u.b > 0) return u;
  real coupling = largest(s->b, s->n * s->d * s->k, 1);
  if (!(u.t > 0) && u.b > 0) u.t = coupling * coupling / u.b;
  if (!(u.t > 0)) u.t = 1;
  if (!(u.b > 0)) u.b = coupling * coupling / u.t;
  if (!(u.b > 0)) u.b = 1;
  return u;
}

struct ridges ridges_of_row(struct ridges unit, real bump)
{
  return (struct ridges){bump, bump / unit.t * unit.b};
}

struct ridges ridges_of_border(struct ridges unit, real bump)
{
  return (struct ridges){bump / unit.b * unit.t, bump};
}

struct ridges ridges_of_rise(struct ridges unit)
{
  return (struct ridges){1e-3 * unit.t, 1e-3 * unit.b};
}

struct ridges ridges_next(struct ridges addition)
{
  return (struct ridges){10 * addition.t, 10 * addition.b};
}

struct ridges ridges_add(struct ridges base, struct ridges addition)
{
  if (ridges_are_zero(addition)) return base;
  return (struct ridges){base.t + addition.t, base.b + addition.b};
}

int ridges_are_zero(struct ridges addition)
{
  return addition.t == 0 && addition.b == 0;
}

int ridges_are_finite(struct ridges addition)
{
  return isfinite(addition.t) && isfinite(addition.b);
}
