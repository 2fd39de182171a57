/* SPDX-License-Identifier: BSD-3-Clause
 * Batches as in refit.c; the records of each travel to rank 0, which writes them.
 *
 * A record is one system: its five arrays and its global rows, one after another. */
#include "stage/assemble_all.h"

#include <stdlib.h>
#include <string.h>

#include "base/fingerprint.h"
#include "base/log.h"
#include "base/status.h"
#include "stage/access.h"

static const gidx PART_REALS = (gidx)1 << 24; /* of a batch's records, about */

/* One batch. */
struct part {
  struct batch batch;
  struct assembly assembly;
  real *rows;  /* [whole rows of own members] global rows */
  gidx first;  /* of its systems in the file */
  idx *member; /* [count] members in ascending order of atoms, as the file has them */
  struct arena arena;
};

/* Global rows of own members, as reals, which hold them exactly. */
static int rows_find(struct part *part, const struct fit *f)
{
  const struct batch *b = &part->batch;
  struct arena arena = {0};
  real *mine = NULL;
  int status = arena_take(&arena, &mine, b->start[b->count], sizeof *mine);
  if (!status) status = arena_take(&part->arena, &part->rows, b->whole[b->mine], sizeof(real));
  TRY(comm_agree(f->c, status));
  for (gidx i = 0; i < b->start[b->count]; i++) mine[i] = (real)(f->first + b->rows[i]);
  TRY(batch_rows_to_owner(b, f, mine, 1, part->rows));
  arena_free(&arena);
  return OK;
}

/* The place of each atom of the batch, atoms[count] ascending, among its members. */
static int members_find(struct part *part, const idx *atoms)
{
  const struct batch *b = &part->batch;
  TRY(arena_take(&part->arena, &part->member, b->count, sizeof *part->member));
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
  return OK;
}

/* Sizes of the systems as the file has them: the border's are an upper bound. */
static int shape_fill(struct assembled *a, const struct classes *classes)
{
  const struct fit *f = a->fit;
  struct systems_shape *s = &a->shape;
  for (idx color = 0; color < classes->count; color++)
    for (gidx i = classes->start[color]; i < classes->start[color + 1]; i++) {
      a->atom[i] = classes->atoms[i];
      a->color[i] = color;
      s->d[i] = f->d;
      s->k[i] = f->d * a->q;
      s->row[i + 1] = s->row[i];
      for (int r = 0; r < f->c->size; r++) s->row[i + 1] += f->counts[(gidx)r * f->k + a->atom[i]];
    }
  return systems_measure(s, "systems.h5");
}

static int assembled_take(struct assembled *a, const struct classes *classes)
{
  gidx count = classes->start[classes->count];
  TRY(arena_take(&a->arena, &a->atom, count, sizeof *a->atom));
  TRY(arena_take(&a->arena, &a->color, count, sizeof *a->color));
  TRY(systems_take(&a->shape, count, &a->arena));
  return shape_fill(a, classes);
}

gidx assembled_memory(const struct fit_task *t, idx q)
{
  gidx d = t->atoms->d, k = d * q;
  gidx reals = t->supports->entries * (d * d + d * k + d + 1) + t->atoms->k * k * (k + 1);
  return 2 * (gidx)sizeof(real) * (reals < PART_REALS ? reals : PART_REALS);
}

int assembled_open(struct assembled *a, struct fit *f, const struct classes *classes, idx q)
{
  *a = (struct assembled){.fit = f, .q = q};
  return comm_agree(f->c, assembled_take(a, classes));
}

void assembled_free(struct assembled *a)
{
  arena_free(&a->arena);
  *a = (struct assembled){0};
}

/* Reals of the record of system s of the file. */
static gidx record_reals(const struct assembled *a, gidx s)
{
  gidx n = a->shape.row[s + 1] - a->shape.row[s], d = a->shape.d[s], k = a->shape.k[s];
  return n * (d * d + d * k + d + 1) + k * (k + 1);
}

static real *append(real *to, const real *from, gidx count)
{
  if (count) memcpy(to, from, (size_t)count * sizeof *to);
  return to + count;
}

static void own_records(const struct part *part, real *to)
{
  const struct batch *b = &part->batch;
  for (idx i = 0; i < b->mine; i++) {
    const struct arrow_system *s = part->assembly.system + i;
    gidx n = s->n, d = s->d, k = s->k;
    to = append(to, s->h, n * d * d);
    to = append(to, s->b, n * d * k);
    to = append(to, s->g, n * d);
    to = append(to, s->c, k * k);
    to = append(to, s->hb, k);
    to = append(to, part->rows + b->whole[i], n);
  }
}

struct system_access {
  const struct system_sink *sink;
  struct systems_block block;
};

static int write_job(void *argument)
{
  const struct system_access *w = argument;
  return w->sink->write(w->sink->self, &w->block);
}

