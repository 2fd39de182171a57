/* SPDX-License-Identifier: BSD-3-Clause
 * Adds a batch to S (N.18).  The rows of each atom are listed.  Then a thread adds row after row to
 * the columns of S that belong to an atom, which stay in its cache. */
#include <string.h>

#include "base/status.h"
#include "device/cpu/joint_impl.h"

int cpu_joint_begin(struct joint_work *w, struct dense *d, real *s, gidx stride)
{
  const struct joint *j = w->joint;
  idx q = j->direction[j->k], n = joint_border(j);
#pragma omp parallel for num_threads(w->state->threads)
  for (idx c = 0; c < n; c++) memset(s + c * stride, 0, (size_t)n * sizeof *s);
  struct dense_operand e = {j->e, j->p, 1, 0, 0};
  struct dense_product p = {e, e, 0, q, 0, q, 0, j->p, s, stride, PART_UPPER};
  return cpu_product(d, &p);
}

void joint_lists_make(struct joint_state *s)
{
  gidx *start = s->list_start;
  memset(start, 0, ((size_t)s->j->k + 2) * sizeof *start);
  for (idx i = 0; i < s->n; i++)
    for (idx a = 0; a < s->rows[i].count; a++) start[s->atom[s->rows[i].entry + a] + 2]++;
  for (idx a = 0; a < s->j->k; a++) start[a + 2] += start[a + 1];
  for (idx i = 0; i < s->n; i++)
    for (idx a = 0; a < s->rows[i].count; a++) {
      gidx at = start[s->atom[s->rows[i].entry + a] + 1]++;
      s->list_row[at] = i;
      s->list_at[at] = a;
    }
}

/* c[i] <- S + E'E t t' for the borders i of the row's atom number `a`, and border b of atom number
 * `own`. */
static void corner_load(const struct joint_state *s, const struct joint_row *row, idx a, idx own,
                        idx b, const real *matrix, gidx stride, real *c)
{
  const struct joint *j = s->j;
  idx d = j->d, first = j->direction[row->atom[a]], column = j->direction[row->atom[own]];
  const real *ee = a == own ? s->own + (gidx)first * s->max_q + b / d
                            : matrix + (column + b / d) + first * stride;
  struct dense_corner corner = {.count = row->at[a + 1] - row->at[a],
                                .d = d,
                                .ee = ee,
                                .stride = a == own ? s->max_q : stride,
                                .t = row->t + row->at[a],
                                .t_b = row->t[row->at[own] + b],
                                .s = matrix + (gidx)first * d + ((gidx)column * d + b) * stride,
                                .out = c};
  s->loops->corner(&corner);
}

/* Add one row to the columns of its atom number `own`, from the borders of that atom downwards. */
static void row_add(const struct joint_state *s, const struct joint_row *row, idx own, real *matrix,
                    gidx stride, real *c)
{
  const struct joint *j = s->j;
  idx begin = row->at[own], columns = row->at[own + 1] - begin, rows = row->width - begin;
  gidx c_stride = (rows + DENSE_MAX_LANES - 1) / DENSE_MAX_LANES * DENSE_MAX_LANES;
  for (idx b = 0; b < columns; b++)
    for (idx a = own; a < row->count; a++)
      corner_load(s, row, a, own, b, matrix, stride, c + b * c_stride + row->at[a] - begin);
  struct dense_update u = {.depth = row->m,
                           .rows = rows,
                           .columns = columns,
                           .a = row->y + begin,
                           .b = row->y + begin,
                           .c = c,
                           .a_stride = row->padded,
                           .b_stride = row->padded,
                           .c_stride = c_stride};
  s->loops->update(&u);
  for (idx b = 0; b < columns; b++)
    for (idx a = own; a < row->count; a++) {
      gidx to = (gidx)j->direction[row->atom[a]] * j->d, count = row->at[a + 1] - row->at[a];
      gidx skip = a == own ? b : 0; /* E'E stands above the diagonal and must stay */
      memcpy(matrix + to + skip + ((gidx)j->direction[row->atom[own]] * j->d + b) * stride,
             c + b * c_stride + row->at[a] - begin + skip, (size_t)(count - skip) * sizeof *c);
    }
}

int cpu_joint_add(struct joint_work *w, real *matrix, gidx stride)
{
  struct joint_state *s = w->state;
  idx next = 0;
  joint_lists_make(s);
#pragma omp parallel for num_threads(s->threads) schedule(static, 1)
  for (int t = 0; t < s->threads; t++)
    for (idx a = 0;;) {
#pragma omp atomic capture
      a = next++;
      if (a >= s->j->k) break;
      for (gidx i = s->list_start[a]; i < s->list_start[a + 1]; i++) {
        struct joint_row row = joint_row_of(s, s->list_row[i]);
        row_add(s, &row, s->list_at[i], matrix, stride, s->space[t].c);
      }
    }
  return OK;
}
