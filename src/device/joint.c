/* SPDX-License-Identifier: BSD-3-Clause
 * Batches of rows, and their assembly: the columns of S that an atom owns stay in the cache while
 * the rows of the batch that have the atom add to them. */
#include "device/joint.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "device/joint_inside.h"

enum { BATCH_MOST = 8192 };

static idx q_most(const struct joint *j)
{
  idx most = 0;
  for (idx a = 0; a < j->k; a++) {
    idx q = j->direction[a + 1] - j->direction[a];
    most = q > most ? q : most;
  }
  return most;
}

static gidx padded_most(const struct joint *j, gidx length)
{
  gidx width = length * q_most(j) * j->d;
  return (width + LANES_MOST - 1) / LANES_MOST * LANES_MOST;
}

static gidx space_reals(const struct joint *j, idx longest)
{
  enum { PANEL = 24 };
  gidx m = (gidx)longest * j->d, rows = (m + 1 + PANEL - 1) / PANEL * PANEL, q = q_most(j);
  return rows * j->p + 2 * m * m + PANEL * PANEL + j->p + rows * q +
         q * j->d * (padded_most(j, longest) + 2 * LANES_MOST) + m + longest + m;
}

gidx joint_bytes(const struct joint *j, int threads, idx longest)
{
  gidx directions = j->direction[j->k];
  return (directions * (j->p + q_most(j)) + threads * space_reals(j, longest) + j->k) *
         (gidx)sizeof(real);
}

gidx joint_row_bytes(const struct joint *j, idx longest)
{
  gidx m = (gidx)longest * j->d, width = padded_most(j, longest);
  return (gidx)sizeof(struct row_place) + (gidx)sizeof(real) * (m * width + width + m + 1) +
         (gidx)sizeof(idx) * (4 * (gidx)longest + 1);
}

static int space_take(struct joint_state *s, struct row_space *w)
{
  const struct joint *j = s->j;
  idx panel = s->loops->rows;
  gidx m = (gidx)s->longest * j->d, rows = (m + 1 + panel - 1) / panel * panel;
  struct arena *a = &s->arena;
  TRY(arena_take(a, &w->vector, m, sizeof *w->vector));
  TRY(arena_take(a, &w->packed, rows * j->p, sizeof(real)));
  TRY(arena_take(a, &w->g, m * m, sizeof(real)));
  TRY(arena_take(a, &w->l, m * m, sizeof(real)));
  TRY(arena_take(a, &w->out, (gidx)panel * panel, sizeof(real)));
  TRY(arena_take(a, &w->r, j->p, sizeof(real)));
  TRY(arena_take(a, &w->ue, rows * s->q_most, sizeof(real)));
  TRY(arena_take(a, &w->kept, m, sizeof(idx)));
  TRY(arena_take(a, &w->order, s->longest, sizeof(idx)));
  return arena_take(a, &w->c, (gidx)s->q_most * j->d * (padded_most(j, s->longest) + LANES_MOST),
                    sizeof(real));
}

/* Directions atom by atom, [p][q], and their products inside an atom. */
static void directions_pack(struct joint_state *s)
{
  const struct joint *j = s->j;
#pragma omp parallel for num_threads(s->threads)
  for (idx a = 0; a < j->k; a++) {
    idx first = j->direction[a], q = j->direction[a + 1] - first;
    real *packed = s->e + (gidx)first * j->p, *own = s->own + (gidx)first * s->q_most;
    for (idx u = 0; u < q; u++) {
      const real *e = j->e + (gidx)(first + u) * j->p;
      for (idx c = 0; c < j->p; c++) packed[(gidx)c * q + u] = e[c];
    }
    for (idx u = 0; u < q; u++)
      for (idx v = 0; v < q; v++) {
        real acc = 0;
        for (idx c = 0; c < j->p; c++) {
          const real *both = packed + (gidx)c * q;
          acc = __builtin_fma(both[u], both[v], acc);
        }
        own[u * s->q_most + v] = acc;
      }
  }
}

static int state_take(struct joint_state *s)
{
  const struct joint *j = s->j;
  gidx directions = j->direction[j->k];
  TRY(arena_take(&s->arena, &s->e, directions * j->p, sizeof(real)));
  TRY(arena_take(&s->arena, &s->own, directions * s->q_most, sizeof(real)));
  TRY(arena_take(&s->arena, &s->list_start, (gidx)j->k + 2, sizeof(gidx)));
  TRY(arena_take(&s->arena, &s->space, s->threads, sizeof *s->space));
  for (int t = 0; t < s->threads; t++) TRY(space_take(s, s->space + t));
  return OK;
}

