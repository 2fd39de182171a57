/* SPDX-License-Identifier: BSD-3-Clause
 * The references compute all scores of all rows, row after row. */
#include "model/find.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "model/codes.h"
#include "model/train.h"

float find_score(const float *x, const float *atom, idx p)
{
  float acc = 0;
  for (idx c = 0; c < p; c++) acc = fmaf(x[c], atom[c], acc);
  return acc;
}

/* The score that an atom with code c would have without this code; h is its product with the
 * residual. */
static float score_raise(const struct find_raise *row, real h, real c)
{
  if (!row->relative) return (float)h + (float)c;
  real without = fma(c, c, fma(2 * c, h, row->square));
  return (float)((h + c) / sqrt(fmax(without, 0) + row->floor));
}

void find_raise(const struct find_raise *row, float *scores)
{
  real per = 1 / sqrt(row->square + row->floor);
  idx a = 0;
  for (idx j = 0; j <= row->n; j++) {
    idx end = j < row->n ? row->index[j] : row->k;
    for (; a < end && row->relative; a++) scores[a] = (float)(per * (real)scores[a]);
    if (j < row->n) scores[end] = score_raise(row, scores[end], row->code[j]);
    a = end + 1;
  }
}

struct found_encoder find_standard(real square)
{
  return (struct found_encoder){.looks = 3, .relative = 1, .floor = 0.1 * square};
}

struct batch_cut find_cut_at(float threshold)
{
  return (struct batch_cut){.key = batch_key(threshold), .digits = BATCH_DIGITS};
}

float find_largest(const float *values, gidx n, idx most)
{
  struct batch_cut cut = batch_cut_begin(most);
  while (cut.digits < BATCH_DIGITS) {
    gidx counts[BATCH_BINS] = {0};
    for (gidx i = 0; i < n; i++) {
      int bin = batch_digit(&cut, batch_key(values[i]));
      if (bin >= 0) counts[bin]++;
    }
    batch_cut_narrow(&cut, counts);
  }
  return batch_cut_value(&cut);
}

/* chosen[k] <- the ACTIVE_MOST largest positive values of active[k], of equal values those of the
 * lower atoms; 0 elsewhere. */
static void active_trim(const float *active, idx k, float *chosen)
{
  idx n = 0;
  for (idx a = 0; a < k; a++) n += (chosen[a] = active[a] > 0 ? active[a] : 0) > 0;
  for (; n > ACTIVE_MOST; n--) {
    idx last = -1;
    for (idx a = 0; a < k; a++)
      if (chosen[a] > 0 && (last < 0 || chosen[a] <= chosen[last])) last = a;
    chosen[last] = 0;
  }
}

struct solve_work {
  const float **vector;
  real *toward, *codes, *work;
  float *chosen;
};

static int solve_alloc(struct arena *arena, idx k, struct solve_work *w)
{
  gidx most = imin(k, ACTIVE_MOST);
  TRY(arena_alloc(arena, &w->vector, most, sizeof *w->vector));
  TRY(arena_alloc(arena, &w->toward, most, sizeof(real)));
  TRY(arena_alloc(arena, &w->codes, most, sizeof(real)));
  TRY(arena_alloc(arena, &w->work, codes_work((idx)most), sizeof(real)));
  return arena_alloc(arena, &w->chosen, k, sizeof(float));
}

static void row_solve(const struct find_rows *r, const float *x, const float *active,
                      struct solve_work *w, float *codes, float *residual)
{
  idx m = 0;
  active_trim(active, r->k, w->chosen);
  for (idx a = 0; a < r->k; a++) {
    if (!(w->chosen[a] > 0)) continue;
    w->toward[m] = r->toward ? r->toward[a] : 0;
    w->vector[m++] = r->atoms + (gidx)a * r->p;
  }
  codes_toward_reference(x, w->vector, m, r->p, r->rho, w->toward, w->codes, w->work);
  residual_reference(x, w->vector, m, r->p, w->codes, residual);
  for (idx a = 0, j = 0; a < r->k; a++) codes[a] = w->chosen[a] > 0 ? (float)w->codes[j++] : 0;
}

