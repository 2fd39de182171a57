/* SPDX-License-Identifier: BSD-3-Clause
 * Each seed is counted like a comparison of two dictionaries (pairs.c). */
#include "model/stability.h"

#include "base/status.h"
#include "model/pairs.h"

void stability_best(struct stability *s)
{
  for (idx a = 0; a < s->k; a++) s->best[a] = s->cosine[a];
  for (idx r = 1; r < s->seeds; r++)
    for (idx a = 0; a < s->k; a++) {
      float cosine = s->cosine[(gidx)r * s->k + a];
      if (cosine > s->best[a]) s->best[a] = cosine;
    }
}

static void seed_add(struct stability *s, idx seed, idx *order, idx *match)
{
  struct pairs p = {.k = s->k,
                    .l = s->k,
                    .match = match,
                    .cosine = s->cosine + (gidx)seed * s->k,
                    .density = s->density};
  pairs_count(&p, order);
  s->pw_mcc += p.mean;
  s->low += (real)p.low / s->k;
  s->high += (real)p.high / s->k;
  s->frequent += p.frequent;
  s->rare += p.rare;
}

void stability_count(struct stability *s, idx *order, idx *match)
{
  idx low = 0, high = 0;
  s->pw_mcc = s->low = s->high = s->frequent = s->rare = 0;
  for (idx a = 0; a < s->k; a++) {
    match[a] = 0; /* each atom has a pair: the dictionaries have equal sizes */
    low += (real)s->best[a] > PAIRS_LOW;
    high += (real)s->best[a] > PAIRS_HIGH;
  }
  for (idx r = 0; r < s->seeds; r++) seed_add(s, r, order, match);
  real *means[] = {&s->pw_mcc, &s->low, &s->high, &s->frequent, &s->rare};
  for (int i = 0; i < LENGTH(means); i++) *means[i] /= s->seeds;
  s->found_low = (real)low / s->k;
  s->found_high = (real)high / s->k;
}
