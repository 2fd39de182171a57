/* SPDX-License-Identifier: BSD-3-Clause
 * A candidate counts if it explains variance and predicts labels nearly as well as the best one.
 * If no candidate does both, those that explain variance well enough count.  The largest that
 * counts is chosen, unless a smaller one is more stable by more than CHOICE_GAIN. */
#include "model/choice.h"

#include <math.h>

int candidates_make(idx encode_s, struct candidate *c)
{
  int count = 0;
  for (int i = 0; i < CHOICE_MOST && encode_s >> i; i++)
    c[count++] = (struct candidate){.top_s = encode_s >> i};
  return count;
}

int candidate_choose(struct candidate *c, int count)
{
  real explained = -INFINITY, f1 = -INFINITY;
  int chosen = -1, both = 0;
  for (int i = 0; i < count; i++) {
    explained = fmax(explained, c[i].explained);
    f1 = fmax(f1, c[i].f1); /* fmax() ignores NaN */
  }
  for (int i = 0; i < count; i++) {
    c[i].explains = 1 - c[i].explained <= (1 + CHOICE_UNEXPLAINED) * (1 - explained);
    c[i].tells = isnan(c[i].f1) || c[i].f1 >= f1 - CHOICE_F1;
    both |= c[i].explains && c[i].tells;
  }
  for (int i = 0; i < count; i++) {
    int counts = c[i].explains && (c[i].tells || !both);
    if (counts && (chosen < 0 || c[i].pw_mcc > c[chosen].pw_mcc + CHOICE_GAIN)) chosen = i;
  }
  return chosen < 0 ? 0 : chosen; /* 0 if explained variances are NaN */
}
