/* SPDX-License-Identifier: BSD-3-Clause
 * There is one pass over the rows for each panel of border columns; it sums only diagonal entries
 * of S.  One more pass finds the loss in the direction of the border's step.  If determinants show
 * that many bits may be lost in other directions, S is computed and factored. */
#include "model/arrow_loss.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sums.h"

enum { MANY_BITS = 26 }; /* users are warned of a larger loss */
enum { PANEL = 32 };     /* border columns whose lanes stay in a first-level cache */

/* The factor of a row's diagonal block, and the largest loss so far. */
struct loss {
  const struct arrow_system *s;
  real ridge_t, ridge_b;
  real block[ARROW_MAX_D * ARROW_MAX_D], l[ARROW_MAX_D * ARROW_MAX_D];
  struct det_pair rows, diagonal; /* products of the rows' pivots, and of the S_jj */
  idx bits;
};

/* Update the largest loss: a sum that began with `of` cancelled to `left`. */
static void loss_note(struct loss *w, real of, real left)
{
  int before, after;
  if (!(of > 0) || !isfinite(of)) return;
  frexp(of, &before);
  frexp(left, &after);
  idx bits = left > 0 && before - after < ARROW_BITS ? before - after : ARROW_BITS;
  if (bits > w->bits) w->bits = bits;
}

/* Compute L of a row, and update the largest loss by its pivots. */
static void row_factor(struct loss *w, gidx row)
{
  idx d = w->s->d;
  memcpy(w->block, w->s->h + row * d * d, (size_t)(d * d) * sizeof(real));
  for (idx m = 0; m < d; m++) w->block[m * d + m] += w->ridge_t;
  arrow_cholesky(w->block, d, w->l, &w->rows);
  for (idx m = 0; m < d; m++) loss_note(w, w->block[m * d + m], w->l[m * d + m] * w->l[m * d + m]);
}

/* Add the lanes of a segment to sum[columns], in the order of (N.12); is_first: store them there.
 * Then set the lanes to 0. */
static void segment_end(real lane[LANE_COUNT][PANEL], idx columns, int is_first, real *sum)
{
  for (int half = LANE_COUNT / 2; half >= 1; half /= 2)
    for (int i = 0; i < half; i++)
      for (idx j = 0; j < columns; j++) lane[i][j] += lane[i + half][j];
  for (idx j = 0; j < columns; j++) sum[j] = is_first ? lane[0][j] : sum[j] + lane[0][j];
  memset(lane, 0, LANE_COUNT * sizeof *lane);
}

/* sum[columns] <- T_jj of (N.9) for columns first .. first + columns - 1. */
static void panel_sum(struct loss *w, idx first, idx columns, real *sum)
{
  const struct arrow_system *s = w->s;
  real lane[LANE_COUNT][PANEL] = {{0}}, y[ARROW_MAX_D];
  idx d = s->d;
  for (gidx row = 0; row < s->n; row++) {
    gidx at = row % LANE_SEGMENT;
    real *own = lane[at % LANE_COUNT];
    row_factor(w, row);
    for (idx j = 0; j < columns; j++) {
      memcpy(y, s->b + (row * s->k + first + j) * d, (size_t)d * sizeof *y);
      arrow_forward(w->l, d, y);
      for (idx m = 0; m < d; m++) own[j] = fma(y[m], y[m], own[j]);
    }
    if (at == LANE_SEGMENT - 1 || row == s->n - 1)
      segment_end(lane, columns, row < LANE_SEGMENT, sum);
  }
}

/* Update the largest loss by the diagonal of S. */
static void diagonal_note(struct loss *w)
{
  const struct arrow_system *s = w->s;
  for (idx first = 0; first < s->k; first += PANEL) {
    idx columns = s->k - first < PANEL ? s->k - first : PANEL;
    real sum[PANEL] = {0};
    panel_sum(w, first, columns, sum);
    for (idx j = 0; j < columns; j++) {
      real c = s->c[(gidx)(first + j) * s->k + first + j] + w->ridge_b;
      loss_note(w, c, c - sum[j]);
      if (c - sum[j] > 0) w->diagonal = det_pair_pivot(w->diagonal, c - sum[j]);
    }
  }
}

