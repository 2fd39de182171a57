/* SPDX-License-Identifier: BSD-3-Clause
 * The entries of a system are computed one by one, as (N.16) lists them. */
#include "model/assembly.h"

#include <math.h>

#include "base/sums.h"
#include "base/status.h"

void frame_products(const real *frame, const real *e, idx d, idx q, idx p,
                    struct frame_products *out)
{
  out->d = d;
  out->q = q;
  for (idx m = 0; m < d; m++)
    for (idx l = 0; l < d; l++)
      out->uu[m * d + l] = lane_product(frame + (gidx)m * p, frame + (gidx)l * p, p);
  for (idx j = 0; j < q; j++) {
    const real *ej = e + (gidx)j * p;
    for (idx m = 0; m < d; m++) out->ue[j * d + m] = lane_product(frame + (gidx)m * p, ej, p);
    for (idx i = 0; i < q; i++) out->ee[j * q + i] = lane_product(ej, e + (gidx)i * p, p);
  }
}

void assembly_row(const struct frame_products *f, real rho, const real *products, real *h, real *b,
                  real *g)
{
  idx d = f->d;
  const real *t = products, *ur = t + d, *er = ur + d;
  for (idx l = 0; l < d; l++)
    for (idx m = 0; m < d; m++) h[l * d + m] = f->uu[m * d + l] + (l == m ? rho : 0);
  for (idx j = 0; j < f->q; j++)
    for (idx l = 0; l < d; l++)
      for (idx m = 0; m < d; m++) {
        real ue = f->ue[j * d + m];
        b[(j * d + l) * d + m] = l == m ? fma(ue, t[l], -er[j]) : ue * t[l];
      }
  for (idx m = 0; m < d; m++) g[m] = fma(rho, t[m], -ur[m]);
}

/* The sum over rows of the product of entries a and b of each row's products. */
static real rows_sum(const real *products, idx stride, gidx n, idx a, idx b)
{
  struct lane_sum sum = {0};
  for (gidx i = 0; i < n; i++)
    lane_sum_fma(&sum, i, products[i * stride + a], products[i * stride + b]);
  return lane_sum_total(&sum);
}

void assembly_border(const struct frame_products *f, gidx n, const real *products, idx stride,
                     real *c, real *g_b)
{
  idx d = f->d, q = f->q, k = q * d;
  for (idx m = 0; m < d; m++)
    for (idx l = 0; l <= m; l++) {
      real t = rows_sum(products, stride, n, m, l);
      for (idx j = 0; j < q; j++)
        for (idx i = 0; i < q; i++) {
          real entry = f->ee[j * q + i] * t;
          c[(gidx)(i * d + l) * k + j * d + m] = entry;
          c[(gidx)(i * d + m) * k + j * d + l] = entry;
        }
    }
  for (idx j = 0; j < q; j++)
    for (idx m = 0; m < d; m++) g_b[j * d + m] = -rows_sum(products, stride, n, m, 2 * d + j);
}

int assembly_reference(const struct atom_view *a, const real *e, idx q, struct arena *arena,
                       struct arrow_system *out)
{
  idx d = a->d, p = a->p, k = q * d, width = row_products(d, q);
  real *h, *b, *g, *c, *g_b, *products;
  struct frame_products f;
  TRY(arena_alloc(arena, &h, a->n * d * d, sizeof *h));
  TRY(arena_alloc(arena, &b, a->n * d * k, sizeof *b));
  TRY(arena_alloc(arena, &g, a->n * d, sizeof *g));
  TRY(arena_alloc(arena, &c, (gidx)k * k, sizeof *c));
  TRY(arena_alloc(arena, &g_b, k, sizeof *g_b));
  TRY(arena_alloc(arena, &products, a->n * width, sizeof *products));
  frame_products(a->frame, e, d, q, p, &f);
  for (gidx i = 0; i < a->n; i++) {
    real *row = products + i * width;
    for (idx m = 0; m < d; m++) row[m] = a->codes[i * d + m];
    for (idx m = 0; m < d; m++)
      row[d + m] = lane_product(a->residual[i], a->frame + (gidx)m * p, p);
    for (idx j = 0; j < q; j++) row[2 * d + j] = lane_product(a->residual[i], e + (gidx)j * p, p);
    assembly_row(&f, a->rho, row, h + i * d * d, b + i * d * k, g + i * d);
  }
  assembly_border(&f, a->n, products, width, c, g_b);
  *out =
      (struct arrow_system){.d = d, .k = k, .n = a->n, .h = h, .b = b, .g = g, .c = c, .g_b = g_b};
  return OK;
}
