/* SPDX-License-Identifier: BSD-3-Clause
 * The cut is found digit by digit, the highest first; batch_select_reference() sorts all
 * positive scores instead. */
#include "model/batch_cut.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"

/* The weight of a new batch in the running mean; the mean thus covers about a hundred batches. */
static const real PART = 0.01;

gidx batch_most(real l0, idx n)
{
  return (gidx)floor(l0 * n);
}

struct batch_cut batch_cut_begin(gidx most)
{
  if (most > 0) return (struct batch_cut){.left = most};
  return (struct batch_cut){.key = INT32_MAX, .digits = BATCH_DIGITS};
}

void batch_cut_narrow(struct batch_cut *cut, const gidx *counts)
{
  int bins = cut->digits ? 1024 : BATCH_BINS, bin = bins - 1;
  for (; bin >= 0 && counts[bin] < cut->left; bin--) cut->left -= counts[bin];
  if (bin < 0) { /* fewer scores are positive than codes are wanted */
    *cut = (struct batch_cut){.digits = BATCH_DIGITS};
    return;
  }
  cut->key |= (int32_t)bin << (20 - 10 * cut->digits);
  cut->digits++;
}

float batch_cut_value(const struct batch_cut *cut)
{
  float value;
  memcpy(&value, &cut->key, sizeof value);
  return value;
}

struct score {
  float value;
  gidx at; /* row k + atom */
};

static int score_compare(const void *left, const void *right)
{
  const struct score *a = left, *b = right;
  if (a->value != b->value) return a->value > b->value ? -1 : 1;
  return (a->at > b->at) - (a->at < b->at);
}

int batch_select_reference(const float *scores, idx n, idx k, gidx most, float *codes, float *least)
{
  struct arena arena = {0};
  struct score *list;
  gidx count = 0, all = (gidx)n * k;
  int status = arena_alloc(&arena, &list, imax(all, 1), sizeof *list);
  if (!status) {
    for (gidx i = 0; i < all; i++)
      if (scores[i] > 0) list[count++] = (struct score){scores[i], i};
    qsort(list, (size_t)count, sizeof *list, score_compare);
    memset(codes, 0, (size_t)all * sizeof *codes);
    for (gidx i = 0; i < count && i < most; i++) codes[list[i].at] = list[i].value;
    *least = most > 0 && count >= most ? list[most - 1].value : 0;
  }
  arena_free(&arena);
  return status;
}

void batch_threshold_add(struct batch_threshold *t, float least)
{
  t->sum = (1 - PART) * t->sum + PART * least;
  t->weight = (1 - PART) * t->weight + PART;
}

float batch_threshold_value(const struct batch_threshold *t)
{
  return t->weight > 0 ? (float)(t->sum / t->weight) : 0;
}