int joint_open(struct joint_work *w, const struct joint *j, const struct dense *d, idx longest,
               gidx room)
{
  gidx row = joint_row_bytes(j, longest);
  CHECK(room >= row, ERR_USAGE,
        "--workspace leaves %lld bytes for rows, one row of %d atoms and %d directions needs %lld",
        (long long)room, longest, q_most(j), (long long)row);
  struct joint_state *s = w->state = calloc(1, sizeof *s);
  CHECK(s, ERR_MEMORY, "cannot allocate %zu bytes", sizeof *s);
  s->j = j;
  s->loops = d->loops;
  s->threads = d->threads;
  s->longest = longest;
  s->q_most = q_most(j);
  s->room = room;
  TRY(state_take(s));
  directions_pack(s);
  return OK;
}

void joint_close(struct joint_work *w)
{
  struct joint_state *s = w->state;
  if (!s) return;
  void *grown[] = {s->rows, s->atom,  s->at,       s->t,      s->pivot,
                   s->y,    s->error, s->list_row, s->list_at};
  for (int i = 0; i < LENGTH(grown); i++) free(grown[i]);
  arena_free(&s->arena);
  free(s);
  w->state = NULL;
}

idx joint_fit(const struct joint_work *w, const gidx *start, idx n)
{
  const struct joint_state *s = w->state;
  gidx left = s->room;
  for (idx i = 0; i < n && i < BATCH_MOST; i++) {
    left -= joint_row_bytes(s->j, (idx)(start[i + 1] - start[i]));
    if (left < 0) return i;
  }
  return n < BATCH_MOST ? n : BATCH_MOST;
}

/* Places of all rows, and room for them. */
static int batch_reserve(struct joint_state *s, const struct joint_rows *rows)
{
  struct row_place at = {0};
  s->n = rows->n;
  TRY(array_reserve(&s->rows, &s->rows_room, rows->n, sizeof *s->rows));
  for (idx i = 0; i < rows->n; i++) {
    gidx length = rows->start[i + 1] - rows->start[i], width = padded_most(s->j, length);
    s->rows[i] = at;
    at.y += length * s->j->d * width;
    at.entry += length;
    at.border += width;
    at.vector += length * s->j->d + 1; /* the rank test looks at one pivot more */
  }
  TRY(array_reserve(&s->atom, &s->atom_room, at.entry, sizeof(idx)));
  TRY(array_reserve(&s->at, &s->at_room, at.entry + rows->n, sizeof(idx)));
  TRY(array_reserve(&s->list_row, &s->list_room, at.entry, sizeof(idx)));
  TRY(array_reserve(&s->list_at, &s->list_at_room, at.entry, sizeof(idx)));
  TRY(array_reserve(&s->t, &s->border_room, at.border, sizeof(real)));
  TRY(array_reserve(&s->pivot, &s->vector_room, at.vector, sizeof(real)));
  TRY(array_reserve(&s->error, &s->error_room, rows->n, sizeof(real)));
  return array_reserve(&s->y, &s->y_room, at.y + LANES_MOST, sizeof(real));
}

int joint_batch(struct joint_work *w, const struct joint_rows *rows, struct joint_sums *sums)
{
  struct joint_state *s = w->state;
  idx bad = rows->n, next = 0;
  TRY(batch_reserve(s, rows));
#pragma omp parallel for num_threads(s->threads) schedule(static, 1) reduction(min : bad)
  for (int t = 0; t < s->threads; t++)
    for (idx i = 0;;) {
#pragma omp atomic capture
      i = next++;
      if (i >= rows->n) break;
      if (!joint_row_make(s, s->space + t, rows, i) && i < bad) bad = i;
    }
  CHECK(bad == rows->n, ERR_INPUT, "row %lld: the block of its codes is not positive definite",
        (long long)(rows->first + bad));
  for (idx i = 0; i < rows->n; i++) {
    const struct row_place *place = &s->rows[i];
    for (idx l = 0; l < place->m; l++)
      pair_sum_pivot(&sums->pairs, rows->first + i, s->pivot[place->vector + l]);
    row_sum_add(&sums->errors, s->error[i]);
    sums->codes += place->m;
  }
  return OK;
}

struct joint_row joint_row_of(const struct joint_work *w, idx i)
{
  const struct joint_state *s = w->state;
  const struct row_place *p = &s->rows[i];
  return (struct joint_row){p->m,
                            p->width,
                            p->padded,
                            p->count,
                            s->atom + p->entry,
                            s->at + p->entry + i,
                            s->t + p->border,
                            s->y + p->y};
}
