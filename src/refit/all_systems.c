/* SPDX-License-Identifier: BSD-3-Clause
 * A batch has atoms of one class, as many as fit in memory.  The records of a batch are sent to
 * rank 0, which writes them.
 *
 * A record is one system: its five arrays and the global numbers of its rows, one after another. */
#include "refit/all_systems.h"

#include <stdlib.h>
#include <string.h>

#include "base/fingerprint.h"
#include "base/log.h"
#include "base/num.h"
#include "base/status.h"
#include "model/access.h"
#include "model/identity.h"

static const gidx PART_REALS = (gidx)1 << 24; /* of the records of a batch of several atoms */

/* One batch, and what its records are made from. */
struct part {
  struct atom_batch batch;
  struct batch_systems systems;
  gidx first;     /* number of its first system in the file */
  real *own_rows; /* [own_rows] global row numbers as reals, which hold them exactly */
  real *rows;     /* [owner_rows] the row numbers of own members, from all ranks */
  idx *member;    /* [count] members in ascending order of atoms, as in the file */
  struct arena arena;
};

static int part_alloc(struct part *part)
{
  const struct atom_batch *b = &part->batch;
  TRY(arena_alloc(&part->arena, &part->own_rows, b->own_rows, sizeof *part->own_rows));
  TRY(arena_alloc(&part->arena, &part->rows, b->owner_rows, sizeof *part->rows));
  return arena_alloc(&part->arena, &part->member, b->count, sizeof *part->member);
}

static int rows_find(struct part *part, const struct refit_state *f)
{
  const struct atom_batch *b = &part->batch;
  for (gidx i = 0; i < b->own_rows; i++) part->own_rows[i] = (real)(f->first + b->rows[i]);
  return atom_batch_rows_to_owner(b, f, part->own_rows, 1, part->rows);
}

/* member[i] <- the member of the batch that is atoms[i]; atoms[count] ascends. */
static void members_find(struct part *part, const idx *atoms)
{
  const struct atom_batch *b = &part->batch;
  for (idx m = 0; m < b->count; m++) {
    idx low = 0;
    for (idx high = b->count; high - low > 1;) {
      idx middle = low + (high - low) / 2;
      if (atoms[middle] <= b->atom[m])
        low = middle;
      else
        high = middle;
    }
    part->member[low] = m;
  }
}

/* Set the sizes of the systems in the file's order; the sizes of borders are upper bounds. */
static int shape_fill(struct all_systems *a, const struct classes *classes)
{
  const struct refit_state *f = a->fit;
  struct systems_shape *s = &a->shape;
  for (idx color = 0; color < classes->count; color++)
    for (gidx i = classes->start[color]; i < classes->start[color + 1]; i++) {
      a->atom[i] = classes->atoms[i];
      a->color[i] = color;
      s->d[i] = f->d;
      s->k[i] = f->d * a->q;
      s->row[i + 1] = s->row[i] + refit_atom_rows(f, a->atom[i]);
    }
  return systems_measure(s, "systems.h5");
}

static int all_systems_alloc(struct all_systems *a, gidx count)
{
  TRY(arena_alloc(&a->arena, &a->atom, count, sizeof *a->atom));
  TRY(arena_alloc(&a->arena, &a->color, count, sizeof *a->color));
  return systems_alloc(&a->shape, count, &a->arena);
}

int all_systems_open(struct all_systems *a, struct refit_state *f, const struct classes *classes,
                     idx q)
{
  *a = (struct all_systems){.fit = f, .q = q};
  a->end = classes->start[classes->count];
  int status = all_systems_alloc(a, a->end);
  return comm_agree(f->c, status ? status : shape_fill(a, classes));
}

void all_systems_free(struct all_systems *a)
{
  arena_free(&a->arena);
  *a = (struct all_systems){0};
}

/* The reals of a record: reals_of_row() for each row, reals_of_border() for the border. */
static gidx reals_of_row(gidx d, gidx k)
{
  return d * d + d * k + d + 1;
}

static gidx reals_of_border(gidx k)
{
  return k * (k + 1);
}

/* Reals of the record of system s of the file. */
static gidx record_reals(const struct all_systems *a, gidx s)
{
  gidx n = a->shape.row[s + 1] - a->shape.row[s], d = a->shape.d[s], k = a->shape.k[s];
  return n * reals_of_row(d, k) + reals_of_border(k);
}

static real *append(real *to, const real *from, gidx count)
{
  if (count) memcpy(to, from, (size_t)count * sizeof *to);
  return to + count;
}

