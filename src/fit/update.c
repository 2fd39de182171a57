/* SPDX-License-Identifier: BSD-3-Clause
 * Sum blocks go past all ranks, one after another; then each descends in its own columns. */
#include "fit/update.h"

#include <math.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "base/sums.h"
#include "model/state.h"

/* The columns of a rank. */
static void columns_share(const struct update *u, int rank, idx *begin, idx *count)
{
  gidx first, n;
  comm_share(u->f->p, u->f->c->size, rank, &first, &n);
  *begin = (idx)first;
  *count = (idx)n;
}

static int update_alloc(struct update *u, const struct refit_state *f)
{
  gidx k = f->k, columns, first, count, block = (gidx)ROW_BLOCK * f->s;
  int many = f->c->size > 1;
  comm_share(k, f->c->size, f->c->rank, &first, &count);
  u->first = (idx)first;
  u->count = (idx)count;
  comm_share(f->p, f->c->size, f->c->rank, &first, &columns);
  u->begin = (idx)first;
  u->end = (idx)(first + columns);
  TRY(arena_alloc(&u->arena, &u->gram, k * k, sizeof *u->gram));
  TRY(arena_alloc(&u->arena, &u->target, k * columns, sizeof *u->target));
  TRY(arena_alloc(&u->arena, &u->atoms, k * columns, sizeof *u->atoms));
  TRY(arena_alloc(&u->arena, &u->work, NORMAL_BLOCK * columns, sizeof *u->work));
  TRY(arena_alloc(&u->arena, &u->gathered, many ? k * f->p : 0, sizeof *u->gathered));
  TRY(arena_alloc(&u->arena, &u->before, k * f->p, sizeof *u->before));
  TRY(arena_alloc(&u->arena, &u->slots, many ? block : 0, sizeof *u->slots));
  TRY(arena_alloc(&u->arena, &u->codes, block, sizeof *u->codes));
  TRY(arena_alloc(&u->arena, &u->rows, many ? (gidx)ROW_BLOCK * f->p : 0, sizeof *u->rows));
  TRY(arena_alloc(&u->arena, &u->start, k + 1, sizeof *u->start));
  TRY(arena_alloc(&u->arena, &u->entry, block, sizeof *u->entry));
  return arena_alloc(&u->arena, &u->counts, f->c->size, sizeof *u->counts);
}

int update_bytes(const struct refit_state *f, const struct atom_batch *b, idx q, gidx *bytes)
{
  struct update dry = {.arena.is_dry = 1};
  (void)b, (void)q;
  TRY(update_alloc(&dry, f));
  *bytes = (gidx)dry.arena.bytes +
           cpu_dense_bytes(f->task->threads, DENSE_MIN_PANEL, (idx)imax(f->p, NORMAL_BLOCK));
  return OK;
}

int update_open(struct update *u, struct refit_state *f)
{
  *u = (struct update){.f = f};
  TRY(update_alloc(u, f));
  gidx columns = u->end - u->begin;
  memset(u->gram, 0, (size_t)f->k * (size_t)f->k * sizeof *u->gram);
  memset(u->target, 0, (size_t)(f->k * columns) * sizeof *u->target);
  return dense_open(&u->dense, &f->device, DENSE_MIN_PANEL, (idx)imax(f->p, NORMAL_BLOCK));
}

void update_free(struct update *u)
{
  dense_close(&u->dense);
  arena_free(&u->arena);
  *u = (struct update){0};
}

/* *out <- n items of `owner` on every rank. */
static int block_send(struct update *u, int owner, const void *mine, gidx n, size_t unit, void *out)
{
  memset(u->counts, 0, (size_t)u->f->c->size * sizeof *u->counts);
  u->counts[owner] = (idx)n;
  return comm_allgather(u->f->c, mine, u->counts, unit, out);
}

/* The n rows of `owner` that begin at global row `first` go past all ranks. */
static int block_add(struct update *u, int owner, gidx first, idx n)
{
  struct refit_state *f = u->f;
  gidx at = f->c->rank == owner ? first - f->first : 0, entries = (gidx)n * f->s;
  const idx *slots = f->atoms + at * f->s;
  const float *x = f->x + at * f->p;
  if (f->c->rank == owner)
    for (gidx i = 0; i < entries; i++) u->codes[i] = (float)f->codes[at * f->s + i];
  if (f->c->size > 1) {
    TRY(block_send(u, owner, slots, n, (size_t)f->s * sizeof *slots, u->slots));
    TRY(block_send(u, owner, u->codes, n, (size_t)f->s * sizeof *u->codes, u->codes));
    TRY(block_send(u, owner, x, n, (size_t)f->p * sizeof *x, u->rows));
    slots = u->slots;
    x = u->rows;
  }
  struct normal_job job = {.rows = {n, f->s, f->p, slots, u->codes, x},
                           .k = f->k,
                           .first = u->first,
                           .count = u->count,
                           .begin = u->begin,
                           .end = u->end,
                           .gram = u->gram + (gidx)u->first * f->k,
                           .target = u->target,
                           .start = u->start,
                           .entry = u->entry};
  return comm_agree(f->c, device_normal_add(&f->device, &job));
}

