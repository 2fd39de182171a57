/* SPDX-License-Identifier: BSD-3-Clause
 * Products of two float32 are exact in float64, so multiplying and adding needs no fma. */
#include "model/attribution.h"

#include <math.h>

#include "model/functions.h"

real attribution_weight(const struct attention_factors *factors, float u, float m, float l)
{
  return (real)exp2_f32(fmaf(u, factors->exponent, -m)) / (real)l;
}

void attribution_row(const struct attention *a, const struct attention_cells *cells,
                     const struct attributed_query *query, const float *atom, struct top_rows *top,
                     idx list, real *sum)
{
  const struct attention_factors factors = attention_factors(a);
  *sum = 0;
  for (idx h = 0; h < a->heads; h++) {
    real part = 0;
    for (gidx j = query->from; j < query->end; j++) {
      gidx cell = attention_cell(cells, j) * a->kv_heads + h / (a->heads / a->kv_heads);
      const float *k = cells->k + cell * a->d, *v = cells->v + cell * a->dv;
      float u = attention_score(a, &factors, query->q + (gidx)h * a->d, k);
      real product = 0;
      for (idx c = 0; c < a->dv; c++) product += (real)v[c] * (real)atom[(gidx)h * a->dv + c];
      real own = attribution_weight(&factors, u, query->m[h], query->l[h]) * product;
      part += own;
      top_add(top, list, j * a->heads + h, (float)own);
    }
    *sum += part;
  }
}
