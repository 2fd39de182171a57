/* SPDX-License-Identifier: BSD-3-Clause
 * cuts_reference() takes the codes from batch_select_reference(), and finds the last of those that
 * equal the smallest. */
#include "model/cuts.h"

#include <math.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"

int cuts_are_same(const struct score_cuts *a, const struct score_cuts *b)
{
  int same = a->n == b->n && a->floor == b->floor && a->rows == b->rows;
  for (int i = 0; i < a->n && same; i++) {
    const struct score_cut *x = &a->at[i], *y = &b->at[i];
    same = x->least == y->least && x->row == y->row && x->ties == y->ties;
  }
  return same;
}

gidx cuts_most(real l0, gidx n)
{
  return (gidx)floor(l0 * (real)n);
}

void window_begin(struct key_window *w, int32_t base, int shift)
{
  w->base = base;
  w->shift = shift;
  memset(w->bins, 0, (WINDOW_BINS + 1) * sizeof *w->bins);
}

void window_add(struct key_window *w, const float *scores, gidx n)
{
  for (gidx i = 0; i < n; i++) {
    int32_t key = batch_key(scores[i]);
    if (key < w->base) continue;
    w->bins[imin((key - w->base) >> w->shift, WINDOW_BINS)]++;
  }
}

int window_find(const struct key_window *w, gidx most, gidx *bin, gidx *left)
{
  gidx above = w->bins[WINDOW_BINS];
  if (above >= most) return 0;
  for (gidx b = WINDOW_BINS - 1; b >= 0; b--) {
    above += w->bins[b];
    if (above < most) continue;
    *bin = b;
    *left = most - (above - w->bins[b]);
    return 1;
  }
  return 0;
}

int32_t window_key(const struct key_window *w, gidx bin)
{
  return (int32_t)(w->base + (bin << w->shift));
}

struct encoder cuts_encoder(const struct encoder *of, float least, float *threshold)
{
  struct encoder by = *of;
  by.kind = ENCODER_BATCHTOPK;
  by.threshold = threshold;
  for (idx a = 0; a < by.k; a++) threshold[a] = least > 0 ? nextafterf(least, 0) : 0;
  return by;
}

void cuts_entries(const struct score_cut *cut, gidx row, idx n, idx *lengths, struct entry_list *l)
{
  gidx from = 0, at = 0;
  for (idx i = 0; i < n; i++) {
    gidx begin = at, tied = 0;
    for (gidx end = from + lengths[i]; from < end; from++) {
      if (!cut_takes(cut, l->score[from], row + i, &tied)) continue;
      l->atoms[at] = l->atoms[from];
      l->score[at] = l->score[from];
      l->codes[at++] = l->codes[from];
    }
    lengths[i] = (idx)(at - begin);
  }
  l->n = at;
}

int cuts_reference(const float *scores, idx n, idx k, gidx most, float *codes,
                   struct score_cut *cut)
{
  float least;
  TRY(batch_select_reference(scores, n, k, most, codes, &least));
  gidx all = (gidx)n * k, last = -1, left_out = 0;
  *cut = (struct score_cut){.least = least, .row = n};
  for (gidx i = 0; i < all && least > 0; i++) {
    if (codes[i] == least) last = i;
    left_out += scores[i] == least && codes[i] == 0;
  }
  if (!left_out) return OK; /* all scores that equal the smallest code are codes */
  cut->row = last / k;
  for (idx a = 0; a < k; a++) cut->ties += codes[cut->row * k + a] == least;
  return OK;
}
