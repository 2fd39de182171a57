/* SPDX-License-Identifier: BSD-3-Clause
 * The formulas are computed as they are written.  For each row these are found: the Gram matrix G,
 * the kept vectors, the factor L, the residual, B, Y = L^-1 B, and then the terms that the row adds
 * to S. */
#include "model/joint.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "model/codes.h"

void pair_sum_init(struct pair_sum *s)
{
  *s = (struct pair_sum){.done = det_pair_unit};
  for (int i = 0; i < LANE_COUNT; i++) s->lane[i] = det_pair_unit;
}

/* The product of the lanes, in the order in which (N.12) adds lanes. */
static struct det_pair lanes_total(const struct pair_sum *s)
{
  struct det_pair sum[LANE_COUNT];
  memcpy(sum, s->lane, sizeof sum);
  for (int half = LANE_COUNT / 2; half > 0; half /= 2)
    for (int i = 0; i < half; i++) sum[i] = det_pair_times(sum[i], sum[i + half]);
  return sum[0];
}

void pair_sum_pivot(struct pair_sum *s, gidx row, real pivot)
{
  for (; s->segment < row / LANE_SEGMENT; s->segment++) {
    s->done = det_pair_times(s->done, lanes_total(s));
    for (int i = 0; i < LANE_COUNT; i++) s->lane[i] = det_pair_unit;
  }
  struct det_pair *lane = &s->lane[row % LANE_COUNT];
  *lane = det_pair_pivot(*lane, pivot);
}

struct det_pair pair_sum_total(const struct pair_sum *s)
{
  return det_pair_times(s->done, lanes_total(s));
}

void joint_sums_init(struct joint_sums *s)
{
  *s = (struct joint_sums){0};
  pair_sum_init(&s->pairs);
}

int joint_phi(const struct joint_sums *sums, gidx n, idx p, idx border, real *phi)
{
  gidx values = n * p, freedom = values - sums->codes - border;
  CHECK(freedom > 0, ERR_INPUT,
        "%lld values do not determine %lld codes and %d borders: give fewer --directions or more "
        "rows",
        (long long)values, (long long)sums->codes, border);
  *phi = row_sum_total(&sums->errors) / (real)freedom;
  return OK;
}

/* The current row: M vectors of its support, m of them kept. */
struct row_work {
  const struct joint *j;
  idx big_m, m, width;  /* width: borders of the row's atoms */
  const float **vector; /* [M] */
  idx *kept;            /* [M] indexes of the kept vectors */
  real *g, *l;          /* [M][M], [m][m] row-major */
  real *pivot;          /* [m] */
  real *r;              /* [p] */
  idx *border;          /* [width] global number of the border */
  idx *from;            /* [width] index of the vector that the border moves */
  real *y;              /* [m][width] */
  struct arena arena;
};

/* Inner product by fma, in order. */
static real chain_floats(const float *a, const float *b, idx p)
{
  real acc = 0;
  for (idx c = 0; c < p; c++) acc = fma((real)a[c], (real)b[c], acc);
  return acc;
}

static real chain_mixed(const float *a, const real *b, idx p)
{
  real acc = 0;
  for (idx c = 0; c < p; c++) acc = fma((real)a[c], b[c], acc);
  return acc;
}

static real chain_reals(const real *a, const real *b, idx p)
{
  real acc = 0;
  for (idx c = 0; c < p; c++) acc = fma(a[c], b[c], acc);
  return acc;
}

/* Allocate arrays for rows of at most `atoms` atoms with at most `width` borders. */
static int row_alloc(struct row_work *w, idx atoms, idx width)
{
  gidx m = (gidx)atoms * w->j->d;
  w->big_m = (idx)m;
  TRY(arena_alloc(&w->arena, &w->vector, m, sizeof *w->vector));
  TRY(arena_alloc(&w->arena, &w->kept, m, sizeof *w->kept));
  TRY(arena_alloc(&w->arena, &w->g, m * m, sizeof(real)));
  TRY(arena_alloc(&w->arena, &w->l, m * m, sizeof(real)));
  TRY(arena_alloc(&w->arena, &w->pivot, m, sizeof(real)));
  TRY(arena_alloc(&w->arena, &w->r, w->j->p, sizeof(real)));
  TRY(arena_alloc(&w->arena, &w->border, width, sizeof(idx)));
  TRY(arena_alloc(&w->arena, &w->from, width, sizeof(idx)));
  return arena_alloc(&w->arena, &w->y, m * width, sizeof(real));
}

/* Factor the Gram matrix with rho.  Vectors with a large enough pivot (N.5) are appended to `kept`,
 * whose length is w->m. */
static void row_factor(struct row_work *w)
{
  idx M = w->big_m, m = 0;
  for (idx v = 0; v < M; v++) {
    for (idx i = 0; i <= m; i++) {
      idx u = i < m ? w->kept[i] : v;
      real acc = w->g[(gidx)v * M + u];
      if (i == m) acc += w->j->rho;
      for (idx k = 0; k < i; k++) acc = fma(-w->l[(gidx)m * M + k], w->l[(gidx)i * M + k], acc);
      if (i < m)
        w->l[(gidx)m * M + i] = acc / w->l[(gidx)i * M + i];
      else
        w->pivot[m] = acc;
    }
    if (!(w->pivot[m] > DROP_TOLERANCE * w->g[(gidx)v * M + v]) || !isfinite(w->pivot[m])) continue;
    w->l[(gidx)m * M + m] = sqrt(w->pivot[m]);
    w->kept[m++] = v;
  }
  w->m = m;
}

