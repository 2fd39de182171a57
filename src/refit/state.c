/* SPDX-License-Identifier: BSD-3-Clause
 * Each rank reads its own rows and supports, and the frames that it writes (frames.h).  Then it
 * lists its rows by atom. */
#include "refit/state.h"

#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/sums.h"
#include "base/status.h"
#include "base/team.h"
#include "device/refit.h"
#include "model/access.h"
#include "refit/color.h"
#include "refit/frames.h"
#include "refit/layout.h"

enum { PIECE_BYTES = 16 << 20, TASK_ROWS = 64 }; /* bytes read at a time; rows of a thread's task */
enum { TALLY_ENTRIES = 4 }; /* least number of entries per atom in a part: tallies stay small */
enum {
  AHEAD = 24
}; /* entries: a position is prefetched this far ahead, to be in the cache when
                             * it is written */

void refit_blocks_partition(gidx n, int size, int rank, gidx *block_first, gidx *blocks)
{
  comm_partition((n + ROW_BLOCK - 1) / ROW_BLOCK, size, rank, block_first, blocks);
}

gidx refit_rows_partition(gidx n, int size, int rank, gidx *first)
{
  gidx block_first, blocks;
  refit_blocks_partition(n, size, rank, &block_first, &blocks);
  gidx end = (block_first + blocks) * ROW_BLOCK;
  *first = block_first * ROW_BLOCK < n ? block_first * ROW_BLOCK : n;
  return blocks == 0 ? 0 : (end < n ? end : n) - *first;
}

gidx refit_atom_rows(const struct refit_state *f, idx atom)
{
  gidx rows = 0;
  for (int r = 0; r < f->c->size; r++) rows += f->counts[(gidx)r * f->k + atom];
  return rows;
}

int refit_shapes_check(const struct row_source *rows, const struct atom_source *atoms,
                       const struct support_source *s)
{
  TRY(columns_check(rows, atoms));
  CHECK(s->n == rows->n, ERR_INPUT,
        "'%s' has supports of %lld rows, '%s' has %lld rows: give the rows that were encoded",
        s->name, (long long)s->n, rows->name, (long long)rows->n);
  CHECK(s->k == atoms->k, ERR_INPUT,
        "'%s' is about %d atoms, '%s' has %d: give the dictionary of these codes", s->name, s->k,
        atoms->name, atoms->k);
  CHECK(s->has_codes, ERR_INPUT, "'%s' has no codes: make them with `sagitta encode`", s->name);
  CHECK(s->d == atoms->d, ERR_INPUT,
        "'%s' has %d codes an atom, '%s' has frames of %d vectors: give the dictionary "
        "of these codes",
        s->name, s->d, atoms->name, atoms->d);
  return OK;
}

int refit_task_check(const struct refit_task *t)
{
  const struct support_source *s = t->supports;
  TRY(refit_shapes_check(t->rows, t->atoms, s));
  CHECK(s->n == 0 || s->entries % s->n == 0, ERR_INPUT,
        "'%s' has %lld entries in %lld rows: every row is to have as many atoms; '--keep-supports' "
        "of refit takes any",
        s->name, (long long)s->entries, (long long)s->n);
  return OK;
}

/* Returns the bytes that were allocated since the arena had *before bytes, and updates *before. */
static gidx bytes_since(const struct arena *a, size_t *before)
{
  gidx bytes = (gidx)(a->bytes - *before);
  *before = a->bytes;
  return bytes;
}

int refit_state_alloc(struct refit_state *f, struct refit_resident_bytes *held)
{
  struct arena *a = &f->arena;
  gidx n = f->n, entries = n * f->s;
  size_t before = a->bytes;
  f->x = f->task->x;
  if (!f->x) TRY(arena_alloc(a, &f->x, n * f->p, sizeof *f->x));
  gidx left = f->task->no_steps ? 0 : n * f->p;
  TRY(arena_alloc(a, &f->residual, left, sizeof *f->residual));
  held->rows = bytes_since(a, &before);
  TRY(arena_alloc(a, &f->atoms, entries, sizeof *f->atoms));
  TRY(arena_alloc(a, &f->score, entries, sizeof *f->score));
  TRY(arena_alloc(a, &f->codes, entries * f->d, sizeof *f->codes));
  TRY(arena_alloc(a, &f->start, (gidx)f->k + 1, sizeof *f->start));
  TRY(arena_alloc(a, &f->entry, entries, sizeof *f->entry));
  TRY(arena_alloc(a, &f->counts, (gidx)f->c->size * f->k, sizeof *f->counts));
  f->n_tallies = (int)imax(imin(f->task->threads, entries / (TALLY_ENTRIES * (gidx)f->k)), 1);
  TRY(arena_alloc(a, &f->tallies, (gidx)f->n_tallies * f->k, sizeof *f->tallies));
  held->supports = bytes_since(a, &before);
  gidx frames = (gidx)f->k * f->d * f->p;
  int is_own = !f->task->shares;
  held->shared = is_own ? 0 : refit_frames_bytes(f);
  f->own_count = f->k;
  f->names = f->c->rank == 0;
  if (is_own) TRY(arena_alloc(a, &f->frames, frames, sizeof *f->frames));
  if (is_own && f->task->has_table) TRY(arena_alloc(a, &f->table, frames, sizeof *f->table));
  held->frames = bytes_since(a, &before);
  return OK;
}