/* b'(C + ridge_b I)b. */
static real border_form(const struct loss *w, const real *b)
{
  const struct arrow_system *s = w->s;
  real sum = 0;
  for (gidx j = 0; j < s->k; j++) {
    real half = 0.5 * (s->c[j * s->k + j] + w->ridge_b) * b[j];
    for (gidx i = j + 1; i < s->k; i++) half = fma(s->c[j * s->k + i], b[i], half);
    sum = fma(2 * b[j], half, sum);
  }
  return sum;
}

/* Update the largest loss by S in the direction of the border's step.  This shows a nearly singular
 * S, whatever its eigenvectors are. */
static void step_note(struct loss *w, const real *b)
{
  const struct arrow_system *s = w->s;
  real form = border_form(w, b), left = form, q[ARROW_MAX_D];
  idx d = s->d;
  w->rows = det_pair_unit;
  for (gidx row = 0; row < s->n; row++) {
    row_factor(w, row);
    for (idx m = 0; m < d; m++) {
      q[m] = 0;
      for (idx j = 0; j < s->k; j++) q[m] = fma(s->b[(row * s->k + j) * d + m], b[j], q[m]);
    }
    arrow_forward(w->l, d, q);
    for (idx m = 0; m < d; m++) left = fma(-q[m], q[m], left);
  }
  loss_note(w, form, left);
}

/* schur[k][k] <- the lower triangle of S, column-major, without fma.  On a processor without an fma
 * instruction, fma() of the C library would make this ten times slower. */
static void schur_make(struct loss *w, real *schur)
{
  const struct arrow_system *s = w->s;
  gidx d = s->d, k = s->k;
  real x[ARROW_MAX_D], y[ARROW_MAX_D][ARROW_MAX_BORDER];
  memcpy(schur, s->c, (size_t)(k * k) * sizeof *schur);
  for (gidx j = 0; j < k; j++) schur[j * k + j] += w->ridge_b;
  for (gidx row = 0; row < s->n; row++) {
    row_factor(w, row);
    for (gidx j = 0; j < k; j++) {
      memcpy(x, s->b + (row * k + j) * d, (size_t)d * sizeof *x);
      arrow_forward(w->l, s->d, x);
      for (gidx m = 0; m < d; m++) y[m][j] = x[m];
    }
    for (gidx j = 0; j < k; j++)
      for (gidx m = 0; m < d; m++)
        for (gidx i = j; i < k; i++) schur[j * k + i] -= y[m][i] * y[m][j];
  }
}

/* Update the largest loss by the pivots of S.  They show losses in directions that neither the
 * diagonal nor the step show.  The product of all S_jj / pivot_j equals the product of all S_jj
 * over the determinant of S.  No factor is below 1. */
static int pivots_note(struct loss *w, const struct arrow_outcome *out)
{
  const struct arrow_system *s = w->s;
  gidx k = s->k, lost = w->diagonal.e - (out->pair.e - w->rows.e);
  struct det_pair unused = det_pair_unit;
  if (w->bits + lost <= MANY_BITS) return 1;
  real *schur = malloc(2 * (size_t)(k * k) * sizeof *schur), *l = schur + k * k;
  if (!schur) return 0;
  schur_make(w, schur);
  idx bad = arrow_cholesky(schur, s->k, l, &unused);
  for (gidx j = 0; j < k; j++) {
    real left = bad < 0 || j < bad ? l[j * k + j] * l[j * k + j] : 0;
    loss_note(w, s->c[j * k + j] + w->ridge_b, left);
  }
  free(schur);
  return 1;
}

idx arrow_lost_bits(const struct arrow_system *s, const struct arrow_outcome *out,
                    const real *step_b)
{
  struct loss w = {.s = s, .ridge_t = out->ridge_t, .ridge_b = out->ridge_b};
  w.rows = w.diagonal = det_pair_unit;
  if (out->status != ARROW_OK) return 0;
  diagonal_note(&w);
  step_note(&w, step_b);
  if (s->k > 0 && !pivots_note(&w, out)) return -1;
  return w.bits;
}
