/* SPDX-License-Identifier: BSD-3-Clause
 * The references loop over rows, then passes, then blocks. */
#include "model/find_nested.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "model/train.h"
#include "model/triad.h"

float nested_top(int relative, real square)
{
  return relative ? 1 : (float)(4 * sqrt(square));
}

/* Work space for one row: y[p] is its residual in this pass; before[p] its residual after the
 * previous pass, in the first pass the row itself; scores[k]; previous[k] the codes of the previous
 * pass, 0 in the first pass; rest[p] the row that scores are computed for. */
struct row_work {
  float *y, *next, *before, *scores, *codes, *previous, *rest;
  idx index[ACTIVE_MOST]; /* of a block */
  float code[ACTIVE_MOST];
};

/* scores <- the scores of the block's atoms.  They are computed for the row `rest`, which is y less
 * the contributions of the atoms of the block that the previous pass chose; but an atom's own
 * contribution is not subtracted from its score. */
static void block_score(const struct find_rows *block, idx first, struct row_work *w)
{
  struct find_raise raise = {.k = block->k,
                             .index = w->index,
                             .code = w->code,
                             .square = train_square(w->before, block->p),
                             .relative = block->relative,
                             .floor = block->floor};
  for (idx a = 0; a < block->k; a++) {
    if (!(w->previous[first + a] > 0)) continue;
    w->index[raise.n] = a;
    w->code[raise.n++] = w->previous[first + a];
  }
  const gidx start[] = {0, raise.n};
  const struct triad_lists others = {1, start, w->index, w->code, block->atoms, block->p};
  triad_sparse(&others, w->rest);
  for (idx c = 0; c < block->p; c++) w->rest[c] = w->y[c] - w->rest[c];
  for (idx a = 0; a < block->k; a++)
    w->scores[first + a] = find_score(w->rest, block->atoms + (gidx)a * block->p, block->p);
  if (block->relative || raise.n) find_raise(&raise, w->scores + first);
}

/* Choose among atoms first .. end - 1 by a threshold, and solve their codes; then subtract their
 * contributions from y. */
static int block_choose(const struct find_rows *r, idx first, idx end, float threshold,
                        struct row_work *w)
{
  struct find_rows block = *r;
  float *scores = w->scores + first;
  block.n = 1;
  block.x = w->y;
  block.k = end - first;
  block.atoms += (gidx)first * r->p;
  if (block.toward) block.toward += first;
  block_score(&block, first, w);
  for (idx a = 0; a < block.k; a++)
    if (!(scores[a] > threshold)) scores[a] = 0;
  TRY(find_codes_reference(&block, 0, scores, w->codes + first, w->next));
  memcpy(w->y, w->next, (size_t)r->p * sizeof *w->y);
  return OK;
}

/* One pass: w->codes[k] are solved block by block.  Of the codes that are not 0 only the first
 * ACTIVE_MOST stay, by atom. */
static int row_pass(const struct find_rows *r, const struct find_blocks *blocks, float threshold,
                    const float *x, struct row_work *w)
{
  idx found = 0;
  memcpy(w->y, x, (size_t)r->p * sizeof *w->y);
  for (int b = 0; b < blocks->count; b++)
    TRY(block_choose(r, b ? blocks->end[b - 1] : 0, blocks->end[b], threshold, w));
  for (idx a = 0; a < r->k; a++)
    if (w->codes[a] > 0 && found++ >= ACTIVE_MOST) w->codes[a] = 0;
  return OK;
}

static int work_alloc(struct arena *arena, const struct find_rows *r, struct row_work *w)
{
  TRY(arena_alloc(arena, &w->y, r->p, sizeof(float)));
  TRY(arena_alloc(arena, &w->next, r->p, sizeof(float)));
  TRY(arena_alloc(arena, &w->before, r->p, sizeof(float)));
  TRY(arena_alloc(arena, &w->rest, r->p, sizeof(float)));
  TRY(arena_alloc(arena, &w->scores, r->k, sizeof(float)));
  TRY(arena_alloc(arena, &w->previous, r->k, sizeof(float)));
  return arena_alloc(arena, &w->codes, r->k, sizeof(float));
}

/* Run `passes` passes on a row.  w->previous <- the codes of the last of these passes; w->before <-
 * its residual. */
static int passes_run(const struct find_rows *r, const struct find_blocks *blocks, int passes,
                      const float *threshold, idx row, struct row_work *w)
{
  const float *x = r->x + (gidx)row * r->p;
  size_t bytes = (size_t)r->p * sizeof *x;
  memcpy(w->before, x, bytes);
  memset(w->previous, 0, (size_t)r->k * sizeof *w->previous);
  for (int look = 0; look < passes; look++) {
    TRY(row_pass(r, blocks, threshold[look], x, w));
    memcpy(w->before, w->y, bytes);
    memcpy(w->previous, w->codes, (size_t)r->k * sizeof *w->previous);
  }
  return OK;
}

int find_nested_reference(const struct find_rows *r, const struct find_blocks *blocks, int looks,
                          const float *threshold, float *codes, float *left)
{
  struct arena arena = {0};
  struct row_work w;
  int status = work_alloc(&arena, r, &w);
  for (idx i = 0; i < r->n && !status; i++) {
    gidx at = (gidx)i * r->p;
    status = passes_run(r, blocks, looks, threshold, i, &w);
    if (!status) status = row_pass(r, blocks, threshold[looks], r->x + at, &w);
    if (!status) status = find_codes_reference(r, i, w.codes, codes + (gidx)i * r->k, left + at);
  }
  arena_free(&arena);
  return status;
}

/* *found <- the number of atoms that pass `look` chooses, summed over all rows. */
static int pass_count(const struct find_rows *r, const struct find_blocks *blocks, int look,
                      const float *threshold, struct row_work *w, gidx *found)
{
  *found = 0;
  for (idx i = 0; i < r->n; i++) {
    TRY(passes_run(r, blocks, look, threshold, i, w));
    TRY(row_pass(r, blocks, threshold[look], r->x + (gidx)i * r->p, w));
    for (idx a = 0; a < r->k; a++) *found += w->codes[a] > 0;
  }
  return OK;
}

int find_thresholds_reference(const struct find_rows *r, const struct find_blocks *blocks, real l0,
                              int looks, float top, float *threshold)
{
  struct arena arena = {0};
  struct row_work w;
  int status = work_alloc(&arena, r, &w);
  for (int look = 0; look <= looks && !status; look++) {
    float low = 0, high = top;
    for (int i = 0; i < NESTED_HALVINGS && !status; i++) {
      gidx found;
      float middle = threshold[look] = nested_middle(low, high);
      status = pass_count(r, blocks, look, threshold, &w, &found);
      if (found > batch_most(l0, r->n))
        low = middle;
      else
        high = middle;
    }
    threshold[look] = high;
  }
  arena_free(&arena);
  return status;
}