/* One record to the sink, and into the fingerprint. */
static int record_write(const struct assembled *a, gidx at, real *record, struct worker *worker,
                        const struct system_sink *sink, uint64_t *sum)
{
  static struct system_access access; /* outlives a write that passed the deadline */
  const struct systems_shape *s = &a->shape;
  gidx n = s->row[at + 1] - s->row[at], count = systems_reals(s, at, at + 1);
  struct systems_block b = {.first = at, .count = 1, .h = record};
  b.b = b.h + (s->h[at + 1] - s->h[at]);
  b.g = b.b + (s->b[at + 1] - s->b[at]);
  b.c = b.g + (s->g[at + 1] - s->g[at]);
  b.hb = b.c + (s->c[at + 1] - s->c[at]);
  gidx *rows = malloc((size_t)(n + 1) * sizeof *rows);
  CHECK(rows, ERR_MEMORY, "cannot allocate %lld rows", (long long)n);
  for (gidx i = 0; i < n; i++) rows[i] = (gidx)record[count + i];
  b.rows = rows;
  *sum += fingerprint(record, count, 8, s->h[at] + s->b[at] + s->g[at] + s->c[at] + s->border[at]) +
          3 * fingerprint(rows, n, 8, s->row[at]);
  access = (struct system_access){sink, b};
  TRY(access_run(worker, a->fit->c->deadline, write_job, &access));
  free(rows);
  return OK;
}

struct record_room {
  struct arena arena;
  idx *counts; /* [size] reals of each rank */
  gidx *start; /* [count + 1] of each member's record */
  real *mine, *all;
};

static int room_take(const struct assembled *a, const struct part *part, struct record_room *room)
{
  const struct batch *b = &part->batch;
  const struct comm *c = a->fit->c;
  gidx m = 0;
  TRY(arena_take(&room->arena, &room->counts, c->size, sizeof *room->counts));
  TRY(arena_take(&room->arena, &room->start, (gidx)b->count + 1, sizeof *room->start));
  for (idx i = 0; i < b->count; i++)
    room->start[part->member[i] + 1] = record_reals(a, part->first + i);
  for (idx i = 0; i < b->count; i++) room->start[i + 1] += room->start[i];
  gidx total = room->start[b->count];
  CHECK(total <= INT32_MAX, ERR_MEMORY, "%lld numbers of a batch of systems are too many",
        (long long)total);
  for (int r = 0; r < c->size; m += b->owned[r++])
    room->counts[r] = (idx)(room->start[m + b->owned[r]] - room->start[m]);
  TRY(arena_take(&room->arena, &room->mine, room->counts[c->rank], sizeof *room->mine));
  return arena_take(&room->arena, &room->all, c->rank ? 0 : total, sizeof *room->all);
}

static int part_write(const struct assembled *a, const struct part *part, struct worker *worker,
                      const struct system_sink *sink, uint64_t *sum)
{
  struct comm *c = a->fit->c;
  struct record_room room = {0};
  TRY(comm_agree(c, room_take(a, part, &room)));
  own_records(part, room.mine);
  TRY(comm_gather(c, room.mine, room.counts, sizeof *room.mine, room.all));
  int status = OK;
  for (idx i = 0; i < part->batch.count && c->rank == 0 && !status; i++)
    status =
        record_write(a, part->first + i, room.all + room.start[part->member[i]], worker, sink, sum);
  TRY(comm_agree(c, status)); /* after a deadline the worker may still read what is not freed */
  arena_free(&room.arena);
  return OK;
}

/* The borders that the systems came to have. */
static int borders_fill(struct assembled *a, const struct part *part)
{
  for (idx i = 0; i < part->batch.count; i++) {
    gidx s = part->first + i;
    a->shape.k[s] = a->fit->d * part->assembly.kept[part->member[i]];
    TRY(systems_measure_one(&a->shape, s, "systems.h5"));
  }
  return OK;
}

/* Systems first .. first + count - 1, which are of one class. */
static int part_run(struct assembled *a, gidx first, idx count, struct worker *worker,
                    const struct system_sink *sink, uint64_t *sum)
{
  struct fit *f = a->fit;
  struct part part = {.first = first};
  const idx *atoms = a->atom + first;
  TRY(batch_make(&part.batch, f, atoms, count));
  TRY(assembly_make(&part.assembly, f, &part.batch, a->q));
  arena_free(&part.assembly.directions);
  TRY(rows_find(&part, f));
  int status = members_find(&part, atoms);
  if (!status) status = borders_fill(a, &part);
  TRY(comm_agree(f->c, status));
  TRY(part_write(a, &part, worker, sink, sum));
  assembly_free(&part.assembly);
  batch_free(&part.batch);
  arena_free(&part.arena);
  return OK;
}

/* How many systems from `first` on make a batch: of one class, at least one. */
static idx part_count(const struct assembled *a, gidx first, idx most)
{
  gidx reals = record_reals(a, first), end = first + 1;
  for (; end < a->shape.count && end - first < most; end++) {
    if (a->color[end] != a->color[first]) break;
    if ((reals += record_reals(a, end)) > PART_REALS) break;
  }
  return (idx)(end - first);
}

int assembled_run(struct assembled *a, const struct system_sink *sink, uint64_t *fingerprint)
{
  struct fit *f = a->fit;
  struct worker worker;
  struct progress progress;
  idx most = batch_most(f, assembly_reals(f, a->q), (gidx)f->d * f->p);
  *fingerprint = 0;
  TRY(comm_agree(f->c, worker_open(&worker)));
  progress_start(&progress, "assemble", "atoms", a->shape.count);
  for (gidx first = 0; first < a->shape.count;) {
    idx count = part_count(a, first, most);
    TRY(part_run(a, first, count, &worker, sink, fingerprint));
    first += count;
    progress_show(&progress, first);
  }
  worker_close(&worker);
  return OK;
}
