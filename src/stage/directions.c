/* SPDX-License-Identifier: BSD-3-Clause
 * Rows' side: chains over row blocks.  Owners' side: trees, Gram-Schmidt.  Each direction that an
 * owner keeps goes to every rank, which applies M to it for the next candidate. */
#include "stage/directions.h"

#include <string.h>

#include "base/status.h"
#include "base/block_tree.h"
#include "device/refit.h"

struct search {
  struct fit *f;
  const struct batch *b;
  idx q;
  real *e;
  idx *kept;
  struct arena arena;
  struct rows_item *items; /* [segments] */
  real *weight;            /* [own rows] r_i' e */
  real *chains;            /* [segments][d][p] */
  real *candidate;         /* [mine][d][p] */
  real *own;               /* [mine][q][p] directions of own members */
  idx *own_kept;           /* [mine] */
  real *last, *column;     /* [mine][p], [count][p] one direction a member */
  idx *active;             /* [count] */
  struct keep_item *keep;  /* [mine] */
};

idx directions_batch(const struct fit *f, idx q)
{
  gidx p = f->p;
  idx most = batch_most(f, (q + f->d + 3) * p, f->d * p);
  return most < f->k ? most : f->k;
}

/* Nodes that are sent for a member, and received for one by its owner. */
static void nodes_count(const struct fit *f, gidx *sent, gidx *received)
{
  *sent = block_nodes_count(f->block_first, f->blocks);
  *received = 0;
  for (int r = 0; r < f->c->size; r++) {
    gidx first, blocks;
    fit_share(f->total, f->c->size, r, &first, &blocks);
    *received += block_nodes_count(first, blocks);
  }
}

gidx directions_bytes(const struct fit *f, idx q)
{
  gidx count = directions_batch(f, q), mine = count / f->c->size + 1, d = f->d, p = f->p;
  gidx a_real = sizeof(real), entries = (gidx)f->n * f->s, sent, received;
  gidx rows = entries < count * f->n ? entries : count * f->n;
  gidx segments = rows < count * f->blocks ? rows : count * f->blocks;
  nodes_count(f, &sent, &received);
  return rows * ((gidx)(sizeof(idx) + sizeof(gidx)) + (d + 1) * a_real) +
         segments * ((gidx)(sizeof(struct segment) + sizeof(struct rows_item)) + d * p * a_real) +
         mine * ((d + q + 1) * p * a_real + (gidx)sizeof(struct keep_item) + (gidx)sizeof(gidx)) +
         count * ((q + 1) * p * a_real + 8 * (gidx)sizeof(idx)) +
         (count * sent + mine * received) * (1 + d * p) * a_real;
}

static int search_take(struct search *s)
{
  const struct batch *b = s->b;
  gidx p = s->f->p, d = s->f->d;
  TRY(arena_take(&s->arena, &s->items, b->segments, sizeof *s->items));
  TRY(arena_take(&s->arena, &s->weight, b->start[b->count], sizeof *s->weight));
  TRY(arena_take(&s->arena, &s->chains, b->segments * d * p, sizeof *s->chains));
  TRY(arena_take(&s->arena, &s->candidate, b->mine * d * p, sizeof *s->candidate));
  TRY(arena_take(&s->arena, &s->own, b->mine * s->q * p, sizeof *s->own));
  TRY(arena_take(&s->arena, &s->own_kept, b->mine, sizeof *s->own_kept));
  TRY(arena_take(&s->arena, &s->last, b->mine * p, sizeof *s->last));
  TRY(arena_take(&s->arena, &s->column, b->count * p, sizeof *s->column));
  TRY(arena_take(&s->arena, &s->active, b->count, sizeof *s->active));
  return arena_take(&s->arena, &s->keep, b->mine, sizeof *s->keep);
}

/* Own members with an active candidate take it; each has `count` vectors. */
static int candidates_keep(struct search *s, idx count)
{
  const struct fit *f = s->f;
  const struct batch *b = s->b;
  gidx p = f->p, items = 0;
  for (idx i = 0; i < b->mine; i++) {
    idx member = b->mine_first + i;
    if (!s->active[member]) continue;
    s->keep[items++] = (struct keep_item){.frame = f->frames + b->atom[member] * f->d * p,
                                          .candidate = s->candidate + i * count * p,
                                          .count = count,
                                          .most = s->q,
                                          .kept = s->own + i * s->q * p,
                                          .n_kept = s->own_kept + i};
  }
  return device_directions_keep(&s->f->device, f->d, f->p, s->keep, items);
}

static struct rows_item item_of(const struct search *s, const struct segment *g)
{
  return (struct rows_item){.rows = s->b->rows + g->at, .n = g->n, .count = 1, .stride = 1};
}

/* The columns of G = sum_i r_i t_i'. */
static int first_candidates(struct search *s)
{
  const struct fit *f = s->f;
  const struct batch *b = s->b;
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
  TRY(batch_sums_to_owner(b, f, s->chains, (idx)width, NULL, s->candidate));
  return comm_agree(f->c, candidates_keep(s, f->d));
}

/* M e for the active members, e in column. */
static int next_candidates(struct search *s)
{
  const struct fit *f = s->f;
  const struct batch *b = s->b;
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
  TRY(batch_sums_to_owner(b, f, s->chains, f->p, s->active, s->candidate));
  return comm_agree(f->c, candidates_keep(s, 1));
}

/* Direction j of every member that has it goes to e on every rank; 0 when no member has it. */
static int direction_spread(struct search *s, idx j, int *any)
{
  const struct batch *b = s->b;
  gidx p = s->f->p;
  TRY(batch_spread(b, s->f->c, s->own_kept, sizeof *s->kept, s->kept));
  *any = 0;
  for (idx m = 0; m < b->count; m++) {
    *any |= s->kept[m] > j;
    s->active[m] = s->kept[m] > j && s->kept[m] < s->q;
  }
  if (!*any) return OK;
  for (idx i = 0; i < b->mine; i++)
    memcpy(s->last + i * p, s->own + (i * s->q + j) * p, (size_t)p * sizeof(real));
  TRY(batch_spread(b, s->f->c, s->last, (size_t)p * sizeof(real), s->column));
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
    TRY(direction_spread(s, j, &any));
    int more = 0;
    for (idx m = 0; m < s->b->count; m++) more |= s->active[m];
    if (more) TRY(next_candidates(s));
  }
  return OK;
}

int directions_find(struct fit *f, const struct batch *b, idx q, real *e, idx *kept)
{
  struct search s = {.f = f, .b = b, .q = q, .e = e, .kept = kept};
  memset(kept, 0, (size_t)b->count * sizeof *kept);
  TRY(comm_agree(f->c, search_take(&s)));
  int status = search_run(&s);
  arena_free(&s.arena);
  return status;
}
