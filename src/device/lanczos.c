/* SPDX-License-Identifier: BSD-3-Clause
 * Parts are made row by row, E'E of a row from its packed directions; a step takes eight vectors
 * at a time, threads share out the groups. */
#include "device/lanczos.h"

#include <math.h>
#include <string.h>

#include "base/status.h"
#include "device/joint_inside.h"

int parts_open(struct parts *p, gidx bytes)
{
  *p = (struct parts){0};
  p->room_values = bytes / 10;
  p->room_borders = p->room_count = bytes / 100 + 1;
  TRY(arena_take(&p->arena, &p->at, p->room_count, sizeof *p->at));
  TRY(arena_take(&p->arena, &p->value_at, p->room_count, sizeof *p->value_at));
  TRY(arena_take(&p->arena, &p->width, p->room_count, sizeof *p->width));
  TRY(arena_take(&p->arena, &p->border, p->room_borders, sizeof *p->border));
  return arena_take(&p->arena, &p->value, p->room_values, sizeof *p->value);
}

void parts_close(struct parts *p)
{
  arena_free(&p->arena);
  *p = (struct parts){0};
}

idx parts_fit(const struct parts *p, const struct joint_work *w, idx first, idx end)
{
  gidx values = p->values, borders = p->borders;
  for (idx i = first; i < end; i++) {
    struct joint_row row = joint_row_of(w, i);
    values += (gidx)row.width * row.width;
    borders += row.width;
    if (values > p->room_values || borders > p->room_borders ||
        p->count + i - first >= p->room_count)
      return i - first;
  }
  return end - first;
}

/* packed [panels][p][rows] <- the row's directions; returns how many. */
static idx directions_pack(const struct joint_state *s, const struct joint_row *row, real *packed)
{
  idx rows = s->loops->rows, p = s->j->p, count = 0;
  for (idx a = 0; a < row->count; a++) {
    idx first = s->j->direction[row->atom[a]], q = s->j->direction[row->atom[a] + 1] - first;
    for (idx u = 0; u < q; u++, count++) {
      const real *e = s->j->e + (gidx)(first + u) * p;
      real *to = packed + (gidx)(count / rows) * rows * p + count % rows;
      for (idx c = 0; c < p; c++) to[(gidx)c * rows] = e[c];
    }
  }
  return count;
}

/* ee[directions][directions], column v of atom after atom. */
static void products_make(const struct joint_state *s, const struct joint_row *row, idx count,
                          const real *packed, real *out, real *ee)
{
  idx rows = s->loops->rows, p = s->j->p, column = 0;
  for (idx a = 0; a < row->count; a++) {
    idx first = s->j->direction[row->atom[a]], q = s->j->direction[row->atom[a] + 1] - first;
    for (idx u = 0; u < count; u += rows) {
      s->loops->chains(p, packed + (gidx)u * p, s->e + (gidx)first * p, q, q, out);
      for (idx v = 0; v < q; v++)
        for (idx i = 0; i < rows && u + i < count; i++)
          ee[(gidx)(column + v) * count + u + i] = out[v * rows + i];
    }
    column += q;
  }
}

/* value[width][width] <- E'E t t' - Y'Y (N.18 for this row alone, from +0). */
static void part_make(const struct joint_state *s, const struct joint_row *row, const real *ee,
                      idx count, real *value)
{
  idx d = s->j->d, width = row->width;
  for (idx i = 0; i < width; i++)
    for (idx j = 0; j <= i; j++) {
      real acc = ee[(gidx)(j / d) * count + i / d] * (row->t[i] * row->t[j]);
      for (idx l = 0; l < row->m; l++)
        acc -= row->y[(gidx)l * row->padded + i] * row->y[(gidx)l * row->padded + j];
      value[(gidx)i * width + j] = value[(gidx)j * width + i] = acc;
    }
}

static void borders_list(const struct joint_state *s, const struct joint_row *row, idx *border)
{
  idx d = s->j->d;
  for (idx a = 0; a < row->count; a++)
    for (idx b = row->at[a]; b < row->at[a + 1]; b++)
      border[b] = s->j->direction[row->atom[a]] * d + b - row->at[a];
}

