/* SPDX-License-Identifier: BSD-3-Clause
 * All that are positive, or above their thresholds, by atom; of topk the largest,
 * in their order. */
#include "model/encoder.h"

#include <stddef.h>

#include "model/identity.h"

const char *const encoder_names[ENCODER_KINDS] = {"relu", "topk", "jumprelu", "batchtopk"};

float encoder_score(const struct encoder *e, const float *row, idx atom)
{
  const float *w = e->weights + (gidx)atom * e->p;
  float acc = 0;
  for (idx c = 0; c < e->p; c++) acc += row[c] * w[c];
  acc += e->bias[atom];
  return e->rescaled && e->norm ? acc * e->norm[atom] : acc;
}

uint64_t encoder_hash(const struct encoder *e, uint64_t weights_terms)
{
  const float *vectors[] = {e->bias, e->threshold, e->norm};
  uint64_t sum = weights_terms;
  for (idx i = 0; i < 3; i++)
    if (vectors[i]) sum += (uint64_t)(2 * i + 3) * items_terms(vectors[i], 1, e->k, 0);
  gidx top = e->kind == ENCODER_TOPK ? e->top : 0;
  return content_hash(sum, e->k, e->p,
                      (top << 4) + (e->rescaled << 3) + (e->centered << 2) + (int)e->kind);
}

/* Put an atom into a list of the largest, which has n of at most `top`; returns how many it has. */
static idx list_insert(const float *scores, idx atom, idx top, idx *atoms, idx n)
{
  if (n == top && scores[atoms[n - 1]] >= scores[atom]) return n;
  idx at = n < top ? n++ : n - 1;
  for (; at > 0 && scores[atoms[at - 1]] < scores[atom]; at--) atoms[at] = atoms[at - 1];
  atoms[at] = atom;
  return n;
}

idx encoder_select(const struct encoder *e, const float *scores, idx *atoms, float *codes)
{
  idx n = 0;
  for (idx a = 0; a < e->k; a++) {
    if (!(scores[a] > 0) || (e->threshold && !(scores[a] > e->threshold[a]))) continue;
    if (e->kind == ENCODER_TOPK)
      n = list_insert(scores, a, e->top, atoms, n);
    else
      atoms[n++] = a;
  }
  for (idx j = 0; j < n; j++)
    codes[j] = e->norm && !e->rescaled ? scores[atoms[j]] * e->norm[atoms[j]] : scores[atoms[j]];
  return n;
}

idx pursuit_step(const float *atoms, idx k, idx p, const float *scores, float *residual,
                 idx *support, float *codes, idx n)
{
  idx best = 0, at = 0;
  for (idx a = 1; a < k; a++)
    if (scores[a] > scores[best]) best = a;
  if (!(scores[best] > 0)) return n;
  const float *atom = atoms + (gidx)best * p;
  for (idx c = 0; c < p; c++) residual[c] -= scores[best] * atom[c];
  while (at < n && support[at] != best) at++;
  if (at == n) codes[n] = 0;
  support[at] = best;
  codes[at] += scores[best];
  return at == n ? n + 1 : n;
}
