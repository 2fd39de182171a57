/* SPDX-License-Identifier: BSD-3-Clause
 * One row of the joint system.  Its vectors and its residual are packed as rows of tiles, so that
 * one loop computes G = U'U, U'E and E'r.  Then come the factor, B, and Y = L^-1 B, where lanes are
 * borders. */
#include "device/cpu/joint_row.h"

#include <math.h>
#include <string.h>

#include "device/cpu/joint_impl.h"

/* Find the vectors of the support, compute the residual, and pack them; row M is the residual. */
static void vectors_pack(const struct joint_state *s, struct row_space *w, const float *x,
                         const idx *atoms, const float *codes, idx big_m)
{
  const struct joint *j = s->j;
  idx rows = s->loops->rows;
  for (idx v = 0; v < big_m; v++)
    w->vector[v] = j->atoms + ((gidx)atoms[v / j->d] * j->d + v % j->d) * j->p;
  s->loops->residual(x, w->vector, codes, big_m, j->p, w->r);
  for (idx v = 0; v < big_m; v += rows)
    s->loops->widen(w->vector + v, big_m - v < rows ? big_m - v : rows, j->p,
                    w->packed + (gidx)v * j->p);
  real *last = w->packed + (gidx)(big_m / rows) * rows * j->p + big_m % rows;
  for (idx c = 0; c < j->p; c++) last[(gidx)c * rows] = w->r[c];
}

/* g[M][M], lower triangle (N.4). */
static void gram_make(const struct joint_state *s, struct row_space *w, idx big_m)
{
  idx rows = s->loops->rows, p = s->j->p;
  for (idx u = 0; u < big_m; u += rows)
    for (idx v = 0; v <= u; v += rows) {
      idx columns = big_m - v < rows ? big_m - v : rows;
      s->loops->chains(p, w->packed + (gidx)u * p, w->packed + (gidx)v * p, rows, columns, w->out);
      for (idx i = 0; i < rows && u + i < big_m; i++)
        for (idx j = 0; j < columns && v + j <= u + i; j++)
          w->g[(gidx)(u + i) * big_m + v + j] = w->out[j * rows + i];
    }
}

/* order[] <- positions in the support of the atoms that have a kept vector, in ascending order of
 * atoms.  Returns their number. */
static idx atoms_order(struct row_space *w, const idx *atoms, idx m, idx d)
{
  idx count = 0;
  for (idx i = 0; i < m; i++) {
    idx a = w->kept[i] / d, to = count;
    if (i > 0 && w->kept[i - 1] / d == a) continue;
    for (; to > 0 && atoms[w->order[to - 1]] > atoms[a]; to--) w->order[to] = w->order[to - 1];
    w->order[to] = a;
    count++;
  }
  return count;
}

/* Write the row's atoms, the first border of each, and the codes of the borders. */
static void borders_scatter(const struct joint_state *s, struct row_offsets *place,
                            const struct row_space *w, const idx *atoms, const float *codes,
                            idx row)
{
  const struct joint *j = s->j;
  idx *at = s->at + place->entry + row;
  real *t = s->t + place->border;
  at[0] = 0;
  for (idx i = 0; i < place->count; i++) {
    idx a = w->order[i], q = j->direction[atoms[a] + 1] - j->direction[atoms[a]];
    s->atom[place->entry + i] = atoms[a];
    at[i + 1] = at[i] + q * j->d;
    for (idx b = 0; b < q * j->d; b++) t[at[i] + b] = codes[(gidx)a * j->d + b % j->d];
  }
  place->width = at[place->count];
  place->padded = (place->width + DENSE_MAX_LANES - 1) / DENSE_MAX_LANES * DENSE_MAX_LANES;
}

/* Make the columns of B that belong to atom i of the row (N.17). */
static void atom_columns(const struct joint_state *s, struct row_space *w,
                         const struct row_offsets *place, idx i, idx atom, idx big_m, idx row)
{
  const struct joint *j = s->j;
  idx rows = s->loops->rows, q = j->direction[atom + 1] - j->direction[atom];
  const real *e = s->e + (gidx)j->direction[atom] * j->p, *t = s->t + place->border;
  idx begin = s->at[place->entry + row + i];
  for (idx v = 0; v <= big_m; v += rows)
    s->loops->chains(j->p, w->packed + (gidx)v * j->p, e, q, q, w->ue + (gidx)v * q);
  for (idx l = 0; l < place->m; l++) {
    idx v = w->kept[l];
    const real *ue = w->ue + (gidx)(v / rows) * rows * q + v % rows;
    const real *er = w->ue + (gidx)(big_m / rows) * rows * q + big_m % rows;
    real *y = s->y + place->y + (gidx)l * place->padded + begin;
    for (idx b = 0; b < q * j->d; b++) {
      real product = ue[(gidx)(b / j->d) * rows], t_b = t[begin + b];
      int is_own = v == w->order[i] * j->d + b % j->d;
      y[b] = is_own ? fma(product, t_b, -er[(gidx)(b / j->d) * rows]) : product * t_b;
    }
  }
}

/* Y <- L^-1 B, DENSE_LEAF rows at a time: subtract the products of all earlier rows, then solve. */
static void border_solve(const struct joint_state *s, const struct row_space *w,
                         const struct row_offsets *place, idx big_m)
{
  real *y = s->y + place->y;
  gidx padded = place->padded;
  for (idx l = 0; l < place->m; l += DENSE_LEAF) {
    idx count = place->m - l < DENSE_LEAF ? place->m - l : DENSE_LEAF;
    struct dense_update u = {.depth = l,
                             .rows = place->padded,
                             .columns = count,
                             .a = y,
                             .b = w->l + l,
                             .c = y + l * padded,
                             .a_stride = padded,
                             .b_stride = big_m,
                             .c_stride = padded};
    s->loops->update(&u);
    s->loops->solve(y + l * padded, padded, place->padded, count, w->l + l + (gidx)l * big_m,
                    big_m);
  }
}

void joint_row_make(struct joint_state *s, struct row_space *w, const struct joint_rows *rows,
                    idx i)
{
  const struct joint *j = s->j;
  struct row_offsets *place = &s->rows[i];
  gidx begin = rows->start[i] - rows->start[0];
  idx big_m = (idx)(rows->start[i + 1] - rows->start[i]) * j->d;
  const idx *atoms = rows->atoms + begin;
  const float *codes = rows->codes + begin * j->d;
  vectors_pack(s, w, rows->x + (gidx)i * j->p, atoms, codes, big_m);
  real error = 0;
  for (idx c = 0; c < j->p; c++) error = fma(w->r[c], w->r[c], error);
  s->error[i] = error;
  gram_make(s, w, big_m);
  place->m = s->loops->factor(w->g, big_m, j->rho, w->kept, w->l, s->pivot + place->vector);
  place->count = atoms_order(w, atoms, place->m, j->d);
  borders_scatter(s, place, w, atoms, codes, i);
  for (idx l = 0; l < place->m; l++)
    for (idx c = place->width; c < place->padded; c++)
      s->y[place->y + (gidx)l * place->padded + c] = 0;
  for (idx a = 0; a < place->count; a++) atom_columns(s, w, place, a, atoms[w->order[a]], big_m, i);
  border_solve(s, w, place, big_m);
}

struct joint_row joint_row_of(const struct joint_state *s, idx i)
{
  const struct row_offsets *p = &s->rows[i];
  return (struct joint_row){p->m,
                            p->width,
                            p->padded,
                            p->count,
                            s->atom + p->entry,
                            s->at + p->entry + i,
                            s->t + p->border,
                            s->y + p->y};
}
