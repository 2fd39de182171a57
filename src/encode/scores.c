/* SPDX-License-Identifier: BSD-3-Clause
 * Two rows pass a panel together: each has four registers of accumulators, which hide the latency
 * of an addition. */
#include "encode/scores.h"

#include <string.h>

#include "base/num.h"
#include "base/status.h"

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

static void panel_pair(const float *panel, const float *x, const float *y, idx p, float *of_x,
                       float *of_y)
{
  float a[SCORE_LANES] = {0}, b[SCORE_LANES] = {0};
  for (idx c = 0; c < p; c++, panel += SCORE_LANES)
    for (int l = 0; l < SCORE_LANES; l++) {
      a[l] += x[c] * panel[l];
      b[l] += y[c] * panel[l];
    }
  memcpy(of_x, a, sizeof a);
  memcpy(of_y, b, sizeof b);
}

static void panel_single(const float *panel, const float *x, idx p, float *of_x)
{
  float a[SCORE_LANES] = {0};
  for (idx c = 0; c < p; c++, panel += SCORE_LANES)
    for (int l = 0; l < SCORE_LANES; l++) a[l] += x[c] * panel[l];
  memcpy(of_x, a, sizeof a);
}

void scores_products(const struct score_matrix *m, const float *rows, idx n, float *scores)
{
  gidx width = scores_width(m);
  for (idx i = 0; i < m->panels; i++) {
    const float *panel = m->values + (gidx)i * m->p * SCORE_LANES;
    float *out = scores + (gidx)i * SCORE_LANES;
    idx r = 0;
    for (; r + 1 < n; r += 2)
      panel_pair(panel, rows + (gidx)r * m->p, rows + (gidx)(r + 1) * m->p, m->p, out + r * width,
                 out + (r + 1) * width);
    if (r < n) panel_single(panel, rows + (gidx)r * m->p, m->p, out + r * width);
  }
}

void scores_finish(const struct encoder *e, float *scores)
{
  for (idx a = 0; a < e->k; a++) {
    scores[a] += e->bias[a];
    if (e->rescaled && e->norm) scores[a] *= e->norm[a];
  }
}
