/* SPDX-License-Identifier: BSD-3-Clause
 * Reading, each rank its own rows and supports and all atoms, and the index by atom. */
#include "stage/fit.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/status.h"
#include "device/refit.h"
#include "stage/access.h"
#include "stage/color.h"
#include "stage/fit_memory.h"

void fit_share(gidx n, int size, int rank, gidx *block_first, gidx *blocks)
{
  comm_share((n + ROW_BLOCK - 1) / ROW_BLOCK, size, rank, block_first, blocks);
}

gidx fit_rows(gidx n, int size, int rank, gidx *first)
{
  gidx block_first, blocks;
  fit_share(n, size, rank, &block_first, &blocks);
  gidx end = (block_first + blocks) * ROW_BLOCK;
  *first = block_first * ROW_BLOCK < n ? block_first * ROW_BLOCK : n;
  return blocks == 0 ? 0 : (end < n ? end : n) - *first;
}

int fit_task_check(const struct fit_task *t)
{
  const struct support_source *s = t->supports;
  CHECK(t->rows->p == t->atoms->p, ERR_INPUT, "'%s' has %d columns, the atoms of '%s' have %d",
        t->rows->name, t->rows->p, t->atoms->name, t->atoms->p);
  CHECK(s->n == t->rows->n, ERR_INPUT, "'%s' has supports of %lld rows, '%s' has %lld rows",
        s->name, (long long)s->n, t->rows->name, (long long)t->rows->n);
  CHECK(s->k == t->atoms->k, ERR_INPUT, "'%s' is about %d atoms, '%s' has %d", s->name, s->k,
        t->atoms->name, t->atoms->k);
  CHECK(s->has_codes, ERR_INPUT, "'%s' has no codes: make them with `sagitta encode`", s->name);
  CHECK(s->d == t->atoms->d, ERR_INPUT, "'%s' has %d codes an atom, '%s' has frames of %d vectors",
        s->name, s->d, t->atoms->name, t->atoms->d);
  CHECK(s->n == 0 || s->entries % s->n == 0, ERR_INPUT,
        "'%s' has %lld entries in %lld rows: every row is to have as many atoms", s->name,
        (long long)s->entries, (long long)s->n);
  return OK;
}

static int arrays_take(struct fit *f)
{
  struct arena *a = &f->arena;
  gidx n = f->n, entries = n * f->s;
  TRY(arena_take(a, &f->x, n * f->p, sizeof *f->x));
  TRY(arena_take(a, &f->residual, n * f->p, sizeof *f->residual));
  TRY(arena_take(a, &f->atoms, entries, sizeof *f->atoms));
  TRY(arena_take(a, &f->score, entries, sizeof *f->score));
  TRY(arena_take(a, &f->codes, entries * f->d, sizeof *f->codes));
  TRY(arena_take(a, &f->frames, (gidx)f->k * f->d * f->p, sizeof *f->frames));
  TRY(arena_take(a, &f->start, (gidx)f->k + 2, sizeof *f->start));
  TRY(arena_take(a, &f->entry, entries, sizeof *f->entry));
  return arena_take(a, &f->counts, (gidx)f->c->size * f->k, sizeof *f->counts);
}

static int device_prepare(struct fit *f)
{
  struct device_options options = {
      .p = f->p, .d = f->d, .threads = f->task->threads, .variant = f->task->variant};
  TRY(device_check_subnormals(f->task->threads));
  TRY(device_check_fma());
  return device_open(&f->device, &options);
}

static int rows_load(struct fit *f)
{
  struct worker worker;
  gidx piece = 1 + FIT_PIECE_BYTES / (f->p * (gidx)sizeof *f->x);
  TRY(worker_open(&worker));
  for (gidx i = 0; i < f->n; i += piece) {
    gidx n = f->n - i < piece ? f->n - i : piece;
    float *x = f->x + i * f->p;
    TRY(rows_access(&worker, f->c->deadline,
                    (struct rows_access){f->task->rows, f->first + i, n, x}));
    rows_center(x, n, f->p, f->task->mean);
    TRY(rows_check(x, n, f->p, f->first + i, f->task->rows->name));
  }
  worker_close(&worker);
  return OK;
}