/* Write the records of own members one after another. */
static void own_records(const struct part *part, real *to)
{
  const struct atom_batch *b = &part->batch;
  for (idx i = 0; i < b->mine; i++) {
    const struct arrow_system *s = part->systems.system + i;
    gidx n = s->n, d = s->d, k = s->k;
    to = append(to, s->h, n * d * d);
    to = append(to, s->b, n * d * k);
    to = append(to, s->g, n * d);
    to = append(to, s->c, k * k);
    to = append(to, s->g_b, k);
    to = append(to, part->rows + b->whole[i], n);
  }
}

static int write_job(void *argument)
{
  const struct system_access *w = argument;
  return w->sink->write(w->sink->self, &w->block);
}

/* Give one record to the sink, and add it to the fingerprint. */
static int record_write(struct all_systems *a, gidx at, real *record, struct worker *worker,
                        const struct system_sink *sink, uint64_t *sum)
{
  const struct systems_shape *s = &a->shape;
  gidx n = s->row[at + 1] - s->row[at], count = systems_reals(s, at, at + 1);
  struct systems_block b = systems_block_at(s, at, at + 1, record);
  gidx *rows = malloc((size_t)(n + 1) * sizeof *rows);
  CHECK(rows, ERR_MEMORY, "cannot allocate %lld rows", (long long)n);
  for (gidx i = 0; i < n; i++) rows[i] = (gidx)record[count + i];
  b.rows = rows;
  *sum += fingerprint(record, count, 8, s->h[at] + s->b[at] + s->g[at] + s->c[at] + s->border[at]) +
          3 * fingerprint(rows, n, 8, s->row[at]);
  a->writing = (struct system_access){sink, b};
  TRY(worker_run(worker, write_job, &a->writing));
  free(rows);
  return OK;
}

/* The records of a batch while they are sent to rank 0. */
struct records {
  struct arena arena;
  idx *counts; /* [size] reals of each rank */
  gidx *start; /* [count + 1] where each member's record begins */
  real *own;   /* [counts[rank]] */
  real *all;   /* [start[count]] on rank 0 */
};

/* Allocate counts, and the starts of each member's record. */
static int starts_alloc(struct records *r, int size, idx count)
{
  TRY(arena_alloc(&r->arena, &r->counts, size, sizeof *r->counts));
  return arena_alloc(&r->arena, &r->start, (gidx)count + 1, sizeof *r->start);
}

static int reals_alloc(struct records *r, gidx own, gidx all)
{
  TRY(arena_alloc(&r->arena, &r->own, own, sizeof *r->own));
  return arena_alloc(&r->arena, &r->all, all, sizeof *r->all);
}

static int records_alloc(const struct all_systems *a, const struct part *part, struct records *r)
{
  const struct atom_batch *b = &part->batch;
  const struct comm *c = a->fit->c;
  gidx m = 0;
  TRY(starts_alloc(r, c->size, b->count));
  for (idx i = 0; i < b->count; i++)
    r->start[part->member[i] + 1] = record_reals(a, part->first + i);
  for (idx i = 0; i < b->count; i++) r->start[i + 1] += r->start[i];
  gidx total = r->start[b->count];
  CHECK(total <= INT32_MAX, ERR_MEMORY, "%lld numbers of a batch of systems are too many",
        (long long)total);
  for (int i = 0; i < c->size; m += b->owned[i++])
    r->counts[i] = (idx)(r->start[m + b->owned[i]] - r->start[m]);
  return reals_alloc(r, r->counts[c->rank], c->rank ? 0 : total);
}

/* Largest number of reals of a batch's records, for all its rows and borders.  It is at most
 * PART_REALS unless the batch is one atom. */
static gidx records_bound(const struct refit_state *f, const struct atom_batch *b, idx q)
{
  gidx rows = b->owner_rows * reals_of_row(f->d, f->d * q), border = reals_of_border(f->d * q);
  return imin(imin(rows + b->count * border, imax(PART_REALS, rows + border)), INT32_MAX);
}

int all_systems_batch_bytes(const struct refit_state *f, const struct atom_batch *b, idx q,
                            gidx *bytes)
{
  struct all_systems a = {.arena.is_dry = 1};
  struct part part = {.batch = *b, .arena.is_dry = 1};
  struct records r = {.arena.is_dry = 1};
  struct batch_systems_bytes systems;
  gidx reals = records_bound(f, b, q);
  TRY(all_systems_alloc(&a, f->k));
  TRY(batch_systems_bytes(f, b, q, &systems));
  TRY(part_alloc(&part));
  TRY(starts_alloc(&r, f->c->size, b->count));
  TRY(reals_alloc(&r, reals, f->c->rank ? 0 : reals));
  *bytes = imax(systems.peak, systems.held + (gidx)(part.arena.bytes + r.arena.bytes));
  *bytes += (gidx)(a.arena.bytes + b->arena.bytes);
  return OK;
}

/* Send the records of a batch to rank 0, which writes them in the file's order.  *asked: the
 * reasons of this rank to stop afterwards; on return the reasons of all ranks. */