static int device_prepare(struct refit_state *f)
{
  struct device_options options = {.p = f->p,
                                   .d = f->d,
                                   .nonnegative = f->task->nonnegative,
                                   .threads = f->task->threads,
                                   .variant = f->task->variant};
  TRY(device_check_subnormals(f->task->threads));
  TRY(device_check_fma());
  return device_open(&f->device, &options);
}

/* Rows that were read.  Half of the threads check, hash and centre them, while the others read the
 * next ones. */
struct piece {
  const struct row_source *rows;
  const real *mean;
  gidx first, count; /* global number of the first row */
  float *x;          /* [count][p] */
  uint64_t terms;
  int is_bad;
};

static int piece_read(void *argument)
{
  const struct piece *j = argument;
  return rows_load(&(struct rows_load){j->rows, j->first, (idx)j->count, .x = j->x});
}

/* A task: rows that are not finite are named later, by piece_take(). */
static void rows_take(void *self, gidx task)
{
  struct piece *j = self;
  idx p = j->rows->p;
  gidx at = task * TASK_ROWS, n = imin(j->count - at, TASK_ROWS);
  float *x = j->x + at * p;
  if (rows_are_finite(x, n, p)) {
    __atomic_fetch_add(&j->terms, items_terms(x, n, p, j->first + at), __ATOMIC_RELAXED);
    rows_center(x, n, p, j->mean);
  }
  if (!rows_are_finite(x, n, p)) __atomic_store_n(&j->is_bad, 1, __ATOMIC_RELAXED);
}

static int piece_take(struct piece *j, int threads, uint64_t *terms)
{
  team_run(threads, ceil_div(j->count, TASK_ROWS), rows_take, j);
  *terms += j->terms;
  return j->is_bad ? rows_source_check(j->rows, j->x, j->first, j->count) : OK;
}

int refit_rows_load(const struct row_source *rows, const real *mean, gidx first, gidx n,
                    int threads, float *x, uint64_t *terms)
{
  gidx p = rows->p, most = 1 + PIECE_BYTES / (p * (gidx)sizeof *x);
  struct piece next = {rows, mean, first, imin(n, most), x, 0, 0};
  struct worker worker;
  int spare = team_spare(), half = (threads + 1) / 2;
  TRY(worker_open(&worker));
  team_spare_set((int)imax(spare, half));
  int status = n > 0 ? worker_start(&worker, piece_read, &next) : OK;
  while (!status && next.count > 0) {
    TRY(worker_wait(&worker));
    struct piece now = next;
    next.first += now.count;
    next.x += now.count * p;
    next.count = imin(first + n - next.first, most);
    if (next.count > 0) TRY(worker_start(&worker, piece_read, &next));
    status = piece_take(&now, half, terms);
  }
  worker_close(&worker); /* waits for a read in progress */
  team_spare_set(spare);
  return status;
}

/* The memory of reading.  After a failure a thread may still use it. */
struct loading {
  struct supports supports; /* own rows' */
  struct arena arena;
  float *atoms; /* [piece][d][p] */
  idx first, count, piece;
  const struct atom_source *source;
  struct identity terms; /* of what this rank reads; of atoms only if f->names */
};

/* Read own supports and codes; codes are converted to f64. */
static int supports_read(struct refit_state *f, const struct support_source *source,
                         struct loading *l)
{
  struct supports *s = &l->supports;
  gidx entries = (gidx)f->n * f->s;
  TRY(supports_access(source, f->first, f->n, 1, s));
  TRY(supports_check_length(s, f->s, source->name));
  if (f->task->writes) TRY(supports_check_order(s, source));
  memcpy(f->atoms, s->view.atoms, (size_t)entries * sizeof *f->atoms);
  memcpy(f->score, s->score, (size_t)entries * sizeof *f->score);
  for (gidx i = 0; i < entries * f->d; i++) f->codes[i] = s->codes[i];
  l->terms.supports = support_terms(f->atoms, f->n, f->s, f->first);
  l->terms.codes = codes_terms(f->score, s->codes, entries, f->d, f->first * f->s);
  supports_free(s);
  return OK;
}

