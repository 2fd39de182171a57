/* SPDX-License-Identifier: BSD-3-Clause
 * Hot loops of (N.65) for any vector width.  Lanes are columns, and no chain crosses lanes.
 *
 * Floor: device.  A unit (isa.h) includes this after vectors.h, by way of normal_body.h. */
#include <math.h>

#include "device/cpu/conjugate_loops.h"

enum { CONJUGATE_VECTORS = 8 };

/* to[..] <- to + sign times some columns of row i of C v; sign is 1 or -1. */
ALWAYS_INLINE void conjugate_add_part(const struct conjugate_tile *t, gidx i, const real *v,
                                      const real sign, const int vectors, real *to)
{
  const idx *atoms = t->atoms + i * t->s;
  const float *codes = t->codes + i * t->s;
  f64v acc[CONJUGATE_VECTORS];
#pragma GCC unroll 8
  for (int u = 0; u < vectors; u++) acc[u] = f64_load(to + u * F64_LANES);
  for (idx j = 0; j < t->s; j++) {
    const real *from = v + (gidx)atoms[j] * t->width;
    if (codes[j] == 0) continue;
    f64v code = f64_splat(sign * (real)codes[j]);
#pragma GCC unroll 8
    for (int u = 0; u < vectors; u++)
      acc[u] = f64_fma(f64_load(from + u * F64_LANES), code, acc[u]);
  }
#pragma GCC unroll 8
  for (int u = 0; u < vectors; u++) f64_store(to + u * F64_LANES, acc[u]);
}

ALWAYS_INLINE void conjugate_add(const struct conjugate_tile *t, gidx i, const real *v,
                                 const real sign, real *to)
{
  enum { WIDE = CONJUGATE_VECTORS * F64_LANES };
  idx c = 0;
  for (; c + WIDE <= t->width; c += WIDE)
    conjugate_add_part(t, i, v + c, sign, CONJUGATE_VECTORS, to + c);
  for (; c < t->width; c += F64_LANES) conjugate_add_part(t, i, v + c, sign, 1, to + c);
}

/* Continue the chains of the gradient with the residual of row i. */
ALWAYS_INLINE void conjugate_scatter(const struct conjugate_tile *t, gidx i)
{
  const real *r = t->r + i * t->width;
  for (gidx e = i * t->s; e < (i + 1) * t->s; e++) {
    real *to = t->g + (gidx)t->atoms[e] * t->width;
    if (t->codes[e] == 0) continue;
    f64v code = f64_splat(t->codes[e]);
    for (idx c = 0; c < t->width; c += F64_LANES)
      f64_store(to + c, f64_fma(code, f64_load(r + c), f64_load(to + c)));
  }
}

static void conjugate_begin(const struct conjugate_tile *t, gidx first, gidx end)
{
  for (gidx i = first; i < end; i++) {
    conjugate_add(t, i, t->d, -1, t->r + i * t->width);
    conjugate_scatter(t, i);
  }
}

static void conjugate_forward(const struct conjugate_tile *t, gidx first, gidx end, real *squares)
{
  for (gidx i = first; i < end; i++) {
    real *q = t->q + i * t->width;
    memset(q, 0, (size_t)t->width * sizeof *q);
    conjugate_add(t, i, t->p, 1, q);
    for (idx c = 0; c < t->width; c += F64_LANES)
      f64_store(squares + c, f64_load(squares + c) + f64_load(q + c) * f64_load(q + c));
  }
}

static void conjugate_back(const struct conjugate_tile *t, gidx first, gidx end, const real *alpha)
{
  for (gidx i = first; i < end; i++) {
    real *r = t->r + i * t->width, *q = t->q + i * t->width;
    for (idx c = 0; c < t->width; c += F64_LANES)
      f64_store(r + c, f64_fma(-f64_load(alpha + c), f64_load(q + c), f64_load(r + c)));
    conjugate_scatter(t, i);
  }
}

static void conjugate_scale(const struct conjugate_tile *t, idx first, idx end, real *gain)
{
  for (idx a = first; a < end; a++) {
    real *g = t->g + (gidx)a * t->width;
    const int has_codes = t->weight[a] > 0;
    f64v weight = f64_splat(has_codes ? t->weight[a] : 1);
    for (idx c = 0; c < t->width; c += F64_LANES) {
      f64v from = f64_load(g + c), to = has_codes ? from / weight : f64_splat(0);
      f64_store(gain + c, f64_load(gain + c) + from * to);
      f64_store(g + c, to);
    }
  }
}

static void conjugate_combine(const struct conjugate_tile *t, idx first, idx end, const real *beta,
                              real *curvature)
{
  for (idx a = first; a < end; a++) {
    real *p = t->p + (gidx)a * t->width;
    const real *z = t->g + (gidx)a * t->width;
    f64v held = f64_splat(t->held[a]);
    for (idx c = 0; c < t->width; c += F64_LANES) {
      f64v to = f64_fma(f64_load(beta + c), f64_load(p + c), f64_load(z + c));
      f64_store(p + c, to);
      f64_store(curvature + c, f64_load(curvature + c) + held * to * to);
    }
  }
}

static void conjugate_move(const struct conjugate_tile *t, const real *alpha)
{
  for (gidx a = 0; a < t->k; a++)
    for (idx c = 0; c < t->width; c += F64_LANES) {
      real *d = t->d + a * t->width + c;
      f64_store(d, f64_fma(f64_load(alpha + c), f64_load(t->p + a * t->width + c), f64_load(d)));
    }
}

static const struct conjugate_loops conjugate_table = {.begin = conjugate_begin,
                                                       .forward = conjugate_forward,
                                                       .back = conjugate_back,
                                                       .scale = conjugate_scale,
                                                       .combine = conjugate_combine,
                                                       .move = conjugate_move};
