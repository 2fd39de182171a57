/* SPDX-License-Identifier: BSD-3-Clause
 * Ranks add up their rows in chains over sum blocks; owners complete the sums and orthogonalise by
 * Gram-Schmidt.  Each direction that an owner keeps goes to every rank, which applies M to it for
 * the next candidate. */
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
  real *last, *column;     /* [mine][p], [count][p] one direction a member */
  idx *active;             /* [count] does the member look for another direction? */
  struct keep_item *keep;  /* [mine] */
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
  TRY(arena_alloc(&s->arena, &s->last, b->mine * p, sizeof *s->last));
  TRY(arena_alloc(&s->arena, &s->column, b->count * p, sizeof *s->column));
  TRY(arena_alloc(&s->arena, &s->active, b->count, sizeof *s->active));
  return arena_alloc(&s->arena, &s->keep, b->mine, sizeof *s->keep);
}

int directions_find_bytes(const struct refit_state *f, const struct atom_batch *b, idx q,
                          gidx *bytes)
{
  struct search s = {.f = (struct refit_state *)f, .b = b, .q = q, .arena.is_dry = 1};
  TRY(search_alloc(&s));
  TRY(atom_batch_sums_bytes(b, f, f->d * f->p, bytes)); /* of the first candidates, the widest */
  *bytes += (gidx)s.arena.bytes;
  return OK;
}

/* Offer the candidates of active own members, `count` vectors each, to their directions. */
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

/* Make and offer the first candidates: the columns of G = sum_i r_i t_i'. */
static int first_candidates(struct search *s)
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
  int status = device_row_sums(&s->f->device, f->residual, f->p, s->items, b->segments);
  TRY(comm_agree(f->c, status));
  TRY(atom_batch_sums_to_owner(b, f, s->chains, (idx)width, NULL, s->candidate));
  return comm_agree(f->c, candidates_keep(s, f->d));
}

/* Make and offer the next one of each active member: M e, with its last direction e in column. */
static int next_candidates(struct search *s)
{
  const struct refit_state *f = s->f;
  const struct atom_batch *b = s->b;
  gidx items = 0;
  for (gidx g = 0; g < b->segments; g++) {
    const struct segment *segment = b->segment + g;
    if (!s->active[segment->member]) continue;
    s->items[items] = item_of(s, segment);
    s->items[items].vectors = s->column + (gidx)segment->member * f->p;
    s->items[items++].out = s->weight + segment->at;
  }
  int status = device_row_products(&s->f->device, f->residual, f->p, s->items, items);
  items = 0;
  for (gidx g = 0; g < b->segments; g++) {
    if (!s->active[b->segment[g].member]) continue;
    s->items[items].vectors = s->weight + b->segment[g].at;
    s->items[items++].out = s->chains + g * f->p;
  }
  if (!status) status = device_row_sums(&s->f->device, f->residual, f->p, s->items, items);
  TRY(comm_agree(f->c, status));
  TRY(atom_batch_sums_to_owner(b, f, s->chains, f->p, s->active, s->candidate));
  return comm_agree(f->c, candidates_keep(s, 1));
}

/* Bring direction j of every member that has it to e on every rank.  *any <- 0 when none has it;
 * members that have it and want more are active. */
static int direction_allgather(struct search *s, idx j, int *any)
{
  const struct atom_batch *b = s->b;
  gidx p = s->f->p;
  TRY(atom_batch_allgather(b, s->f->c, s->own_kept, sizeof *s->kept, s->kept));
  *any = 0;
  for (idx m = 0; m < b->count; m++) {
    *any |= s->kept[m] > j;
    s->active[m] = s->kept[m] > j && s->kept[m] < s->q;
  }
  if (!*any) return OK;
  for (idx i = 0; i < b->mine; i++)
    memcpy(s->last + i * p, s->own + (i * s->q + j) * p, (size_t)p * sizeof(real));
  TRY(atom_batch_allgather(b, s->f->c, s->last, (size_t)p * sizeof(real), s->column));
  for (idx m = 0; m < b->count; m++)
    if (s->kept[m] > j)
      memcpy(s->e + (m * (gidx)s->q + j) * p, s->column + m * p, (size_t)p * sizeof(real));
  return OK;
}

static int search_run(struct search *s)
{
  int any = 1;
  TRY(first_candidates(s));
  for (idx j = 0; j < s->q && any; j++) {
    TRY(direction_allgather(s, j, &any));
    int more = 0;
    for (idx m = 0; m < s->b->count; m++) more |= s->active[m];
    if (more) TRY(next_candidates(s));
  }
  return OK;
}

int directions_find(struct refit_state *f, const struct atom_batch *b, idx q, real *e, idx *kept)
{
  struct search s = {.f = f, .b = b, .q = q, .e = e, .kept = kept};
  memset(kept, 0, (size_t)b->count * sizeof *kept);
  TRY(comm_agree(f->c, search_alloc(&s)));
  int status = search_run(&s);
  arena_free(&s.arena);
  return status;
}
