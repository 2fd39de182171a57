/* SPDX-License-Identifier: BSD-3-Clause
 * Each rank offers its worst rows.  All ranks choose the same rows from these offers.  The ranks
 * that have the chosen rows send them. */
#include "fit/resample.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "model/state.h"

struct offer {
  real energy; /* 0: none */
  gidx row;    /* global */
};

struct revival {
  struct refit_state *f;
  const real *energy; /* [n]; NULL: computed from the state's residuals */
  idx max;
  struct offer *mine, *all; /* mine: later the chosen rows of all ranks */
  idx *counts;              /* [size] */
  idx *dead;                /* [max] */
  float *own, *rows;        /* [max][p] */
  struct arena arena;
};

static int revival_alloc(struct revival *r)
{
  gidx p = r->f->p, size = r->f->c->size;
  TRY(arena_alloc(&r->arena, &r->mine, r->max, sizeof *r->mine));
  TRY(arena_alloc(&r->arena, &r->all, size * r->max, sizeof *r->all));
  TRY(arena_alloc(&r->arena, &r->counts, size, sizeof *r->counts));
  TRY(arena_alloc(&r->arena, &r->dead, r->max, sizeof *r->dead));
  TRY(arena_alloc(&r->arena, &r->own, r->max * p, sizeof *r->own));
  return arena_alloc(&r->arena, &r->rows, r->max * p, sizeof *r->rows);
}

static int offer_before(struct offer a, struct offer b)
{
  return a.energy > b.energy || (a.energy == b.energy && a.row < b.row);
}

/* Insert an offer into a sorted list of `max` offers, unless its energy is 0 or all others come
 * before it.  Inserting drops the last offer of the list. */
static void offer_insert(struct offer *list, idx max, struct offer o)
{
  idx at = max;
  if (!(o.energy > 0) || !offer_before(o, list[max - 1])) return;
  while (at > 0 && offer_before(o, list[at - 1])) at--;
  for (idx j = max - 1; j > at; j--) list[j] = list[j - 1];
  list[at] = o;
}

/* mine[max] <- the worst rows of all ranks.  Collective. */
static int rows_choose(struct revival *r)
{
  struct refit_state *f = r->f;
  int size = f->c->size;
  for (idx j = 0; j < r->max; j++) r->mine[j] = (struct offer){0, INT64_MAX};
  for (idx i = 0; i < f->n; i++) {
    const real *e = f->residual + (gidx)i * f->p;
    real energy = r->energy ? r->energy[i] : chain_dot(e, e, f->p);
    offer_insert(r->mine, r->max, (struct offer){energy, f->first + i});
  }
  for (int q = 0; q < size; q++) r->counts[q] = r->max;
  TRY(comm_allgather(f->c, r->mine, r->counts, sizeof *r->mine, r->all));
  for (idx j = 0; j < r->max; j++) r->mine[j] = (struct offer){0, INT64_MAX};
  for (gidx j = 0; j < (gidx)size * r->max; j++) offer_insert(r->mine, r->max, r->all[j]);
  return OK;
}

/* rows[..][p] <- the chosen rows on every rank: rank after rank, and for each rank in the order of
 * choice.  Collective. */
static int rows_send(struct revival *r)
{
  struct refit_state *f = r->f;
  idx own = 0;
  memset(r->counts, 0, (size_t)f->c->size * sizeof *r->counts);
  for (int q = 0; q < f->c->size; q++) {
    gidx first, n = refit_rows_partition(f->total, f->c->size, q, &first);
    for (idx j = 0; j < r->max; j++) {
      const struct offer *o = &r->mine[j];
      if (!(o->energy > 0) || o->row < first || o->row >= first + n) continue;
      r->counts[q]++;
      if (q != f->c->rank) continue;
      memcpy(r->own + (gidx)own * f->p, f->x + (o->row - f->first) * f->p,
             (size_t)f->p * sizeof *r->own);
      own++;
    }
  }
  return comm_allgather(f->c, r->own, r->counts, (size_t)f->p * sizeof *r->own, r->rows);
}

/* The position of choice j in rows[]. */
static idx position_of(const struct revival *r, idx j)
{
  const struct refit_state *f = r->f;
  idx place = 0;
  for (int q = 0; q < f->c->size; q++) {
    gidx first, n = refit_rows_partition(f->total, f->c->size, q, &first), row = r->mine[j].row;
    if (row < first || row >= first + n) {
      place += r->counts[q];
      continue;
    }
    for (idx k = 0; k < j; k++) place += r->mine[k].row >= first && r->mine[k].row < first + n;
    break;
  }
  return place;
}

static void atom_replace(struct refit_state *f, idx atom, const float *row)
{
  real norm = 0, *to = f->frames + (gidx)atom * f->p;
  for (idx c = 0; c < f->p; c++) norm = fma((real)row[c], (real)row[c], norm);
  norm = sqrt(norm);
  for (idx c = 0; c < f->p; c++) to[c] = row[c] / norm;
}

static int revival_run(struct revival *r, idx dead)
{
  struct refit_state *f = r->f;
  TRY(rows_choose(r));
  TRY(rows_send(r));
  for (idx j = 0; j < dead && r->mine[j].energy > 0; j++)
    atom_replace(f, r->dead[j], r->rows + (gidx)position_of(r, j) * f->p);
  return OK;
}

int fit_resample(struct refit_state *f, const real *energy, idx max, unsigned char *dead,
                 gidx *revived)
{
  struct revival r = {.f = f, .energy = energy};
  idx count = 0, kept = 0;
  *revived = 0;
  for (idx a = 0; a < f->k; a++) count += dead[a] != 0;
  r.max = (idx)imin(count, max);
  if (r.max == 0) {
    memset(dead, 0, (size_t)f->k);
    return OK;
  }
  int status = revival_alloc(&r);
  for (idx a = 0, j = 0; a < f->k && j < r.max && !status; a++)
    if (dead[a]) r.dead[j++] = a;
  TRY(comm_agree(f->c, status));
  TRY(revival_run(&r, r.max));
  for (idx j = 0; j < r.max; j++) *revived += r.mine[j].energy > 0;
  for (idx a = 0; a < f->k; a++) dead[a] = dead[a] && kept++ < *revived;
  arena_free(&r.arena);
  return OK;
}