static int part_write(struct all_systems *a, const struct part *part, struct worker *worker,
                      const struct system_sink *sink, uint64_t *sum, uint64_t *asked)
{
  struct comm *c = a->fit->c;
  struct records r = {0};
  TRY(comm_agree(c, records_alloc(a, part, &r)));
  own_records(part, r.own);
  TRY(comm_gather(c, r.own, r.counts, sizeof *r.own, r.all));
  int status = OK;
  for (idx i = 0; i < part->batch.count && c->rank == 0 && !status; i++)
    status = record_write(a, part->first + i, r.all + r.start[part->member[i]], worker, sink, sum);
  TRY(comm_agree_flags(c, status, 0, asked));
  arena_free(&r.arena);
  return OK;
}

/* Replace the upper bounds by the true border sizes of a batch's systems. */
static int borders_fill(struct all_systems *a, const struct part *part)
{
  for (idx i = 0; i < part->batch.count; i++) {
    gidx s = part->first + i;
    a->shape.k[s] = a->fit->d * part->systems.kept[part->member[i]];
    TRY(systems_measure_one(&a->shape, s, "systems.h5"));
  }
  return OK;
}

/* The reasons to stop after a batch that this rank knows, as bits; 0 after the last batch. */
static uint64_t stop_asked(const struct all_systems *a, gidx next)
{
  return a->stops.asked && next < a->shape.count ? a->stops.asked(a->stops.self) : 0;
}

/* Assemble and write systems first .. first + count - 1, which are of one class. */
static int part_make(struct all_systems *a, gidx first, idx count, struct worker *worker,
                     const struct system_sink *sink, uint64_t *sum)
{
  struct refit_state *f = a->fit;
  struct part part = {.first = first};
  const idx *atoms = a->atom + first;
  if (!comm_failure(f->c)) comm_record(f->c, atom_batch_make(&part.batch, f, atoms, count));
  TRY(batch_systems_make(&part.systems, f, &part.batch, a->q));
  arena_free(&part.systems.directions);
  TRY(comm_agree(f->c, part_alloc(&part)));
  TRY(rows_find(&part, f));
  members_find(&part, atoms);
  TRY(comm_agree(f->c, borders_fill(a, &part)));
  uint64_t asked = stop_asked(a, first + count);
  TRY(part_write(a, &part, worker, sink, sum, &asked));
  if (asked) {
    a->end = first + count;
    a->stops.stopped(a->stops.self, asked);
  }
  batch_systems_free(&part.systems);
  atom_batch_free(&part.batch);
  arena_free(&part.arena);
  return OK;
}

/* The number of systems, at least 1, of the batch that begins at `first`; they are of one class. */
static idx part_count(const struct all_systems *a, gidx first, idx max)
{
  gidx reals = record_reals(a, first), end = first + 1;
  for (; end < a->shape.count && end - first < max; end++) {
    if (a->color[end] != a->color[first]) break;
    if ((reals += record_reals(a, end)) > PART_REALS) break;
  }
  return (idx)(end - first);
}

int all_systems_skip(struct all_systems *a, const idx *k, gidx count)
{
  struct comm *c = a->fit->c;
  struct systems_shape *s = &a->shape;
  int status = OK;
  if (c->rank == 0) memcpy(s->k, k, (size_t)count * sizeof *k);
  TRY(comm_broadcast(c, s->k, count, sizeof *s->k));
  for (gidx i = 0; i < count && !status; i++) status = systems_measure_one(s, i, "systems.h5");
  a->first = count;
  return comm_agree(c, status);
}

int all_systems_write(struct all_systems *a, const struct system_sink *sink, uint64_t *fingerprint)
{
  struct refit_state *f = a->fit;
  struct worker worker;
  struct progress progress;
  idx max = 1;
  *fingerprint = 0;
  int status = atom_batch_max(f, all_systems_batch_bytes, a->q, &max);
  if (!status) status = worker_open(&worker);
  TRY(comm_agree(f->c, status));
  progress_start(&progress, "assemble", "atoms", a->shape.count);
  progress.before = a->first;
  for (gidx first = a->first; first < a->end;) {
    idx count = part_count(a, first, max);
    TRY(part_make(a, first, count, &worker, sink, fingerprint));
    first += count;
    progress_show(&progress, first);
  }
  worker_close(&worker);
  return OK;
}

uint64_t all_systems_hash(const struct all_systems *all)
{
  const struct systems_shape *s = &all->shape;
  uint64_t sum = fingerprint(all->atom, s->count, sizeof *all->atom, 0) +
                 3 * fingerprint(all->color, s->count, sizeof *all->color, 0) +
                 5 * fingerprint(s->row, s->count + 1, sizeof *s->row, 0);
  return content_hash(sum, s->count, 1, 1);
}
