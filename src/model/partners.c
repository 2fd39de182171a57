/* SPDX-License-Identifier: BSD-3-Clause
 * One chain over the atoms; the loneliest are kept in a sorted list. */
#include "model/partners.h"

#include <math.h>

void partners_count(struct partners *p, real above)
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

gidx partners_mutual(const struct partners *a, const struct partners *b, real above)
{
  gidx pairs = 0;
  for (idx i = 0; i < a->k; i++)
    pairs += fabs((real)a->cosine[i]) > above && b->nearest[a->nearest[i]] == i;
  return pairs;
}

idx partners_lonely(const struct partners *p, real above, idx most, idx *worst)
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
