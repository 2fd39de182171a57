/* SPDX-License-Identifier: BSD-3-Clause
 * Sizes of the arrays that fit.c, refit.c, batch.c, assemble.c and fit_round.c take. */
#include "stage/fit_memory.h"

#include "base/order.h"
#include "base/status.h"
#include "stage/assemble.h"

/* An empty rank, with MPI and HDF5. */
static const gidx PROGRAM_BYTES = (gidx)64 << 20;
enum { F32 = sizeof(float), F64 = sizeof(real), I32 = sizeof(idx), I64 = sizeof(gidx) };

idx fit_support(const struct fit_task *t)
{
  return t->rows->n ? (idx)(t->supports->entries / t->rows->n) : t->top_s;
}

static void held_find(const struct fit_task *t, int ranks, gidx n, struct fit_memory *m)
{
  gidx k = t->atoms->k, d = t->atoms->d, p = t->rows->p, entries = n * fit_support(t);
  m->rows = n * p * (F32 + F64);
  m->supports = entries * (I32 + F32 + I64 + d * F64) + (k + 2) * I64 + k * (gidx)ranks * I32;
  m->frames = k * d * p * F64;
}

/* A batch has the rows of the atoms of one class, which are own rows at most once; owners get about
 * as many. */
static gidx batch_find(const struct fit_task *t, const struct comm *c, gidx n, idx q)
{
  struct comm view = *c;
  struct fit f = {.c = &view, .total = t->rows->n, .k = t->atoms->k, .d = t->atoms->d};
  f.p = t->rows->p;
  gidx d = f.d, k = d * q, width = 2 * d + q + 1, reals = assembly_reals(&f, q);
  gidx blocks = (n + ROW_BLOCK - 1) / ROW_BLOCK + 1, members = batch_most(&f, reals, d * f.p);
  if (members > f.k) members = f.k;
  gidx sent = I32 + I64 + (d + width) * F64;
  gidx owned = (width * (c->size > 1 ? 2 : 1) + d * d + d * k + 2 * d) * F64;
  return n * (sent + owned) + members * (reals + blocks * d * f.p) * F64;
}

void fit_memory(const struct fit_task *t, const struct comm *c, idx q, struct fit_memory *m)
{
  gidx first, n = fit_rows(t->rows->n, c->size, 0, &first), all = t->rows->n * fit_support(t);
  gidx d = t->atoms->d, s = fit_support(t), table = t->atoms->k * d * t->rows->p * F32;
  held_find(t, c->size, n, m);
  m->load = n * s * (I32 + F32 + d * F32);
  m->classes = all * 3 * I32 + t->rows->n * (I64 + I32);
  m->batch = batch_find(t, c, n, q);
  m->round = 3 * table + ROW_BLOCK * s * d * F32;
  gidx most = m->load;
  const gidx others[] = {m->classes, m->batch, m->round};
  for (int i = 0; i < LENGTH(others); i++) most = others[i] > most ? others[i] : most;
  m->total = PROGRAM_BYTES + m->rows + m->supports + m->frames + most;
}

gidx fit_bytes(const struct fit *f)
{
  struct fit_memory m;
  gidx frame = (gidx)f->d * f->p * F32, entries = (gidx)f->n * f->s;
  gidx atoms = FIT_PIECE_BYTES + frame;
  gidx supports = (f->n + (gidx)f->k) * I64 + entries * (I32 + (1 + f->d) * F32);
  held_find(f->task, f->c->size, f->n, &m);
  return m.rows + m.supports + m.frames + (atoms > supports ? atoms : supports);
}

int fit_memory_check(const struct fit_task *t, const struct comm *c)
{
  struct fit_memory m;
  gidx first, n = fit_rows(t->rows->n, c->size, c->rank, &first);
  held_find(t, c->size, n, &m);
  gidx wanted = m.rows + m.supports + m.frames, present = memory_share(c->local_size);
  CHECK(wanted <= present, ERR_MEMORY,
        "%lld bytes are needed (rows %lld, supports %lld, frames %lld), %lld are present for each "
        "rank: more machines hold fewer rows each",
        (long long)wanted, (long long)m.rows, (long long)m.supports, (long long)m.frames,
        (long long)present);
  return OK;
}
