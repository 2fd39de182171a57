/* SPDX-License-Identifier: BSD-3-Clause
 * Ranks sum their rows in chains over sum blocks.  Owners complete the sums and orthogonalise by
 * Gram-Schmidt.  Each direction that an owner keeps is sent to every rank, which multiplies it by M
 * (model/directions.h) for the next candidate.  Ranks wait for each other only before the first
 * exchange, since all memory is allocated by then.  A rank that has failed takes part without
 * working, until ranks next wait for each other. */
#include "refit/directions.h"

#include <string.h>

#include "base/status.h"
#include "base/block_tree.h"
#include "device/refit.h"
#include "refit/atom_batch_sums.h"

struct search {
  struct refit_state *f;
  const struct atom_batch *b;
  idx q;
  real *e;
  idx *kept;
  struct arena arena;
  struct rows_item *items; /* [segments] */
  real *weight;            /* [own_rows] r_i' e */
  real *chains;            /* [segments][d][p] */
  real *candidate;         /* [mine][d][p] */
  real *own;               /* [mine][q][p] directions of own members */
  idx *own_kept;           /* [mine] */
  real *last, *all;        /* [mine][1 + p], [count][1 + p] of own and of all members: the number of
                            * kept directions, then the last one */
  idx *active;             /* [count] the member still searches for directions */
  struct keep_item *keep;  /* [mine] */
  struct batch_sums sums;
};

static int search_alloc(struct search *s)
{
  const struct atom_batch *b = s->b;
  gidx p = s->f->p, d = s->f->d;
  TRY(arena_alloc(&s->arena, &s->items, b->segments, sizeof *s->items));
  TRY(arena_alloc(&s->arena, &s->weight, b->own_rows, sizeof *s->weight));
  TRY(arena_alloc(&s->arena, &s->chains, b->segments * d * p, sizeof *s->chains));
  TRY(arena_alloc(&s->arena, &s->candidate, b->mine * d * p, sizeof *s->candidate));
  TRY(arena_alloc(&s->arena, &s->own, b->mine * s->q * p, sizeof *s->own));
  TRY(arena_alloc(&s->arena, &s->own_kept, b->mine, sizeof *s->own_kept));
  TRY(arena_alloc(&s->arena, &s->last, b->mine * (1 + p), sizeof *s->last));
  TRY(arena_alloc(&s->arena, &s->all, b->count * (1 + p), sizeof *s->all));
  TRY(arena_alloc(&s->arena, &s->active, b->count, sizeof *s->active));
  return arena_alloc(&s->arena, &s->keep, b->mine, sizeof *s->keep);
}

int directions_find_bytes(const struct refit_state *f, const struct atom_batch *b, idx q,
                          gidx *bytes)
{
  struct search s = {.f = (struct refit_state *)f, .b = b, .q = q, .arena.is_dry = 1};
  TRY(search_alloc(&s));
  /* For the first candidates, whose sums are the widest. */
  TRY(atom_batch_sums_bytes(b, f, f->d * f->p, bytes));
  *bytes += (gidx)s.arena.bytes;
  return OK;
}

/* Offer `count` candidates of each active own member to its directions. */
static int candidates_keep(struct search *s, idx count)
{
  const struct refit_state *f = s->f;
  const struct atom_batch *b = s->b;
  gidx p = f->p, items = 0;
  for (idx i = 0; i < b->mine; i++) {
    idx member = b->mine_first + i;
    if (!s->active[member]) continue;
    s->keep[items++] = (struct keep_item){.frame = f->frames + b->atom[member] * f->d * p,
                                          .candidate = s->candidate + i * count * p,
                                          .count = count,
                                          .max = s->q,
                                          .kept = s->own + i * s->q * p,
                                          .n_kept = s->own_kept + i};
  }
  return device_directions_keep(&s->f->device, f->d, f->p, s->keep, items);
}

static struct rows_item item_of(const struct search *s, const struct segment *g)
{
  return (struct rows_item){.rows = s->b->rows + g->at, .n = g->n, .count = 1, .stride = 1};
}

/* Sum over own rows for the first candidates: the columns of G = sum_i r_i t_i'. */
static int first_sums(struct search *s)
{
  const struct refit_state *f = s->f;
  const struct atom_batch *b = s->b;
  gidx width = (gidx)f->d * f->p;
  for (gidx g = 0; g < b->segments; g++) {
    s->items[g] = item_of(s, b->segment + g);
    s->items[g].vectors = b->codes + b->segment[g].at * f->d;
    s->items[g].count = s->items[g].stride = f->d;
    s->items[g].out = s->chains + g * width;
  }
  for (idx m = 0; m < b->count; m++) s->active[m] = s->q > 0;
  return device_row_sums(&s->f->device, f->residual, f->p, s->items, b->segments);
}