static int atoms_alloc(struct loading *l, const struct refit_state *f)
{
  gidx frame = (gidx)f->d * f->p;
  l->piece = (idx)imin(1 + PIECE_BYTES / (frame * (gidx)sizeof(float)), f->k);
  return arena_alloc(&l->arena, &l->atoms, l->piece * frame, sizeof *l->atoms);
}

static int atoms_job(void *argument)
{
  const struct loading *l = argument;
  return l->source->read(l->source->self, l->first, l->count, l->atoms);
}

/* Read the frames that this rank writes, piece by piece; they are converted to f64. */
static int frames_read(struct refit_state *f, const struct atom_source *source, struct loading *l)
{
  struct worker worker;
  l->source = source;
  gidx frame = (gidx)f->d * f->p;
  TRY(atoms_alloc(l, f));
  TRY(worker_open(&worker));
  idx end = f->own_first + f->own_count;
  for (l->first = f->own_first; l->first < end; l->first += l->count) {
    l->count = (idx)imin(end - l->first, l->piece);
    TRY(worker_run(&worker, atoms_job, l));
    TRY(atoms_check(l->atoms, l->count, f->d, f->p, l->first, source->name));
    if (f->names) l->terms.dictionary += items_terms(l->atoms, l->count, frame, l->first);
    real *to = f->frames + l->first * frame;
    for (gidx i = 0; i < l->count * frame; i++) to[i] = l->atoms[i];
  }
  worker_close(&worker);
  arena_free(&l->arena);
  return OK;
}

int refit_state_load_bytes(const struct refit_state *f, gidx *bytes)
{
  struct loading l = {.arena.is_dry = 1, .supports.arena.is_dry = 1};
  TRY(atoms_alloc(&l, f));
  TRY(supports_alloc_rows(&l.supports, f->n, f->k));
  TRY(supports_alloc_entries(&l.supports, (gidx)f->n * f->s, f->d, 1));
  *bytes = imax((gidx)l.arena.bytes, (gidx)l.supports.arena.bytes);
  return OK;
}

/* Tasks: count, or list, the entries of each atom in part `task` of the own entries. */
static void part_count(void *self, gidx task)
{
  const struct refit_state *f = self;
  idx *tally = f->tallies + task * f->k;
  gidx first, count;
  comm_partition((gidx)f->n * f->s, f->n_tallies, (int)task, &first, &count);
  memset(tally, 0, (size_t)f->k * sizeof *tally);
  for (gidx e = first; e < first + count; e++) tally[f->atoms[e]]++;
}

static void part_list(void *self, gidx task)
{
  const struct refit_state *f = self;
  idx *before = f->tallies + task * f->k;
  gidx first, count;
  comm_partition((gidx)f->n * f->s, f->n_tallies, (int)task, &first, &count);
  for (gidx e = first; e < first + count; e++) {
    idx a = f->atoms[e], b = e + AHEAD < first + count ? f->atoms[e + AHEAD] : a;
    __builtin_prefetch(f->entry + f->start[b] + before[b], 1);
    f->entry[f->start[a] + before[a]++] = e;
  }
}

/* A task: for some atoms, the number of entries in all parts, and before each part. */
static void tallies_sum(void *self, gidx task)
{
  const struct refit_state *f = self;
  idx *counts = f->counts + (gidx)f->c->rank * f->k;
  gidx first, count;
  comm_partition(f->k, f->n_tallies, (int)task, &first, &count);
  for (gidx a = first; a < first + count; a++) counts[a] = 0;
  for (int t = 0; t < f->n_tallies; t++)
    for (gidx a = first; a < first + count; a++) {
      idx *tally = f->tallies + (gidx)t * f->k + a, here = *tally;
      *tally = counts[a];
      counts[a] += here;
    }
}

int refit_state_index(struct refit_state *f)
{
  const idx *mine = f->counts + (gidx)f->c->rank * f->k;
  TRY(refit_state_count(f));
  f->start[0] = 0;
  for (idx a = 0; a < f->k; a++) f->start[a + 1] = f->start[a] + mine[a];
  team_run(f->task->threads, f->n_tallies, part_list, f);
  return OK;
}

int refit_state_count(struct refit_state *f)
{
  idx *each = NULL;
  struct arena arena = {0};
  team_run(f->task->threads, f->n_tallies, part_count, f);
  team_run(f->task->threads, f->n_tallies, tallies_sum, f);
  TRY(comm_agree(f->c, arena_alloc(&arena, &each, f->c->size, sizeof *each)));
  for (int r = 0; r < f->c->size; r++) each[r] = f->k;
  TRY(comm_allgather(f->c, f->counts + (gidx)f->c->rank * f->k, each, sizeof *each, f->counts));
  arena_free(&arena);
  return OK;
}