int update_add(struct update *u, real beta)
{
  struct refit_state *f = u->f;
  gidx k = f->k, columns = u->end - u->begin;
  normal_decay(beta, u->count * k, u->gram + u->first * k);
  normal_decay(beta, k * columns, u->target);
  for (int owner = 0; owner < f->c->size; owner++) {
    gidx first, n = refit_rows_share(f->total, f->c->size, owner, &first);
    for (gidx i = 0; i < n; i += ROW_BLOCK)
      TRY(block_add(u, owner, first + i, (idx)imin(ROW_BLOCK, n - i)));
  }
  return OK;
}

/* Every rank's rows of the Gram matrix go to all. */
static int gram_gather(struct update *u)
{
  struct comm *c = u->f->c;
  gidx k = u->f->k, first, count;
  for (int r = 0; r < c->size; r++) {
    comm_share(k, c->size, r, &first, &count);
    u->counts[r] = (idx)count;
  }
  return c->size > 1 ? comm_allgather(c, u->gram + u->first * k, u->counts,
                                      (size_t)k * sizeof *u->gram, u->gram)
                     : OK;
}

/* out[k][p] <- own[k][columns] of all ranks.  Collective. */
static int columns_gather(struct update *u, const real *own, real *out)
{
  struct refit_state *f = u->f;
  struct comm *c = f->c;
  const real *from = own;
  idx begin, count;
  if (c->size > 1) {
    for (int r = 0; r < c->size; r++) columns_share(u, r, &begin, &u->counts[r]);
    TRY(comm_allgather(c, own, u->counts, (size_t)f->k * sizeof *own, u->gathered));
    from = u->gathered;
  }
  for (int r = 0; r < c->size; r++) {
    columns_share(u, r, &begin, &count);
    for (idx a = 0; a < f->k; a++, from += count)
      memcpy(out + (gidx)a * f->p + begin, from, (size_t)count * sizeof *from);
  }
  return OK;
}

/* own[k][columns] <- of all[k][p]. */
static void columns_take(const struct update *u, const real *all, real *own)
{
  idx columns = u->end - u->begin;
  for (idx a = 0; a < u->f->k; a++)
    memcpy(own + (gidx)a * columns, all + (gidx)a * u->f->p + u->begin,
           (size_t)columns * sizeof *own);
}

/* Atoms with codes get unit norm; one that cannot is as it was. */
static gidx frames_scale(const struct update *u)
{
  const struct refit_state *f = u->f;
  gidx moved = 0;
  for (idx a = 0; a < f->k; a++) {
    real *frame = f->frames + (gidx)a * f->p;
    if (!(u->gram[(gidx)a * f->k + a] > 0)) continue;
    real norm = sqrt(chain_dot(frame, frame, f->p));
    if (norm > 0 && isfinite(norm)) {
      for (idx c = 0; c < f->p; c++) frame[c] /= norm;
      moved++;
    } else {
      memcpy(frame, u->before + (gidx)a * f->p, (size_t)f->p * sizeof *frame);
    }
  }
  return moved;
}

int update_apply(struct update *u, idx passes, gidx *moved)
{
  struct refit_state *f = u->f;
  idx columns = u->end - u->begin;
  int status = OK;
  memcpy(u->before, f->frames, (size_t)f->k * (size_t)f->p * sizeof *u->before);
  TRY(gram_gather(u));
  columns_take(u, f->frames, u->atoms);
  for (idx i = 0; !status && i < passes; i++)
    status = device_normal_descend(&u->dense, u->gram, u->target, f->k, columns, u->atoms, u->work);
  TRY(comm_agree(f->c, status));
  TRY(columns_gather(u, u->atoms, f->frames));
  *moved = frames_scale(u);
  return OK;
}

void update_forget(struct update *u, const unsigned char *forget)
{
  gidx k = u->f->k, columns = u->end - u->begin;
  for (gidx a = 0; a < k; a++) {
    if (!forget[a]) continue;
    memset(u->target + a * columns, 0, (size_t)columns * sizeof *u->target);
    memset(u->gram + a * k, 0, (size_t)k * sizeof *u->gram);
    for (gidx b = 0; b < k; b++) u->gram[b * k + a] = 0;
  }
}

int update_get(struct update *u, const real **gram, const real **target)
{
  *gram = u->gram;
  *target = u->before;
  return columns_gather(u, u->target, u->before);
}

void update_put(struct update *u, const real *gram, const real *target)
{
  memcpy(u->gram, gram, (size_t)u->f->k * (size_t)u->f->k * sizeof *gram);
  columns_take(u, target, u->target);
}
