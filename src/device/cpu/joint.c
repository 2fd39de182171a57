/* SPDX-License-Identifier: BSD-3-Clause
 * Batches of rows of the joint system.  The arrays grow with the largest batch.  All threads make
 * rows. */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "device/cpu/joint_impl.h"

enum { MAX_TILE_ROWS = 24 }; /* rows of the largest tile of any instruction set */

/* The most directions of an atom. */
static idx max_q(const struct joint *j)
{
  idx max = 0;
  for (idx a = 0; a < j->k; a++) {
    idx q = j->direction[a + 1] - j->direction[a];
    max = q > max ? q : max;
  }
  return max;
}

/* Borders of a row of at most `length` atoms, padded to whole vectors. */
static gidx max_padded(const struct joint *j, gidx length)
{
  gidx width = length * max_q(j) * j->d;
  return (width + DENSE_MAX_LANES - 1) / DENSE_MAX_LANES * DENSE_MAX_LANES;
}

gidx cpu_joint_row_bytes(const struct joint *j, idx longest)
{
  gidx m = (gidx)longest * j->d, width = max_padded(j, longest);
  return (gidx)sizeof(struct row_offsets) + (gidx)sizeof(real) * (m * width + width + m + 1) +
         (gidx)sizeof(idx) * (4 * (gidx)longest + 1);
}

static int space_alloc(struct joint_state *s, struct row_space *w)
{
  const struct joint *j = s->j;
  idx panel = s->loops ? s->loops->rows : MAX_TILE_ROWS;
  gidx m = (gidx)s->longest * j->d, rows = (m + 1 + panel - 1) / panel * panel;
  struct arena *a = &s->arena;
  TRY(arena_alloc(a, &w->vector, m, sizeof *w->vector));
  TRY(arena_alloc(a, &w->packed, rows * j->p, sizeof(real)));
  TRY(arena_alloc(a, &w->g, m * m, sizeof(real)));
  TRY(arena_alloc(a, &w->l, m * m, sizeof(real)));
  TRY(arena_alloc(a, &w->out, (gidx)panel * panel, sizeof(real)));
  TRY(arena_alloc(a, &w->r, j->p, sizeof(real)));
  TRY(arena_alloc(a, &w->ue, rows * s->max_q, sizeof(real)));
  TRY(arena_alloc(a, &w->kept, m, sizeof(idx)));
  TRY(arena_alloc(a, &w->order, s->longest, sizeof(idx)));
  return arena_alloc(a, &w->c,
                     (gidx)s->max_q * j->d * (max_padded(j, s->longest) + DENSE_MAX_LANES),
                     sizeof(real));
}

/* Pack the directions of each atom as [p][q], and compute E'E inside each atom. */
static void directions_pack(struct joint_state *s)
{
  const struct joint *j = s->j;
#pragma omp parallel for num_threads(s->threads)
  for (idx a = 0; a < j->k; a++) {
    idx first = j->direction[a], q = j->direction[a + 1] - first;
    real *packed = s->e + (gidx)first * j->p, *own = s->own + (gidx)first * s->max_q;
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
        own[u * s->max_q + v] = acc;
      }
  }
}

static int state_alloc(struct joint_state *s)
{
  const struct joint *j = s->j;
  gidx directions = j->direction[j->k];
  TRY(arena_alloc(&s->arena, &s->e, directions * j->p, sizeof(real)));
  TRY(arena_alloc(&s->arena, &s->own, directions * s->max_q, sizeof(real)));
  TRY(arena_alloc(&s->arena, &s->list_start, (gidx)j->k + 2, sizeof(gidx)));
  TRY(arena_alloc(&s->arena, &s->space, s->threads, sizeof *s->space));
  for (int t = 0; t < s->threads; t++) {
    struct row_space space = {0};
    TRY(space_alloc(s, &space));
    if (!s->arena.is_dry) s->space[t] = space;
  }
  return OK;
}

gidx cpu_joint_bytes(const struct joint *j, int threads, idx longest)
{
  struct joint_state dry = {
      .j = j, .threads = threads, .longest = longest, .max_q = max_q(j), .arena.is_dry = 1};
  return state_alloc(&dry) ? INT64_MAX : (gidx)dry.arena.bytes;
}

