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

static int may_have_gpu(const struct encode_task *t)
{
  return t->device && (!strcmp(t->device, "cuda") ||
                       (!strcmp(t->device, "auto") && encode_work(t) >= DEVICE_BREAK_EVEN));
}

/* A vector of the dictionary: as it was read, as the direct route wants it, once more for codes on
 * a GPU, and the certified filter's form: bytes on a CPU, on a GPU halves, and floats, which serve
 * codes too where they are whole groups of 4. */
static gidx vector_bytes(const struct encode_task *t)
{
  int filter = t->filter && strcmp(t->filter, "off"), gpu = may_have_gpu(t);
  int codes = gpu && (t->codes || t->rounds > 1);
  gidx p = t->atoms->p;
  if (filter && p % 4 == 0) codes = 0;
  return (2 + codes) * p * (gidx)sizeof(float) + filter * (16 + p * (gpu ? 6 : 1));
}

/* Fetched atoms: those that a block wants, on their way out, and tables, which keep what the aim
 * leaves.  One rank has them only where its GPU does not hold the dictionary once more. */
static void table_memory(const struct encode_task *t, int ranks, struct encode_memory *m)
{
  gidx wanted = (gidx)share_most(t->block, ranks) * t->top_s, k = t->atoms->k;
  gidx atom = (gidx)t->atoms->d * t->atoms->p * (gidx)sizeof(float);
  int several = t->rounds > 1, tables = t->codes || several ? 1 + several : 0;
  if (wanted > k) wanted = k;
  m->wanted = m->kept = (idx)wanted;
  m->table = 0;
  if (!tables) return;
  gidx all = (1 + tables) * wanted * atom,
       left = MEMORY_AIM - (m->rows + m->lists + m->codes + all);
  gidx more = left > 0 ? left / (tables * atom) : 0;
  if (more > k - wanted) more = k - wanted;
  m->kept += (idx)more;
  if (ranks > 1) m->table = all + tables * more * atom;
}

void encode_memory(const struct encode_task *t, int ranks, struct encode_memory *m)
{
  gidx p = t->atoms->p, s = t->top_s, d = t->atoms->d, vectors = s * d;
  gidx block = t->block, share = share_most(t->block, ranks);
  gidx name = sizeof(idx), number = sizeof(float), entry = sizeof(struct entry);
  struct tiling tiling = {t->atoms->k, t->tile, ranks};
  int several = t->rounds > 1, joined = ranks > 1;
  m->dictionary = (gidx)tiling_held(&tiling, 0) * d * vector_bytes(t);
  m->rows = (ROW_BUFFERS + FLIGHTS * several) * block * p * number;
  m->lists = FLIGHTS * s *
             (block * (entry + several * name + name + number) +
              share * (2 * name + number + joined * ranks * entry));
  m->codes = t->codes ? (FLIGHTS * block + share) * vectors * number : 0;
  m->codes += (block + share) * (gidx)sizeof(struct row_quality);
  m->codes += FLIGHTS * several * share * (vectors * vectors + 4 * vectors) * (gidx)sizeof(real);
  table_memory(t, ranks, m);
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

static int flight_take(struct encode *e, struct flight *f)
{
  const struct encode_task *t = e->task;
  struct device *dev = &e->device;
  struct arena *a = &e->arena;
  int size = e->c->size, root = e->c->rank == 0, several = t->rounds > 1;
  gidx block = e->block, share = share_most(e->block, size), s = e->s;
  gidx entry = sizeof(struct entry), all = root ? block * s : 0;
  TRY(device_take(dev, &f->lists, block * s * entry));
  if (size > 1) TRY(device_take(dev, &f->received, size * share * s * entry));
  TRY(device_take(dev, &f->slot, share * s * (gidx)sizeof(idx)));
  if (several) {
    TRY(device_take(dev, &f->residual, block * e->p * (gidx)sizeof(float)));
    TRY(device_hold(dev, &f->state, share * codes_state(dev, e->s, t->rho)));
  }
  TRY(arena_take(a, &f->shares, size, sizeof *f->shares));
  TRY(arena_take(a, &f->chosen, several ? block * s : 0, sizeof *f->chosen));
  TRY(arena_take(a, &f->atoms, share * s, sizeof *f->atoms));
  TRY(arena_take(a, &f->score, share * s, sizeof *f->score));
  TRY(arena_take(a, &f->out_atoms, all, sizeof *f->out_atoms));
  TRY(arena_take(a, &f->out_score, all, sizeof *f->out_score));
  return arena_take(a, &f->out_codes, t->codes ? all * e->d : 0, sizeof *f->out_codes);
}

int buffers_take(struct encode *e)
{
  const struct encode_task *t = e->task;
  struct arena *a = &e->arena;
  gidx block = e->block, share = share_most(e->block, e->c->size), number = sizeof(float);
  int root = e->c->rank == 0;
  for (int i = 0; i < ROW_BUFFERS; i++)
    TRY(device_take(&e->device, &e->rows[i], block * e->p * number));
  for (int i = 0; i < FLIGHTS; i++) TRY(flight_take(e, &e->flights[i]));
  if (t->codes) TRY(device_take(&e->device, &e->codes, share * e->s * e->d * number));
  TRY(device_take(&e->device, &e->quality, share * (gidx)sizeof(struct row_quality)));
  TRY(arena_take(a, &e->shift, e->p, sizeof *e->shift));
  TRY(arena_take(a, &e->qualities, root ? block : 0, sizeof *e->qualities));
  TRY(arena_take(a, &e->counts, 2 * (gidx)e->c->size, sizeof *e->counts));
  e->other = e->counts + e->c->size;
  return statistics_init(&e->statistics, a, e->c, e->p, e->shift);
}

void buffers_drop(struct encode *e)
{
  for (int i = 0; i < ROW_BUFFERS; i++) device_drop(&e->device, &e->rows[i]);
  for (int i = 0; i < FLIGHTS; i++) {
    struct flight *f = &e->flights[i];
    struct buffer *const own[] = {&f->lists, &f->received, &f->slot, &f->residual, &f->state};
    for (int j = 0; j < LENGTH(own); j++) device_drop(&e->device, own[j]);
  }
  device_drop(&e->device, &e->codes);
  device_drop(&e->device, &e->quality);
}
