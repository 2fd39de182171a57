/* SPDX-License-Identifier: BSD-3-Clause
 * Lanczos steps on the CPU.  Each part of S is made from one row; E'E of the row is computed from
 * its packed directions.  A step takes eight vectors at a time, and the groups of eight are divided
 * among threads. */
#include <math.h>

#include "base/memory.h"
#include "base/status.h"
#include "device/cpu/joint_impl.h"
#include "device/lanczos.h"

/* packed [panels][p][rows] <- the directions of the row's atoms; returns their number. */
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

/* ee[directions][directions] <- E'E of the row, column-major, in the order of the row's atoms. */
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

/* value[width][width] <- E'E t t' - Y'Y: (N.18) for this row alone, starting from +0. */
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

/* border[width] <- the borders of the row in S. */
static void borders_list(const struct joint_state *s, const struct joint_row *row, idx *border)
{
  idx d = s->j->d;
  for (idx a = 0; a < row->count; a++)
    for (idx b = row->at[a]; b < row->at[a + 1]; b++)
      border[b] = s->j->direction[row->atom[a]] * d + b - row->at[a];
}

int cpu_parts_append(struct parts *p, struct joint_work *w, idx first, idx end)
{
  struct joint_state *s = w->state;
  struct arena arena = {0};
  idx rows = s->loops->rows;
  gidx max = (gidx)s->longest * s->max_q, panels = (max + rows - 1) / rows * rows, from = p->count;
  gidx packed_size = panels * s->j->p, out_size = (gidx)rows * s->max_q, ee_size = max * max;
  real *space;
  TRY(arena_alloc(&arena, &space, s->threads * (packed_size + out_size + ee_size), sizeof *space));
  for (idx i = first; i < end; i++) {
    struct joint_row row = joint_row_of(s, i);
    p->at[p->count] = p->borders;
    p->value_at[p->count] = p->values;
    p->width[p->count++] = row.width;
    p->borders += row.width;
    p->values += (gidx)row.width * row.width;
  }
#pragma omp parallel for num_threads(s->threads) schedule(static, 1)
  for (int t = 0; t < s->threads; t++)
    for (idx i = first + t; i < end; i += s->threads) {
      struct joint_row row = joint_row_of(s, i);
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

int cpu_parts_apply(struct device *dev, const struct parts *p, idx n, idx groups, const real *x,
                    real *y)
{
  const struct cpu_state *s = cpu_of(dev);
#pragma omp parallel for num_threads(s->options.threads) schedule(static, 1)
  for (idx g = 0; g < groups; g++)
    for (gidx i = 0; i < p->count; i++)
      s->dense->apply(p->value + p->value_at[i], p->width[i], p->border + p->at[i],
                      x + 8 * (gidx)n * g, y + 8 * (gidx)n * g);
  return OK;
}

/* The Krylov space of a start vector counts as exhausted when beta is at most this times the
 * magnitude of the vector's first alpha. */
#define BREAKDOWN 0x1p-44

/* One step of eight vectors. */
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

int cpu_lanczos_step(struct device *dev, struct lanczos *l, idx j, real *y)
{
  const struct cpu_state *s = cpu_of(dev);
#pragma omp parallel for num_threads(s->options.threads) schedule(static, 1)
  for (idx g = 0; g < l->groups; g++) group_step(l, s->dense, j, g, y + 8 * (gidx)l->n * g);
  return OK;
}
