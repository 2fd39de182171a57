/* SPDX-License-Identifier: BSD-3-Clause
 * All ranks load rows, atoms and supports into the state of a refit, and find the directions of the
 * atoms from it, batch by batch. */
#include "terminal/directions.h"

#include <string.h>

#include "base/status.h"
#include "refit/directions.h"

/* A batch of atoms, and its directions before they are stored by atom. */
struct batch_directions {
  struct atom_batch batch;
  struct arena arena;
  real *e;   /* [count][q][p] */
  idx *kept; /* [count] */
};

static int batch_alloc(struct batch_directions *d, const struct refit_state *f, idx q)
{
  gidx count = d->batch.count;
  TRY(arena_alloc(&d->arena, &d->e, count * q * f->p, sizeof *d->e));
  return arena_alloc(&d->arena, &d->kept, count, sizeof *d->kept);
}

int terminal_batch_bytes(const struct refit_state *f, const struct atom_batch *b, idx q,
                         gidx *bytes)
{
  struct batch_directions d = {.batch = *b, .arena.is_dry = 1};
  TRY(batch_alloc(&d, f, q));
  TRY(directions_find_bytes(f, b, q, bytes));
  *bytes += (gidx)(b->arena.bytes + d.arena.bytes);
  return OK;
}

/* For the atoms of one batch: kept[atom] <- the number of its directions; all[atom][q][p] <- its
 * directions, on rank 0.  Collective. */
static int batch_find(struct terminal *w, const idx *atoms, idx count, idx *kept, real *all)
{
  struct refit_state *f = &w->state;
  struct batch_directions d = {0};
  const struct atom_batch *b = &d.batch;
  idx q = w->t->directions;
  if (!comm_failure(w->c)) comm_record(w->c, atom_batch_make(&d.batch, f, atoms, count));
  if (!comm_failure(w->c)) comm_record(w->c, batch_alloc(&d, f, q));
  TRY(directions_find(f, b, q, d.e, d.kept));
  for (idx m = 0; m < count; m++) {
    kept[b->atom[m]] = d.kept[m];
    if (all)
      memcpy(all + (gidx)b->atom[m] * q * f->p, d.e + (gidx)m * q * f->p,
             (size_t)d.kept[m] * (size_t)f->p * sizeof *d.e);
  }
  arena_free(&d.arena);
  atom_batch_free(&d.batch);
  return OK;
}

/* Find the directions of all atoms that at least one row uses.  Collective. */
static int batches_find(struct terminal *w, idx *alive, idx *kept, real *all)
{
  const struct refit_state *f = &w->state;
  idx max = 1, count = 0;
  for (idx a = 0; a < f->k; a++)
    if (refit_atom_rows(f, a) > 0) alive[count++] = a;
  TRY(comm_agree(w->c, atom_batch_max(f, terminal_batch_bytes, w->t->directions, &max)));
  for (idx i = 0; i < count; i += max)
    TRY(batch_find(w, alive + i, count - i < max ? count - i : max, kept, all));
  return OK;
}

int terminal_directions_alloc(struct terminal *w)
{
  gidx k = w->t->atoms->k;
  TRY(arena_alloc(&w->inputs, &w->e, k * w->t->directions * w->t->atoms->p, sizeof *w->e));
  return arena_alloc(&w->inputs, &w->direction, k + 1, sizeof *w->direction);
}

/* On rank 0: close the gaps between the directions of the atoms, and set w->direction. */
static void directions_pack(struct terminal *w, const idx *kept)
{
  idx q = w->t->directions, k = w->t->atoms->k;
  gidx p = w->t->atoms->p;
  if (w->c->rank) return;
  for (idx a = 0; a < k; a++) {
    w->direction[a + 1] = w->direction[a] + kept[a];
    memmove(w->e + w->direction[a] * p, w->e + (gidx)a * q * p,
            (size_t)kept[a] * (size_t)p * sizeof *w->e);
  }
}

struct refit_task terminal_refit_task(const struct terminal_task *t)
{
  return (struct refit_task){.rows = t->rows,
                             .atoms = t->atoms,
                             .supports = t->supports,
                             .mean = t->mean,
                             .rho = t->rho,
                             .named = t->named,
                             .top_s = t->top_s,
                             .threads = t->threads,
                             .variant = t->variant};
}

int terminal_directions(struct terminal *w)
{
  struct refit_state *f = &w->state;
  struct arena arena = {0};
  idx *alive = NULL, *kept = NULL, k = w->t->atoms->k;
  w->refit_task = terminal_refit_task(w->t);
  TRY(refit_state_load(f, &w->refit_task, w->c));
  w->longest = f->s;
  w->r->inputs = f->inputs;
  int status = arena_alloc(&arena, &alive, k, sizeof *alive);
  if (!status) status = arena_alloc(&arena, &kept, k, sizeof *kept);
  if (!status && w->c->rank == 0) status = terminal_directions_alloc(w);
  if (!status) status = refit_state_residuals(f);
  TRY(comm_agree(w->c, status));
  TRY(batches_find(w, alive, kept, w->e));
  directions_pack(w, kept);
  refit_state_free(f);
  arena_free(&arena);
  return OK;
}