/* Set the row's vectors, its residual, and the factor of its diagonal block. */
static void row_begin(struct row_work *w, const float *x, const idx *atoms, const float *codes)
{
  const struct joint *j = w->j;
  for (idx v = 0; v < w->big_m; v++)
    w->vector[v] = j->atoms + ((gidx)atoms[v / j->d] * j->d + v % j->d) * j->p;
  for (idx c = 0; c < j->p; c++) {
    real acc = x[c];
    for (idx v = 0; v < w->big_m; v++) acc = fma(-(real)codes[v], (real)w->vector[v][c], acc);
    w->r[c] = acc;
  }
  for (idx u = 0; u < w->big_m; u++)
    for (idx v = 0; v < w->big_m; v++)
      w->g[(gidx)u * w->big_m + v] = chain_floats(w->vector[u], w->vector[v], j->p);
  row_factor(w);
}

/* List the borders of the atoms with a kept vector. */
static void row_borders(struct row_work *w, const idx *atoms)
{
  const struct joint *j = w->j;
  w->width = 0;
  for (idx a = 0; a < w->big_m / j->d; a++) {
    int is_kept = 0;
    for (idx i = 0; i < w->m; i++) is_kept |= w->kept[i] / j->d == a;
    if (!is_kept) continue;
    for (idx b = j->direction[atoms[a]] * j->d; b < j->direction[atoms[a] + 1] * j->d; b++) {
      w->border[w->width] = b;
      w->from[w->width++] = a * j->d + b % j->d;
    }
  }
}

/* Compute column c of B (N.17), then of Y = L^-1 B. */
static void row_column(struct row_work *w, const float *codes, idx c)
{
  const struct joint *j = w->j;
  const real *e = j->e + (gidx)(w->border[c] / j->d) * j->p;
  for (idx i = 0; i < w->m; i++) {
    idx v = w->kept[i];
    real ue = chain_mixed(w->vector[v], e, j->p), t = codes[w->from[c]];
    real b = v == w->from[c] ? fma(ue, t, -chain_reals(e, w->r, j->p)) : ue * t;
    for (idx k = 0; k < i; k++)
      b = fma(-w->l[(gidx)i * w->big_m + k], w->y[(gidx)k * w->width + c], b);
    w->y[(gidx)i * w->width + c] = b / w->l[(gidx)i * w->big_m + i];
  }
}

/* Add the row to S (N.18). */
static void row_add(const struct row_work *w, const float *codes, real *s, gidx stride)
{
  const struct joint *j = w->j;
  for (idx a = 0; a < w->width; a++)
    for (idx b = 0; b < w->width; b++) {
      if (w->border[a] < w->border[b]) continue;
      const real *e_a = j->e + (gidx)(w->border[a] / j->d) * j->p;
      const real *e_b = j->e + (gidx)(w->border[b] / j->d) * j->p;
      real *at = s + w->border[a] + w->border[b] * stride;
      real t = (real)codes[w->from[a]] * (real)codes[w->from[b]];
      *at = fma(chain_reals(e_a, e_b, j->p), t, *at);
      for (idx i = 0; i < w->m; i++)
        *at = fma(-w->y[(gidx)i * w->width + a], w->y[(gidx)i * w->width + b], *at);
    }
}

/* Add row i to S and to the sums. */
static int row_run(struct row_work *w, const struct joint_rows *rows, idx i, real *s, gidx stride,
                   struct joint_sums *sums)
{
  const struct joint *j = w->j;
  gidx begin = rows->start[i] - rows->start[0], length = rows->start[i + 1] - rows->start[i];
  const idx *atoms = rows->atoms + begin;
  const float *codes = rows->codes + begin * j->d;
  idx width = 0;
  for (gidx a = 0; a < length; a++)
    width += (j->direction[atoms[a] + 1] - j->direction[atoms[a]]) * j->d;
  TRY(row_alloc(w, (idx)length, width));
  row_begin(w, rows->x + (gidx)i * j->p, atoms, codes);
  row_borders(w, atoms);
  for (idx c = 0; c < w->width; c++) row_column(w, codes, c);
  row_add(w, codes, s, stride);
  for (idx v = 0; v < w->m; v++) pair_sum_pivot(&sums->pairs, rows->first + i, w->pivot[v]);
  row_sum_add(&sums->errors, chain_reals(w->r, w->r, j->p));
  sums->codes += w->m;
  return OK;
}

int joint_reference(const struct joint *j, const struct joint_rows *rows, real *s, gidx stride,
                    struct joint_sums *sums)
{
  int status = OK;
  for (idx i = 0; i < rows->n && status == OK; i++) {
    struct row_work w = {.j = j};
    status = row_run(&w, rows, i, s, stride, sums);
    arena_free(&w.arena);
  }
  return status;
}
