/* SPDX-License-Identifier: BSD-3-Clause
 * The mean is one chain over the atoms; atoms with the lowest cosines are kept in a sorted list. */
#include "model/matches.h"

#include <math.h>

void matches_count(struct matches *p, real above)
{
  real sum = 0;
  p->matched = 0;
  for (idx a = 0; a < p->k; a++) {
    real cosine = fabs((real)p->cosine[a]);
    sum += cosine;
    p->matched += cosine > above;
  }
  p->mean = p->k ? sum / p->k : 0;
}

gidx matches_mutual(const struct matches *a, const struct matches *b, real above)
{
  gidx pairs = 0;
  for (idx i = 0; i < a->k; i++)
    pairs += fabs((real)a->cosine[i]) > above && b->nearest[a->nearest[i]] == i;
  return pairs;
}

idx matches_lonely(const struct matches *p, real above, idx most, idx *worst)
{
  idx count = 0;
  for (idx a = 0; a < p->k; a++) {
    float cosine = fabsf(p->cosine[a]);
    if (cosine > above) continue;
    idx at = count < most ? count++ : most;
    for (; at > 0 && fabsf(p->cosine[worst[at - 1]]) > cosine; at--)
      if (at < most) worst[at] = worst[at - 1];
    if (at < most) worst[at] = a;
  }
  return count;
}