int parts_append(struct parts *p, struct joint_work *w, idx first, idx end)
{
  struct joint_state *s = w->state;
  struct arena arena = {0};
  idx rows = s->loops->rows;
  gidx most = (gidx)s->longest * s->q_most, panels = (most + rows - 1) / rows * rows,
       from = p->count;
  gidx packed_size = panels * s->j->p, out_size = (gidx)rows * s->q_most, ee_size = most * most;
  real *space;
  TRY(arena_take(&arena, &space, s->threads * (packed_size + out_size + ee_size), sizeof *space));
  for (idx i = first; i < end; i++) {
    struct joint_row row = joint_row_of(w, i);
    p->at[p->count] = p->borders;
    p->value_at[p->count] = p->values;
    p->width[p->count++] = row.width;
    p->borders += row.width;
    p->values += (gidx)row.width * row.width;
  }
#pragma omp parallel for num_threads(s->threads) schedule(static, 1)
  for (int t = 0; t < s->threads; t++)
    for (idx i = first + t; i < end; i += s->threads) {
      struct joint_row row = joint_row_of(w, i);
      gidx at = from + i - first;
      real *packed = space + t * (packed_size + out_size + ee_size);
      real *out = packed + packed_size, *ee = out + out_size;
      idx count = directions_pack(s, &row, packed);
      products_make(s, &row, count, packed, out, ee);
      borders_list(s, &row, p->border + p->at[at]);
      part_make(s, &row, ee, count, p->value + p->value_at[at]);
    }
  arena_free(&arena);
  return OK;
}

void parts_apply(const struct parts *p, const struct dense *d, idx n, idx groups, const real *x,
                 real *y)
{
#pragma omp parallel for num_threads(d->threads) schedule(static, 1)
  for (idx g = 0; g < groups; g++)
    for (gidx i = 0; i < p->count; i++)
      d->loops->apply(p->value + p->value_at[i], p->width[i], p->border + p->at[i],
                      x + 8 * (gidx)n * g, y + 8 * (gidx)n * g);
}

gidx lanczos_bytes(idx n, idx groups, idx most)
{
  return ((gidx)most + 1) * groups * 8 * (n + 2) * (gidx)sizeof(real);
}

int lanczos_open(struct lanczos *l, idx n, idx groups, idx most)
{
  *l = (struct lanczos){.n = n, .groups = groups, .most = most};
  TRY(arena_take(&l->arena, &l->q, (gidx)most + 1, sizeof *l->q));
  for (idx j = 0; j <= most; j++)
    TRY(arena_take(&l->arena, &l->q[j], 8 * (gidx)groups * n, sizeof(real)));
  TRY(arena_take(&l->arena, &l->alpha, 8 * (gidx)groups * most, sizeof(real)));
  return arena_take(&l->arena, &l->beta, 8 * (gidx)groups * most, sizeof(real));
}

void lanczos_close(struct lanczos *l)
{
  arena_free(&l->arena);
  *l = (struct lanczos){0};
}

/* What counts as exhausted, beside the size of alpha and beta so far. */
#define BREAKDOWN 0x1p-44

static void group_step(struct lanczos *l, const struct dense_loops *loops, idx j, idx g, real *y)
{
  gidx at = 8 * (gidx)l->n * g, row = 8 * ((gidx)j * l->groups + g);
  real *alpha = l->alpha + row, *beta = l->beta + row, *next = l->q[j + 1] + at, s[8];
  loops->dots(l->n, l->q[j] + at, y, alpha);
  loops->subtract(l->n, alpha, l->q[j] + at, y);
  for (idx i = j; i >= 0; i--) {
    loops->dots(l->n, l->q[i] + at, y, s);
    loops->subtract(l->n, s, l->q[i] + at, y);
  }
  loops->dots(l->n, y, y, s);
  for (int v = 0; v < 8; v++) {
    beta[v] = sqrt(s[v]);
    if (!(beta[v] > BREAKDOWN * fabs(l->alpha[8 * g + v]))) beta[v] = 0;
    s[v] = beta[v] > 0 ? 1 / beta[v] : 0;
  }
  for (gidx i = 0; i < l->n; i++)
    for (int v = 0; v < 8; v++) next[8 * i + v] = y[8 * i + v] * s[v];
}

void lanczos_step(struct lanczos *l, const struct dense *d, idx j, real *y)
{
#pragma omp parallel for num_threads(d->threads) schedule(static, 1)
  for (idx g = 0; g < l->groups; g++) group_step(l, d->loops, j, g, y + 8 * (gidx)l->n * g);
}
