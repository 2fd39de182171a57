/* SPDX-License-Identifier: BSD-3-Clause
 * Rows are multiplied with a panel in pairs.  Each row of a pair has four registers of sums, so
 * that additions wait less for each other. */
#include "encode/scores.h"

#include <string.h>

#include "base/num.h"
#include "base/status.h"

enum { PAIR = 2, QUADS = SCORE_LANES / 4 };

typedef float quad __attribute__((vector_size(16)));

int scores_alloc(struct score_matrix *m, struct arena *arena, idx k, idx p)
{
  *m = (struct score_matrix){.k = k, .p = p, .panels = (idx)ceil_div(k, SCORE_LANES)};
  return arena_alloc(arena, &m->values, scores_width(m) * p, sizeof *m->values);
}

void scores_put(struct score_matrix *m, const float *rows, idx first, idx count)
{
  for (idx i = 0; i < count; i++) {
    idx a = first + i;
    float *panel = m->values + (gidx)(a / SCORE_LANES) * m->p * SCORE_LANES + a % SCORE_LANES;
    for (idx c = 0; c < m->p; c++) panel[(gidx)c * SCORE_LANES] = rows[(gidx)i * m->p + c];
  }
}

gidx scores_width(const struct score_matrix *m)
{
  return (gidx)m->panels * SCORE_LANES;
}

/* out[SCORE_LANES] of `rows` rows <- their products with a panel; the sums stay in registers. */
static inline void panel_products(const float *panel, const float *const *x, idx p, int rows,
                                  float *const *out)
{
  quad sum[PAIR][QUADS] = {0};
  for (idx c = 0; c < p; c++, panel += SCORE_LANES)
#pragma GCC unroll 2
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
      for (int q = 0; q < QUADS; q++) sum[r][q] += x[r][c] * ((const quad *)panel)[q];
  for (int r = 0; r < rows; r++) memcpy(out[r], sum[r], sizeof sum[r]);
}

void scores_products(const struct score_matrix *m, const float *rows, idx n, float *scores)
{
  gidx width = scores_width(m);
  for (idx i = 0; i < m->panels; i++) {
    const float *panel = m->values + (gidx)i * m->p * SCORE_LANES;
    float *to = scores + (gidx)i * SCORE_LANES;
    for (idx r = 0; r < n; r += PAIR) {
      const float *x = rows + (gidx)r * m->p;
      if (r + 1 < n)
        panel_products(panel, (const float *[]){x, x + m->p}, m->p, PAIR,
                       (float *[]){to + r * width, to + (r + 1) * width});
      else
        panel_products(panel, &x, m->p, 1, (float *[]){to + r * width});
    }
  }
}