int refit_state_residuals(struct refit_state *f)
{
  struct residual_job job = {f->n,     f->s,      f->d,     f->p,       f->x,
                             f->atoms, f->frames, f->codes, f->residual};
  return device_residuals(&f->device, &job);
}

int refit_state_shape(struct refit_state *f, const struct refit_task *task, struct comm *c)
{
  TRY(refit_task_check(task));
  *f = (struct refit_state){.task = task, .c = c, .k = task->atoms->k, .d = task->atoms->d};
  f->p = task->rows->p;
  f->rho = task->rho;
  f->total = task->rows->n;
  f->s = refit_task_support(task);
  refit_blocks_partition(f->total, c->size, c->rank, &f->block_first, &f->blocks);
  gidx n = refit_rows_partition(f->total, c->size, c->rank, &f->first);
  CHECK(n <= INT32_MAX, ERR_MEMORY, "%lld rows a rank are too many: add ranks", (long long)n);
  f->n = (idx)n;
  return OK;
}

int refit_identity(const struct refit_state *f, const struct identity *terms, struct identity *out)
{
  gidx sums[] = {(gidx)terms->rows, (gidx)terms->dictionary, (gidx)terms->supports,
                 (gidx)terms->codes};
  TRY(comm_sum(f->c, sums, LENGTH(sums)));
  out->rows = content_hash((uint64_t)sums[0], f->total, f->p, 1);
  out->dictionary = content_hash((uint64_t)sums[1], f->k, f->d, f->p);
  out->supports = content_hash((uint64_t)sums[2], f->total, f->s, 1);
  out->codes = content_hash((uint64_t)sums[3], f->total, f->s, f->d);
  return OK;
}

/* Check that these are the rows and atoms that the codes were solved for. */
static int named_check(const struct refit_state *f)
{
  const struct refit_task *t = f->task;
  const struct identity *named = &t->named, *found = &f->inputs;
  const char *codes = t->supports->name;
  TRY(identity_rows_check(codes, named->rows, t->rows->name, found->rows));
  return identity_dictionary_check(codes, named->dictionary, t->atoms->name, found->dictionary);
}

/* Read own rows, unless they are there. */
static int rows_read(struct refit_state *f, struct loading *l)
{
  const struct refit_task *t = f->task;
  if (t->read) {
    l->terms.rows = *t->read;
    return OK;
  }
  return refit_rows_load(t->rows, t->mean, f->first, f->n, t->threads, f->x, &l->terms.rows);
}

int refit_state_load(struct refit_state *f, const struct refit_task *task, struct comm *c)
{
  struct refit_resident_bytes held;
  struct loading *l;
  TRY(comm_agree(c, refit_state_shape(f, task, c)));
  int status = refit_memory_check(f);
  if (!status) status = device_prepare(f);
  TRY(comm_agree(c, status));
  status = struct_alloc(&l, sizeof *l); /* on the heap, since it is kept after a failure */
  if (!status) status = refit_state_alloc(f, &held);
  TRY(comm_agree(c, status));
  TRY(refit_frames_open(f));
  TRY(comm_agree_at(c, rows_read(f, l), f->first));
  TRY(comm_agree_at(c, frames_read(f, task->atoms, l), f->own_first));
  TRY(refit_frames_sync(f));
  TRY(comm_agree_at(c, supports_read(f, task->supports, l), f->first));
  TRY(refit_identity(f, &l->terms, &f->inputs));
  free(l);
  TRY(comm_agree(c, named_check(f)));
  return refit_state_index(f);
}

int refit_state_replace(struct refit_state *f, const struct atom_source *atoms,
                        const struct support_source *supports, struct identity *found)
{
  struct comm *c = f->c;
  struct refit_task task = *f->task;
  struct loading *l;
  task.atoms = atoms;
  if (supports) task.supports = supports;
  int status = refit_task_check(&task);
  if (!status) status = struct_alloc(&l, sizeof *l);
  TRY(comm_agree(c, status));
  TRY(comm_agree_at(c, frames_read(f, atoms, l), f->own_first));
  TRY(refit_frames_sync(f));
  if (supports) TRY(comm_agree_at(c, supports_read(f, supports, l), f->first));
  TRY(refit_identity(f, &l->terms, found));
  found->rows = 0;
  if (!supports) found->supports = found->codes = 0;
  free(l);
  return supports ? refit_state_index(f) : OK;
}

void refit_state_free(struct refit_state *f)
{
  refit_frames_close(f);
  device_close(&f->device);
  arena_free(&f->arena);
  *f = (struct refit_state){0};
}
