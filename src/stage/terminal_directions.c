/* SPDX-License-Identifier: BSD-3-Clause
 * The directions of all atoms from the state that the files hold, in batches over all ranks. */
#include <string.h>

#include "base/status.h"
#include "stage/directions.h"
#include "stage/terminal_inside.h"

/* e[count][q][p] <- directions of one batch; kept and e go to their atoms' places. */
static int batch_find(struct terminal *w, struct fit *f, const idx *atoms, idx count, idx *kept,
                      real *all)
{
  struct batch b = {0};
  struct arena arena = {0};
  real *e = NULL;
  idx q = w->t->directions, *own = NULL;
  TRY(batch_make(&b, f, atoms, count));
  int status = arena_take(&arena, &e, (gidx)count * q * f->p, sizeof *e);
  if (!status) status = arena_take(&arena, &own, count, sizeof *own);
  TRY(comm_agree(w->c, status));
  TRY(directions_find(f, &b, q, e, own));
  for (idx m = 0; m < count; m++) {
    kept[b.atom[m]] = own[m];
    if (all)
      memcpy(all + (gidx)b.atom[m] * q * f->p, e + (gidx)m * q * f->p,
             (size_t)own[m] * (size_t)f->p * sizeof *e);
  }
  arena_free(&arena);
  batch_free(&b);
  return OK;
}

static int batches_find(struct terminal *w, struct fit *f, idx *alive, idx *kept, real *all)
{
  idx q = w->t->directions, count = 0;
  for (idx a = 0; a < f->k; a++) {
    gidx rows = 0;
    for (int r = 0; r < w->c->size; r++) rows += f->counts[(gidx)r * f->k + a];
    if (rows > 0) alive[count++] = a;
  }
  idx most = directions_batch(f, q);
  for (idx i = 0; i < count; i += most)
    TRY(batch_find(w, f, alive + i, count - i < most ? count - i : most, kept, all));
  return OK;
}

/* Rank 0 keeps all directions, atom after atom without gaps. */
static int directions_keep(struct terminal *w, const idx *kept, real *all)
{
  idx q = w->t->directions, k = w->t->atoms->k;
  gidx p = w->t->atoms->p;
  if (w->c->rank) return OK;
  TRY(arena_take(&w->inputs, &w->direction, (gidx)k + 1, sizeof *w->direction));
  for (idx a = 0; a < k; a++) {
    w->direction[a + 1] = w->direction[a] + kept[a];
    memmove(all + w->direction[a] * p, all + (gidx)a * q * p,
            (size_t)kept[a] * (size_t)p * sizeof *all);
  }
  w->e = all;
  return OK;
}

struct fit_task terminal_fit(const struct terminal_task *t)
{
  return (struct fit_task){.rows = t->rows,
                           .atoms = t->atoms,
                           .supports = t->supports,
                           .mean = t->mean,
                           .rho = t->rho,
                           .top_s = t->top_s,
                           .threads = t->threads,
                           .variant = t->variant};
}

int terminal_directions(struct terminal *w)
{
  const struct terminal_task *t = w->t;
  static struct fit_task task;
  static struct fit f;
  struct arena arena = {0};
  idx *alive = NULL, *kept = NULL, k = t->atoms->k;
  real *all = NULL;
  task = terminal_fit(t);
  TRY(fit_load(&f, &task, w->c));
  w->longest = f.s;
  int status = arena_take(&arena, &alive, k, sizeof *alive);
  if (!status) status = arena_take(&arena, &kept, k, sizeof *kept);
  if (!status && w->c->rank == 0)
    status = arena_take(&w->inputs, &all, (gidx)k * t->directions * t->atoms->p, sizeof *all);
  if (!status) status = fit_residuals(&f);
  TRY(comm_agree(w->c, status));
  TRY(batches_find(w, &f, alive, kept, all));
  TRY(comm_agree(w->c, directions_keep(w, kept, all)));
  fit_free(&f);
  arena_free(&arena);
  return OK;
}
