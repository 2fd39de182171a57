/* SPDX-License-Identifier: BSD-3-Clause
 * Chains run down the rows for a run of columns at once; each full sum block is pushed on a
 * tree. */
#include "encode/statistics.h"

#include <string.h>

#include "base/num.h"
#include "base/status.h"

int statistics_init(struct statistics *s, struct arena *arena, const struct comm *c, idx p,
                    const real *shift, gidx first_block, gidx n)
{
  gidx first, count, blocks = ceil_div(n, ROW_BLOCK);
  comm_share(p, c->size, c->rank, &first, &count);
  *s = (struct statistics){
      .first = (idx)first, .count = (idx)count, .shift = shift, .first_block = first_block};
  TRY(arena_alloc(arena, &s->chain, 2 * count, sizeof *s->chain));
  TRY(block_tree_init(&s->columns, arena, (idx)(2 * count), first_block, blocks));
  return block_tree_init(&s->qualities, arena, LENGTH(s->quality), first_block, blocks);
}

/* Push the sum block that ends with this many rows on its tree, and begin the next. */
static void chain_push(const struct statistics *s, struct block_tree *t, real *chain, gidx rows)
{
  gidx block = s->first_block + (rows - 1) / ROW_BLOCK;
  block_tree_push(t, (struct block_node){.present = 1, .index = block}, chain);
  memset(chain, 0, (size_t)t->width * sizeof *chain);
}

void statistics_rows(struct statistics *s, const float *x, idx n, idx p)
{
  real *sum = s->chain, *squares = s->chain + s->count;
  const real *shift = s->shift + s->first;
  for (idx i = 0; i < n; i++) {
    const float *row = x + (gidx)i * p + s->first;
    for (idx c = 0; c < s->count; c++) {
      real t = row[c] - shift[c];
      sum[c] += t;
      squares[c] += t * t;
    }
    if (++s->rows % ROW_BLOCK == 0) chain_push(s, &s->columns, s->chain, s->rows);
  }
}

void statistics_quality(struct statistics *s, const struct row_quality *quality, idx n)
{
  for (idx i = 0; i < n; i++) {
    s->quality[0] += quality[i].error;
    s->quality[1] += quality[i].cosine;
    s->nonzero += quality[i].nonzero;
    if (++s->judged % ROW_BLOCK == 0) chain_push(s, &s->qualities, s->quality, s->judged);
  }
}

/* all[rank][nodes][2][columns of the rank] -> values[nodes][part_width(p)] */
static void columns_place(const struct comm *c, const real *all, struct part_sums *sums)
{
  idx p = sums->p;
  for (int r = 0; r < c->size; r++) {
    gidx first, count;
    comm_share(p, c->size, r, &first, &count);
    for (int node = 0; node < sums->nodes; node++) {
      real *to = sums->values + (gidx)node * part_width(p) + first;
      memcpy(to, all, (size_t)count * sizeof *to);
      memcpy(to + p, all + count, (size_t)count * sizeof *to);
      all += 2 * count;
    }
  }
}

static void qualities_place(const struct block_tree *t, struct part_sums *sums)
{
  for (int node = 0; node < sums->nodes; node++)
    memcpy(sums->values + (gidx)node * part_width(sums->p) + 2 * sums->p, t->values + 2 * node,
           2 * sizeof *t->values);
}

/* Bring the nodes of all columns to rank 0.  A column of a rank is an item of all its nodes. */
static int columns_gather(struct statistics *s, struct comm *c, struct part_sums *sums)
{
  struct arena arena = {0};
  real *all = NULL;
  idx *counts = NULL;
  int status = arena_alloc(&arena, &counts, c->size, sizeof *counts);
  if (!status && c->rank == 0)
    status = arena_alloc(&arena, &all, 2 * (gidx)sums->p * sums->nodes, sizeof *all);
  TRY(comm_agree(c, status));
  for (int r = 0; r < c->size; r++) {
    gidx first, count;
    comm_share(sums->p, c->size, r, &first, &count);
    counts[r] = (idx)count;
  }
  TRY(comm_gather(c, s->columns.values, counts, 2 * (size_t)sums->nodes * sizeof *all, all));
  if (c->rank == 0) columns_place(c, all, sums);
  arena_free(&arena);
  return OK;
}

int statistics_finish(struct statistics *s, struct comm *c, idx p, struct arena *arena,
                      struct part_sums *sums)
{
  if (s->rows % ROW_BLOCK) chain_push(s, &s->columns, s->chain, s->rows);
  if (s->judged % ROW_BLOCK) chain_push(s, &s->qualities, s->quality, s->judged);
  *sums = (struct part_sums){.first = s->first_block,
                             .count = ceil_div(s->rows, ROW_BLOCK),
                             .p = p,
                             .nodes = s->columns.count};
  int status = OK;
  if (c->rank == 0)
    status = arena_alloc(arena, &sums->values, (gidx)sums->nodes * part_width(p), sizeof(real));
  TRY(comm_agree(c, status));
  if (sums->nodes) TRY(columns_gather(s, c, sums));
  if (c->rank == 0) qualities_place(&s->qualities, sums);
  gidx codes[] = {s->codes.all, s->codes.negative, s->codes.zero};
  TRY(comm_sum(c, codes, LENGTH(codes)));
  s->codes = (struct code_counts){codes[0], codes[1], codes[2]};
  return OK;
}