static int supports_take(struct fit *f)
{
  static struct supports s;
  const struct support_source *source = f->task->supports;
  gidx entries = (gidx)f->n * f->s;
  TRY(supports_access(f->c, source, f->first, f->n, 1, &s));
  TRY(supports_check_length(&s, f->s, source->name));
  memcpy(f->atoms, s.view.atoms, (size_t)entries * sizeof *f->atoms);
  memcpy(f->score, s.score, (size_t)entries * sizeof *f->score);
  for (gidx i = 0; i < entries * f->d; i++) f->codes[i] = s.codes[i];
  supports_free(&s);
  return OK;
}

struct atoms_load {
  const struct atom_source *source;
  idx first, count;
  float *out;
};

static int atoms_job(void *argument)
{
  const struct atoms_load *l = argument;
  return l->source->read(l->source->self, l->first, l->count, l->out);
}

static int frames_load(struct fit *f)
{
  static struct atoms_load last;
  struct worker worker;
  const struct atom_source *source = f->task->atoms;
  gidx frame = (gidx)f->d * f->p;
  idx piece = (idx)(1 + FIT_PIECE_BYTES / (frame * (gidx)sizeof(float)));
  float *atoms = malloc((size_t)(piece * frame) * sizeof *atoms);
  CHECK(atoms, ERR_MEMORY, "cannot allocate %d atoms", piece);
  TRY(worker_open(&worker));
  for (idx a = 0; a < f->k; a += piece) {
    idx count = f->k - a < piece ? f->k - a : piece;
    last = (struct atoms_load){source, a, count, atoms};
    TRY(access_run(&worker, f->c->deadline, atoms_job, &last));
    TRY(atoms_check(atoms, count, f->d, f->p, a, source->name));
    for (gidx i = 0; i < count * frame; i++) f->frames[a * frame + i] = atoms[i];
  }
  worker_close(&worker);
  free(atoms);
  return OK;
}

int fit_index(struct fit *f)
{
  gidx entries = (gidx)f->n * f->s, *next = f->start + 1;
  idx *mine = f->counts + (gidx)f->c->rank * f->k, *each = NULL;
  struct arena arena = {0};
  memset(f->start, 0, ((size_t)f->k + 2) * sizeof *f->start);
  for (gidx e = 0; e < entries; e++) next[f->atoms[e] + 1]++;
  for (idx a = 0; a < f->k; a++) {
    mine[a] = (idx)next[a + 1];
    next[a + 1] += next[a];
  }
  for (gidx e = 0; e < entries; e++) f->entry[next[f->atoms[e]]++] = e;
  TRY(comm_agree(f->c, arena_take(&arena, &each, f->c->size, sizeof *each)));
  for (int r = 0; r < f->c->size; r++) each[r] = f->k;
  TRY(comm_gather_all(f->c, mine, each, sizeof *mine, f->counts));
  arena_free(&arena);
  return OK;
}

int fit_residuals(struct fit *f)
{
  struct residual_job job = {f->n,     f->s,      f->d,     f->p,       f->x,
                             f->atoms, f->frames, f->codes, f->residual};
  return device_residuals(&f->device, &job);
}

int fit_shape(struct fit *f, const struct fit_task *task, struct comm *c)
{
  TRY(fit_task_check(task));
  *f = (struct fit){.task = task, .c = c, .k = task->atoms->k, .d = task->atoms->d};
  f->p = task->rows->p;
  f->rho = task->rho;
  f->total = task->rows->n;
  f->s = fit_support(task);
  fit_share(f->total, c->size, c->rank, &f->block_first, &f->blocks);
  gidx n = fit_rows(f->total, c->size, c->rank, &f->first);
  CHECK(n <= INT32_MAX, ERR_MEMORY, "%lld rows a rank are too many: add ranks", (long long)n);
  f->n = (idx)n;
  return OK;
}

int fit_load(struct fit *f, const struct fit_task *task, struct comm *c)
{
  TRY(comm_agree(c, fit_shape(f, task, c)));
  int status = fit_memory_check(task, c);
  if (!status) status = device_prepare(f);
  TRY(comm_agree(c, status));
  TRY(comm_agree(c, arrays_take(f)));
  TRY(comm_agree_at(c, rows_load(f), f->first));
  TRY(comm_agree(c, frames_load(f)));
  TRY(comm_agree_at(c, supports_take(f), f->first));
  return fit_index(f);
}

void fit_free(struct fit *f)
{
  device_close(&f->device);
  arena_free(&f->arena);
  *f = (struct fit){0};
}
