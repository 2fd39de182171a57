/* SPDX-License-Identifier: BSD-3-Clause
 * Ranks divide the rows of the Gram matrix, then the features, then each block of rows. */
#include "synth/world.h"

#include <stdlib.h>
#include <string.h>

#include "base/fingerprint.h"
#include "base/log.h"
#include "base/num.h"
#include "base/status.h"
#include "model/access.h"
#include "model/identity.h"

enum { GRAM_TILE = 16 }; /* rows of the Gram matrix that stay in a core's cache */

static int part_alloc(struct arena *arena, struct world_part *part, idx rows, idx p)
{
  TRY(arena_alloc(arena, &part->rows, (gidx)rows * p, sizeof *part->rows));
  return arena_alloc(arena, &part->start, (gidx)rows + 1, sizeof *part->start);
}

/* Allocate everything except entries, whose number is known only when rows are made. */
static int job_alloc(struct world_job *j)
{
  const struct world *w = &j->task->world;
  gidx values = (gidx)w->f * w->p;
  j->most = (idx)ceil_div(j->task->block, j->c->size);
  TRY(world_init(&j->world, &j->arena));
  TRY(arena_alloc(&j->arena, &j->vectors, values, sizeof *j->vectors));
  TRY(arena_alloc(&j->arena, &j->exact, values, sizeof *j->exact));
  TRY(arena_alloc(&j->arena, &j->gram, (gidx)w->p * w->p, sizeof *j->gram));
  TRY(arena_alloc(&j->arena, &j->work, w->p, sizeof *j->work));
  TRY(arena_alloc(&j->arena, &j->counts, j->c->size, sizeof *j->counts));
  TRY(arena_alloc(&j->arena, &j->entries, j->c->size, sizeof *j->entries));
  TRY(arena_alloc(&j->arena, &j->each, j->c->size, sizeof *j->each));
  TRY(arena_alloc(&j->arena, &j->row_atoms, w->f, sizeof *j->row_atoms));
  TRY(arena_alloc(&j->arena, &j->row_codes, w->f, sizeof *j->row_codes));
  TRY(part_alloc(&j->arena, &j->mine, j->most, w->p));
  return part_alloc(&j->arena, &j->all, j->c->rank ? 0 : j->task->block, w->p);
}

int world_memory(const struct world_task *task, int ranks, gidx *bytes)
{
  struct comm first = {.size = ranks};
  struct world_job j = {.task = task, .c = &first, .world = task->world, .arena = {.is_dry = 1}};
  TRY(job_alloc(&j));
  *bytes = (gidx)j.arena.bytes;
  return OK;
}

/* counts[size] <- how many of n items each rank has; *first <- the first one of this rank. */
static void items_deal(struct world_job *j, gidx n, gidx *first)
{
  gidx start, count;
  for (int r = 0; r < j->c->size; r++) {
    comm_partition(n, j->c->size, r, &start, &count);
    j->counts[r] = (idx)count;
    if (r == j->c->rank) *first = start;
  }
}

/* Do one step that makes the features less coherent.  Collective. */
static int vectors_spread(struct world_job *j)
{
  const struct world *w = &j->world;
  gidx first = 0;
  size_t line = (size_t)w->p * sizeof *j->exact;
  items_deal(j, w->p, &first);
  idx end = (idx)first + j->counts[j->c->rank];
  for (idx b = (idx)first; b < end; b += GRAM_TILE)
    world_gram(w, j->exact, b, (idx)imin(GRAM_TILE, end - b), j->gram + (gidx)b * w->p);
  TRY(comm_allgather(j->c, j->gram + first * w->p, j->counts, line, j->gram));
  items_deal(j, w->f, &first);
  world_spread(w, j->gram, j->counts[j->c->rank], j->exact + first * w->p, j->work);
  return comm_allgather(j->c, j->exact + first * w->p, j->counts, line, j->exact);
}

static int vectors_make(struct world_job *j)
{
  const struct world *w = &j->world;
  struct progress progress;
  progress_start(&progress, "features", "steps", WORLD_SPREAD_STEPS);
  for (idx i = 0; i < w->f; i++) world_vector(w, i, j->exact + (gidx)i * w->p);
  for (int step = 0; step < WORLD_SPREAD_STEPS; step++) {
    TRY(vectors_spread(j));
    progress_show(&progress, step + 1);
  }
  for (gidx i = 0; i < (gidx)w->f * w->p; i++) j->vectors[i] = (float)j->exact[i];
  return OK;
}

int world_open(struct world_job *j, struct comm *c, const struct world_task *task)
{
  *j = (struct world_job){.task = task, .c = c, .world = task->world};
  int status = job_alloc(j);
  if (!status) status = worker_open(&j->worker);
  TRY(comm_agree(c, status));
  return vectors_make(j);
}

void world_close(struct world_job *j)
{
  worker_close(&j->worker);
  free(j->mine.atoms);
  free(j->mine.codes);
  free(j->all.atoms);
  free(j->all.codes);
  arena_free(&j->arena);
  *j = (struct world_job){0};
}

