/* SPDX-License-Identifier: BSD-3-Clause
 * What a block of rows takes: its size, chosen so that a rank stays within an aim, and its
 * buffers. */
#include <string.h>

#include "base/status.h"
#include "stage/encode_inside.h"

/* The larger one fills the multiprocessors of a GPU several times over. */
enum { BLOCK_MOST = 4096, BLOCK_MOST_LARGE = 16384, BLOCK_LEAST = 256 };
static const gidx MEMORY_AIM = (gidx)1 << 30; /* of what grows with the block */

static int share_most(idx block, int size)
{
  return (block + size - 1) / size;
}

void encode_memory(const struct encode_task *t, int ranks, struct encode_memory *m)
{
  gidx p = t->atoms->p, s = t->top_s, d = t->atoms->d, block = t->block, vectors = s * d;
  gidx share = share_most(t->block, ranks);
  struct tiling tiling = {t->atoms->k, t->tile, ranks};
  int several = t->rounds > 1;
  m->dictionary = 2 * (gidx)tiling_held(&tiling, 0) * d * p * (gidx)sizeof(float);
  if (t->filter && strcmp(t->filter, "off"))
    m->dictionary += tiling_held(&tiling, 0) * d * (p + 16);
  m->rows = (3 + several) * block * p * (gidx)sizeof(float);
  m->lists = block * s * (gidx)(sizeof(struct entry) + 4 * sizeof(idx)) +
             share * s * (gidx)sizeof(struct entry) * ranks;
  m->codes = (t->codes ? 3 * block * vectors * (gidx)sizeof(float) : 0) +
             (several ? share * (vectors * vectors + 4 * vectors) * (gidx)sizeof(real) : 0);
  gidx wanted = share * s < t->atoms->k ? share * s : t->atoms->k;
  m->table = ranks > 1 && (t->codes || several) ? 2 * wanted * d * p * (gidx)sizeof(float) : 0;
}

double encode_work(const struct encode_task *t)
{
  const struct atom_source *atoms = t->atoms;
  return (double)t->rows->n * atoms->k * atoms->d * atoms->p * t->rounds;
}

idx encode_block(const struct encode_task *task, int ranks)
{
  struct encode_task trial = *task;
  int maybe = task->device && strcmp(task->device, "cpu");
  int large = maybe && encode_work(task) >= DEVICE_BREAK_EVEN;
  for (trial.block = large ? BLOCK_MOST_LARGE : BLOCK_MOST; trial.block > BLOCK_LEAST;
       trial.block /= 2) {
    struct encode_memory m;
    encode_memory(&trial, ranks, &m);
    if (m.rows + m.lists + m.codes + m.table <= MEMORY_AIM) break;
  }
  gidx n = task->rows->n > 0 ? task->rows->n : 1;
  return n < trial.block ? (idx)n : trial.block;
}

static int device_buffers_take(struct encode *e)
{
  const struct encode_task *t = e->task;
  struct device *dev = &e->device;
  gidx block = e->block, share = share_most(e->block, e->c->size), s = e->s;
  gidx rows = block * e->p * (gidx)sizeof(float), entry = sizeof(struct entry);
  int several = t->rounds > 1;
  for (int b = 0; b < 2; b++) TRY(device_take(dev, &e->rows[b], rows));
  TRY(device_take(dev, &e->lists, block * s * entry));
  if (e->c->size > 1) TRY(device_take(dev, &e->received, e->c->size * share * s * entry));
  if (several) {
    TRY(device_take(dev, &e->residual, rows));
    TRY(device_hold(dev, &e->state, share * codes_state(dev, (idx)s, t->rho)));
  }
  TRY(device_take(dev, &e->slot, share * s * (gidx)sizeof(idx)));
  if (t->codes) TRY(device_take(dev, &e->codes, share * s * e->d * (gidx)sizeof(float)));
  return device_take(dev, &e->quality, share * (gidx)sizeof(struct row_quality));
}

void buffers_drop(struct encode *e)
{
  struct buffer *const all[] = {&e->rows[0], &e->rows[1], &e->lists, &e->received, &e->residual,
                                &e->state,   &e->slot,    &e->codes, &e->quality};
  for (int i = 0; i < LENGTH(all); i++) device_drop(&e->device, all[i]);
}

int buffers_take(struct encode *e)
{
  const struct encode_task *t = e->task;
  struct arena *a = &e->arena;
  gidx block = e->block, share = share_most(e->block, e->c->size), s = e->s, vectors = s * e->d;
  int root = e->c->rank == 0;
  TRY(device_buffers_take(e));
  TRY(arena_take(a, &e->chosen, t->rounds > 1 ? block * s : 0, sizeof *e->chosen));
  TRY(arena_take(a, &e->shift, e->p, sizeof *e->shift));
  TRY(arena_take(a, &e->atoms, share * s, sizeof *e->atoms));
  TRY(arena_take(a, &e->score, share * s, sizeof *e->score));
  TRY(arena_take(a, &e->qualities, root ? block : 0, sizeof *e->qualities));
  TRY(arena_take(a, &e->shares, 3 * (gidx)e->c->size, sizeof *e->shares));
  e->counts = e->shares + e->c->size;
  e->other = e->counts + e->c->size;
  for (int b = 0; b < 2; b++) {
    TRY(arena_take(a, &e->out_atoms[b], root ? block * s : 0, sizeof *e->out_atoms[b]));
    TRY(arena_take(a, &e->out_score[b], root ? block * s : 0, sizeof *e->out_score[b]));
    TRY(arena_take(a, &e->out_codes[b], root && t->codes ? block * vectors : 0,
                   sizeof *e->out_codes[b]));
  }
  return statistics_init(&e->statistics, a, e->c, e->p, e->shift);
}