int cpu_joint_open(struct joint_work *w)
{
  const struct cpu_state *cpu = cpu_of(w->device);
  struct joint_state *s;
  gidx row = cpu_joint_row_bytes(w->joint, w->longest);
  if (!cpu->dense) TRY(device_check_fma());
  CHECK(w->capacity >= row, ERR_USAGE,
        "--workspace leaves %lld bytes for rows, but one row of %d atoms and %d directions needs "
        "%lld: give a larger --workspace",
        (long long)w->capacity, w->longest, max_q(w->joint), (long long)row);
  s = w->state = calloc(1, sizeof *s);
  CHECK(s, ERR_MEMORY, "cannot allocate %zu bytes", sizeof *s);
  s->j = w->joint;
  s->loops = cpu->dense;
  s->threads = cpu->options.threads;
  s->longest = w->longest;
  s->max_q = max_q(w->joint);
  TRY(state_alloc(s));
  directions_pack(s);
  return OK;
}

void cpu_joint_close(struct joint_work *w)
{
  struct joint_state *s = w->state;
  void *grown[] = {s->rows, s->atom,  s->at,       s->t,      s->pivot,
                   s->y,    s->error, s->list_row, s->list_at};
  for (int i = 0; i < LENGTH(grown); i++) free(grown[i]);
  arena_free(&s->arena);
  free(s);
}

idx cpu_joint_fit(const struct joint_work *w, const gidx *start, idx n)
{
  gidx left = w->capacity;
  for (idx i = 0; i < n && i < JOINT_MAX_BATCH; i++) {
    left -= cpu_joint_row_bytes(w->joint, (idx)(start[i + 1] - start[i]));
    if (left < 0) return i;
  }
  return n < JOINT_MAX_BATCH ? n : JOINT_MAX_BATCH;
}

/* Lay out the rows of a batch, and reserve space for them. */
static int batch_reserve(struct joint_state *s, const struct joint_rows *rows)
{
  struct row_offsets at = {0};
  s->n = rows->n;
  TRY(array_reserve(&s->rows, &s->rows_capacity, rows->n, sizeof *s->rows));
  for (idx i = 0; i < rows->n; i++) {
    gidx length = rows->start[i + 1] - rows->start[i], width = max_padded(s->j, length);
    s->rows[i] = at;
    at.y += length * s->j->d * width;
    at.entry += length;
    at.border += width;
    at.vector += length * s->j->d + 1; /* the pivot under test stands after the kept ones */
  }
  s->end = at;
  TRY(array_reserve(&s->atom, &s->atom_capacity, at.entry, sizeof(idx)));
  TRY(array_reserve(&s->at, &s->at_capacity, at.entry + rows->n, sizeof(idx)));
  TRY(array_reserve(&s->list_row, &s->list_capacity, at.entry, sizeof(idx)));
  TRY(array_reserve(&s->list_at, &s->list_at_capacity, at.entry, sizeof(idx)));
  TRY(array_reserve(&s->t, &s->border_capacity, at.border, sizeof(real)));
  TRY(array_reserve(&s->pivot, &s->vector_capacity, at.vector, sizeof(real)));
  TRY(array_reserve(&s->error, &s->error_capacity, rows->n, sizeof(real)));
  return array_reserve(&s->y, &s->y_capacity, at.y + DENSE_MAX_LANES, sizeof(real));
}

int cpu_joint_batch(struct joint_work *w, const struct joint_rows *rows, struct joint_sums *sums)
{
  struct joint_state *s = w->state;
  idx next = 0;
  TRY(batch_reserve(s, rows));
#pragma omp parallel for num_threads(s->threads) schedule(static, 1)
  for (int t = 0; t < s->threads; t++)
    for (idx i = 0;;) {
#pragma omp atomic capture
      i = next++;
      if (i >= rows->n) break;
      joint_row_make(s, s->space + t, rows, i);
    }
  for (idx i = 0; i < rows->n; i++) {
    const struct row_offsets *place = &s->rows[i];
    for (idx l = 0; l < place->m; l++)
      pair_sum_pivot(&sums->pairs, rows->first + i, s->pivot[place->vector + l]);
    row_sum_add(&sums->errors, s->error[i]);
    sums->codes += place->m;
  }
  return OK;
}

int cpu_joint_row_size(const struct joint_work *w, idx i, struct joint_size *size)
{
  const struct row_offsets *place = &w->state->rows[i];
  *size = (struct joint_size){.vectors = place->m, .width = place->width};
  return OK;
}