/* Make room for this many entries; existing entries stay. */
static int part_reserve(struct world_part *part, gidx entries)
{
  if (part->atoms && entries <= part->capacity) return OK;
  gidx capacity = imax(2 * part->capacity, entries + 1);
  idx *atoms = realloc(part->atoms, (size_t)capacity * sizeof *atoms);
  if (atoms) part->atoms = atoms;
  float *codes = atoms ? realloc(part->codes, (size_t)capacity * sizeof *codes) : NULL;
  CHECK(codes, ERR_MEMORY, "cannot allocate %lld bytes for the features of a block: lower --block",
        (long long)capacity * 8);
  part->codes = codes;
  part->capacity = capacity;
  return OK;
}

/* Make this rank's rows of a block. */
static int part_make(struct world_job *j, gidx first, idx count)
{
  const struct world *w = &j->world;
  struct world_part *part = &j->mine;
  part->start[0] = 0;
  for (idx i = 0; i < count; i++) {
    gidx begin = part->start[i];
    idx n = world_features(w, first + i, j->row_atoms, j->row_codes);
    TRY(part_reserve(part, begin + n));
    memcpy(part->atoms + begin, j->row_atoms, (size_t)n * sizeof *part->atoms);
    memcpy(part->codes + begin, j->row_codes, (size_t)n * sizeof *part->codes);
    part->start[i + 1] = begin + n;
    world_row(w, j->vectors, n, j->row_atoms, j->row_codes, part->rows + (gidx)i * w->p, j->work);
  }
  return part_reserve(part, part->start[count]);
}

/* On rank 0: j->all <- the parts of all ranks.  The starts of each rank count from 0, so the number
 * of entries of the lower ranks is added to them.  Collective. */
static int parts_gather(struct world_job *j)
{
  struct world_part *mine = &j->mine, *all = &j->all;
  struct comm *c = j->c;
  idx own = j->counts[c->rank];
  gidx *each = j->each, total = 0;
  TRY(comm_allgather_long(c, mine->start[own], each));
  for (int r = 0; r < c->size; r++) total += each[r];
  int status = c->rank ? OK : part_reserve(all, total);
  for (int r = 0; r < c->size && !status; r++) status = comm_count(each[r], &j->entries[r]);
  TRY(comm_agree(c, status));
  size_t row = (size_t)j->world.p * sizeof *mine->rows;
  TRY(comm_gather(c, mine->rows, j->counts, row, all->rows));
  TRY(comm_gather(c, mine->start + 1, j->counts, sizeof *mine->start, all->start + 1));
  TRY(comm_gather(c, mine->atoms, j->entries, sizeof *mine->atoms, all->atoms));
  TRY(comm_gather(c, mine->codes, j->entries, sizeof *mine->codes, all->codes));
  gidx offset = 0, at = 1;
  for (int r = 0; r < c->size && !c->rank; offset += each[r++])
    for (idx i = 0; i < j->counts[r]; i++) all->start[at++] += offset;
  j->fired += total;
  return OK;
}

static int block_write(struct world_job *j, gidx at, idx n, const struct matrix_sink *rows,
                       const struct support_sink *truth)
{
  const struct world_part *all = &j->all;
  const struct support_block block = {
      .first = at, .n = n, .d = 1, .atoms = all->atoms, .codes = all->codes, .start = all->start};
  if (j->c->rank) return OK;
  TRY(matrix_access(&j->worker, (struct matrix_access){rows, at, n, all->rows}));
  return support_access(&j->worker, truth, &block);
}

int world_rows(struct world_job *j, const struct matrix_sink *rows,
               const struct support_sink *truth)
{
  const struct world_task *t = j->task;
  struct progress progress;
  gidx sums[2], first;
  uint64_t mark = 0, terms = 0;
  progress_start(&progress, "rows", "rows", t->n);
  for (gidx at = 0; at < t->n; at += t->block) {
    idx n = (idx)imin(t->block, t->n - at);
    items_deal(j, n, &first);
    idx count = j->counts[j->c->rank];
    TRY(comm_agree(j->c, part_make(j, t->first + at + first, count)));
    mark += fingerprint(j->mine.rows, count * (gidx)t->world.p, sizeof *j->mine.rows,
                        (at + first) * t->world.p);
    terms += items_terms(j->mine.rows, count, t->world.p, at + first);
    TRY(parts_gather(j));
    TRY(comm_agree(j->c, block_write(j, at, n, rows, truth)));
    progress_show(&progress, at + n);
  }
  memcpy(&sums[0], &mark, sizeof mark);
  memcpy(&sums[1], &terms, sizeof terms);
  TRY(comm_sum(j->c, sums, 2));
  memcpy(&j->fingerprint, &sums[0], sizeof mark);
  memcpy(&terms, &sums[1], sizeof terms);
  j->rows_hash = content_hash(terms, t->n, t->world.p, 1);
  return OK;
}