/* The last direction of a member. */
static real *direction_of(const struct search *s, idx member)
{
  return s->all + (gidx)member * (1 + s->f->p) + 1;
}

/* Sum over own rows for the next candidate of each active member: M e, with its last direction
 * e. */
static int next_sums(struct search *s)
{
  const struct refit_state *f = s->f;
  const struct atom_batch *b = s->b;
  gidx items = 0;
  for (gidx g = 0; g < b->segments; g++) {
    const struct segment *segment = b->segment + g;
    if (!s->active[segment->member]) continue;
    s->items[items] = item_of(s, segment);
    s->items[items].vectors = direction_of(s, segment->member);
    s->items[items++].out = s->weight + segment->at;
  }
  TRY(device_row_products(&s->f->device, f->residual, f->p, s->items, items));
  items = 0;
  for (gidx g = 0; g < b->segments; g++) {
    if (!s->active[b->segment[g].member]) continue;
    s->items[items].vectors = s->weight + b->segment[g].at;
    s->items[items++].out = s->chains + g * f->p;
  }
  return device_row_sums(&s->f->device, f->residual, f->p, s->items, items);
}

/* Offer candidates at their owners, `count` per member. */
static int candidates_offer(struct search *s, idx count, const idx *active)
{
  TRY(batch_sums_to_owner(&s->sums, s->chains, count * s->f->p, active, s->candidate));
  if (!comm_failure(s->f->c)) comm_record(s->f->c, candidates_keep(s, count));
  return OK;
}

/* Copy direction j of own members, to be sent. */
static void direction_take(struct search *s, idx j)
{
  gidx p = s->f->p;
  for (idx i = 0; i < s->b->mine; i++) {
    real *to = s->last + i * (1 + p);
    to[0] = s->own_kept[i];
    memset(to + 1, 0, (size_t)p * sizeof *to);
    if (s->own_kept[i] > j)
      memcpy(to + 1, s->own + (i * (gidx)s->q + j) * p, (size_t)p * sizeof *to);
  }
}

/* Copy direction j of every member that has one to s->e, on every rank.  Members that have one and
 * search for more are active.  *any <- a member has one, *more <- a member is active. */
static int direction_allgather(struct search *s, idx j, int *any, int *more)
{
  const struct atom_batch *b = s->b;
  gidx p = s->f->p;
  direction_take(s, j);
  TRY(atom_batch_allgather(b, s->f->c, s->last, (size_t)(1 + p) * sizeof *s->last, s->all));
  *any = *more = 0;
  for (idx m = 0; m < b->count; m++) {
    s->kept[m] = (idx)s->all[m * (1 + p)];
    s->active[m] = s->kept[m] > j && s->kept[m] < s->q;
    *more |= s->active[m];
    if (s->kept[m] <= j) continue;
    memcpy(s->e + (m * (gidx)s->q + j) * p, direction_of(s, m), (size_t)p * sizeof(real));
    *any = 1;
  }
  return OK;
}

/* Find all directions, after the first candidates' sums.  Ranks are in lockstep between
 * exchanges. */
static int directions_run(struct search *s)
{
  int any = 1, more = 0;
  for (idx j = 0; j < s->q && any; j++) {
    TRY(direction_allgather(s, j, &any, &more));
    if (!more) continue;
    if (!comm_failure(s->f->c)) comm_record(s->f->c, next_sums(s));
    TRY(candidates_offer(s, 1, s->active));
  }
  return OK;
}

static int search_run(struct search *s)
{
  struct comm *c = s->f->c;
  if (!comm_failure(c)) comm_record(c, first_sums(s));
  TRY(candidates_offer(s, s->f->d, NULL));
  comm_lockstep_begin(c);
  TRY(directions_run(s));
  comm_lockstep_end(c);
  return OK;
}

int directions_find(struct refit_state *f, const struct atom_batch *b, idx q, real *e, idx *kept)
{
  struct search s = {.f = f, .b = b, .q = q, .e = e, .kept = kept, .sums = {.b = b, .f = f}};
  if (kept) memset(kept, 0, (size_t)b->count * sizeof *kept);
  if (comm_proceeds(f->c)) TRY(comm_record_needed(f->c, search_alloc(&s)));
  if (comm_proceeds(f->c))
    TRY(comm_record_needed(f->c, batch_sums_open(&s.sums, b, f, f->d * f->p)));
  TRY(search_run(&s));
  batch_sums_close(&s.sums);
  arena_free(&s.arena);
  return OK;
}