int find_codes_reference(const struct find_rows *r, idx row, const float *active, float *codes,
                         float *residual)
{
  struct arena arena = {0};
  struct solve_work w;
  int status = solve_alloc(&arena, r->k, &w);
  if (!status) row_solve(r, r->x + (gidx)row * r->p, active, &w, codes, residual);
  arena_free(&arena);
  return status;
}

/* scores[k] <- the scores of x[p]: a row, with codes NULL; or the residual of a row with
 * codes[k]. */
static void row_score(const struct find_rows *r, const float *x, const float *codes, float *scores)
{
  struct find_raise row = {
      .k = r->k, .square = train_square(x, r->p), .relative = r->relative, .floor = r->floor};
  idx index[ACTIVE_MOST];
  float code[ACTIVE_MOST];
  for (idx a = 0; a < r->k; a++) {
    scores[a] = find_score(x, r->atoms + (gidx)a * r->p, r->p);
    if (!codes || !(codes[a] > 0)) continue;
    index[row.n] = a;
    code[row.n++] = codes[a];
  }
  row.index = index;
  row.code = code;
  find_raise(&row, scores);
}

/* One choice: the scores of the batch, its cut, and the codes of each row. */
static int batch_choose(const struct find_rows *r, gidx most, int look, float *codes, float *left,
                        float *scores, float *active, float *least)
{
  for (idx i = 0; i < r->n; i++) {
    gidx at = (gidx)i * r->k;
    const float *x = (look ? left : r->x) + (gidx)i * r->p;
    row_score(r, x, look ? codes + at : NULL, scores + at);
  }
  TRY(batch_select_reference(scores, r->n, r->k, most, active, least));
  for (idx i = 0; i < r->n; i++) {
    gidx at = (gidx)i * r->k;
    TRY(find_codes_reference(r, i, active + at, codes + at, left + (gidx)i * r->p));
  }
  return OK;
}

int find_batch_reference(const struct find_rows *r, real l0, int looks, float *codes, float *left,
                         float *least)
{
  struct arena arena = {0};
  float *scores, *active;
  gidx all = (gidx)r->n * r->k;
  int status = arena_alloc(&arena, &scores, all, sizeof *scores);
  if (!status) status = arena_alloc(&arena, &active, all, sizeof *active);
  for (int look = 0; look <= looks && !status; look++)
    status = batch_choose(r, batch_most(l0, r->n), look, codes, left, scores, active, least + look);
  arena_free(&arena);
  return status;
}

/* Encode one row; scores that are not above the threshold do not count. */
static int row_encode(const struct find_rows *r, idx row, const struct found_encoder *by,
                      float *scores, float *left, float *codes)
{
  const float *x = r->x + (gidx)row * r->p;
  for (int look = 0; look <= by->looks; look++) {
    row_score(r, look ? left : x, look ? codes : NULL, scores);
    for (idx a = 0; a < r->k; a++)
      if (!(scores[a] > by->threshold[look])) scores[a] = 0;
    TRY(find_codes_reference(r, row, scores, codes, left));
  }
  return OK;
}

int find_encode_reference(const struct find_rows *r, const struct found_encoder *by, float *codes)
{
  struct arena arena = {0};
  float *left, *scores;
  struct find_rows rows = *r;
  rows.rho = by->rho;
  rows.relative = by->relative;
  rows.floor = by->floor;
  int status = arena_alloc(&arena, &left, r->p, sizeof *left);
  if (!status) status = arena_alloc(&arena, &scores, r->k, sizeof *scores);
  for (idx i = 0; i < r->n && !status; i++)
    status = row_encode(&rows, i, by, scores, left, codes + (gidx)i * r->k);
  arena_free(&arena);
  return status;
}
