/* SPDX-License-Identifier: BSD-3-Clause
 * A block's matrix is factored and inverted by the references of dense.h. */
#include "model/find_update.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "model/dense.h"
#include "model/dictionary.h"

real find_unit(real square, real l0)
{
  int e;
  frexp(square / l0 / 16, &e); /* square / l0 / 16 is in [2^(e - 1), 2^e) */
  e--;
  return ldexp(1, e - (e & 1)); /* e & 1 is 1 for negative odd e, too */
}

real find_weight(real left, real floor, int is_last)
{
  real weight = floor > 0 ? floor / (left + floor) : 1;
  return is_last ? weight * weight : weight;
}

/* The code of an atom, or of the intercept, in a row, times a factor, rounded to f32. */
static real code_of(const float *codes, idx k, idx atom, real factor)
{
  return (float)(atom < k ? factor * (real)codes[atom] : factor);
}

void find_sums_reference(const float *y, const float *codes, const real *weights, idx n, idx k,
                         idx p, real *gram, real *target)
{
  for (idx i = 0; i < n; i++) {
    const float *row = codes + (gidx)i * k, *x = y + (gidx)i * p;
    real w = weights[i], root = sqrt(w);
    for (idx a = 0; a <= k; a++) {
      if (a < k && row[a] == 0) continue;
      for (idx b = 0; b <= k; b++) {
        gidx at = (gidx)a * (k + 1) + b;
        if (b < k && row[b] == 0) continue;
        gram[at] = fma(code_of(row, k, a, root), code_of(row, k, b, root), gram[at]);
      }
      for (idx c = 0; c < p; c++)
        target[(gidx)a * p + c] = fma(code_of(row, k, a, w), (real)x[c], target[(gidx)a * p + c]);
    }
  }
}

/* The right side for atom order[i] in column c; its block begins at position `first` of the
 * order. */
static real side_of(const struct find_sums *s, idx first, idx i, idx c, const idx *order,
                    const float *atoms, const real *moved)
{
  idx atom = order[i];
  gidx at = (gidx)atom * s->p + c;
  real acc = find_target(s, atom, s->target[at], s->target[(gidx)s->k * s->p + c]);
  acc = fma(s->ridge, (real)atoms[at], acc);
  const real *gram = s->gram + (gidx)atom * (s->k + 1);
  for (idx b = 0; b < first; b++)
    acc = fma(-find_gram(s, gram, atom, order[b]), moved[(gidx)b * s->p + c], acc);
  return acc;
}

/* z[m][m] <- the inverse of the Cholesky factor of a block's matrix, zeros above its diagonal;
 * returns 0 if there is no factor. */
static int block_factor(const struct find_sums *s, const idx *order, idx m, real *z, real *pivot)
{
  memset(z, 0, (size_t)m * (size_t)m * sizeof *z);
  for (idx i = 0; i < m; i++) {
    const real *gram = s->gram + (gidx)order[i] * (s->k + 1);
    for (idx j = 0; j <= i; j++) z[i + (gidx)j * m] = find_gram(s, gram, order[i], order[j]);
    z[i + (gidx)i * m] += s->ridge;
  }
  if (cholesky_reference(z, m, m, pivot) < m) return 0;
  inverse_reference(z, m, m);
  return 1;
}

/* x[m] <- Z'(Z x). */
static void side_solve(const real *z, idx m, real *x, real *y)
{
  for (idx i = 0; i < m; i++) {
    y[i] = 0;
    for (idx k = 0; k < m; k++) y[i] = fma(x[k], z[i + (gidx)k * m], y[i]);
  }
  for (idx i = 0; i < m; i++) {
    x[i] = 0;
    for (idx k = i; k < m; k++) x[i] = fma(y[k], z[k + (gidx)i * m], x[i]);
  }
}

static void block_move(const struct find_sums *s, idx first, idx end, const idx *order,
                       const float *atoms, real *moved, real *z, real *x)
{
  idx m = end - first;
  real *y = x + m;
  int good = block_factor(s, order + first, m, z, x);
  for (idx c = 0; c < s->p; c++) {
    for (idx i = 0; i < m; i++) x[i] = side_of(s, first, first + i, c, order, atoms, moved);
    if (good) side_solve(z, m, x, y);
    for (idx i = 0; i < m; i++)
      moved[(gidx)(first + i) * s->p + c] =
          good ? x[i] : (real)atoms[(gidx)order[first + i] * s->p + c];
  }
}

/* Add to the offset the intercept that the moved atoms leave. */
static void offset_move(const struct find_sums *s, const idx *order, const real *moved,
                        float *offset)
{
  const real *means = s->gram + (gidx)s->k * (s->k + 1);
  for (idx c = 0; c < s->p; c++) {
    real acc = s->target[(gidx)s->k * s->p + c];
    for (idx i = 0; i < s->k; i++) acc = fma(-moved[(gidx)i * s->p + c], means[order[i]], acc);
    offset[c] = (float)((real)offset[c] + acc / means[s->k]);
  }
}

int find_update_reference(const struct find_sums *s, const struct find_blocks *blocks,
                          const idx *order, const float *atoms, real *moved, float *offset)
{
  struct arena arena = {0};
  real *z, *x;
  idx most = 0;
  for (int b = 0; b < blocks->count; b++) {
    idx m = blocks->end[b] - (b ? blocks->end[b - 1] : 0);
    most = m > most ? m : most;
  }
  int status = arena_alloc(&arena, &z, (gidx)most * most, sizeof *z);
  if (!status) status = arena_alloc(&arena, &x, 2 * (gidx)most, sizeof *x);
  for (int b = 0; b < blocks->count && !status; b++)
    block_move(s, b ? blocks->end[b - 1] : 0, blocks->end[b], order, atoms, moved, z, x);
  if (!status) offset_move(s, order, moved, offset);
  arena_free(&arena);
  return status;
}

void find_scale(const real *moved, idx p, float *atom)
{
  real square = 0;
  for (idx c = 0; c < p; c++) square = fma(moved[c], moved[c], square);
  real norm = sqrt(square);
  if (!(norm > 0) || !isfinite(norm)) return;
  for (idx c = 0; c < p; c++) atom[c] = (float)(moved[c] / norm);
}

struct counted {
  gidx count;
  idx atom;
};

static int counted_compare(const void *left, const void *right)
{
  const struct counted *a = left, *b = right;
  if (a->count != b->count) return a->count > b->count ? -1 : 1;
  return (a->atom > b->atom) - (a->atom < b->atom);
}

int find_order(const gidx *count, idx k, idx *order)
{
  struct arena arena = {0};
  struct counted *list;
  int status = arena_alloc(&arena, &list, k, sizeof *list);
  for (idx a = 0; a < k && !status; a++) list[a] = (struct counted){count[a], a};
  if (!status) qsort(list, (size_t)k, sizeof *list, counted_compare);
  for (idx a = 0; a < k && !status; a++) order[a] = list[a].atom;
  arena_free(&arena);
  return status;
}
