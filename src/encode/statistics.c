/* SPDX-License-Identifier: BSD-3-Clause
 * Chains run down the rows for a run of columns at once, one run per thread.  Rank 0 pushes the
 * chains of each sum block on a tree. */
#include "encode/statistics.h"

#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "base/team.h"

int statistics_init(struct statistics *s, struct arena *arena, const struct comm *group,
                    int is_root, idx p, const real *shift, gidx first_block, gidx n)
{
  gidx first, count;
  comm_partition(p, group->size, group->rank, &first, &count);
  *s = (struct statistics){.p = p,
                           .first = (idx)first,
                           .count = (idx)count,
                           .shift = shift,
                           .n = n,
                           .threads = 1,
                           .first_block = first_block};
  TRY(arena_alloc(arena, &s->chain, 2 * count, sizeof *s->chain));
  if (!is_root) return OK;
  TRY(arena_alloc(arena, &s->joined, part_width(p), sizeof *s->joined));
  TRY(arena_alloc(arena, &s->norms, 1, sizeof *s->norms));
  return block_tree_init(&s->tree, arena, part_width(p), first_block, ceil_div(n, ROW_BLOCK));
}

/* Is a sum block complete when the first `row` rows are added? */
static int is_end(const struct statistics *s, gidx row)
{
  return row % ROW_BLOCK == 0 || row == s->n;
}

gidx statistics_blocks(gidx first, gidx n, gidx all)
{
  gidx end = first + n;
  return n ? (end == all ? ceil_div(end, ROW_BLOCK) : end / ROW_BLOCK) - first / ROW_BLOCK : 0;
}

enum { LINE = 16 }; /* columns whose floats share a cache line */

/* Rows to add; each thread adds a run of columns. */
struct addition {
  const struct statistics *s;
  const float *x;
  gidx first;
  idx n, each; /* each: columns of a run */
  real *ended;
};

static void columns_add(void *self, gidx run)
{
  const struct addition *a = self;
  const struct statistics *s = a->s;
  idx begin = (idx)run * a->each, end = (idx)imin(begin + a->each, s->count);
  real *sum = s->chain, *squares = s->chain + s->count, *ended = a->ended;
  const real *shift = s->shift + s->first;
  size_t bytes = (size_t)(end - begin) * sizeof *sum;
  for (idx i = 0; i < a->n; i++) {
    const float *row = a->x + (gidx)i * s->p + s->first;
    for (idx c = begin; c < end; c++) {
      real t = row[c] - shift[c];
      sum[c] += t;
      squares[c] += t * t;
    }
    if (!is_end(s, a->first + i + 1)) continue;
    memcpy(ended + begin, sum + begin, bytes);
    memcpy(ended + s->count + begin, squares + begin, bytes);
    memset(sum + begin, 0, bytes);
    memset(squares + begin, 0, bytes);
    ended += 2 * s->count;
  }
}

void statistics_rows(struct statistics *s, const float *x, gidx first, idx n, real *ended)
{
  idx each = (idx)ceil_div(ceil_div(s->count, s->threads), LINE) * LINE;
  struct addition a = {s, x, first, n, each, ended};
  if (s->count > 0) team_run(s->threads, ceil_div(s->count, each), columns_add, &a);
}

/* s->joined <- the column chains of sum block `block` of a group; values are the group's chains. */
static void columns_scatter(const struct statistics *s, const real *values, int ranks, gidx blocks,
                            gidx block)
{
  for (int r = 0; r < ranks; r++) {
    gidx first, count;
    comm_partition(s->p, ranks, r, &first, &count);
    const real *chain = values + 2 * (blocks * first + block * count);
    memcpy(s->joined + first, chain, (size_t)count * sizeof *chain);
    memcpy(s->joined + s->p + first, chain + count, (size_t)count * sizeof *chain);
  }
}

/* Push the sum block that ends here.  It is number `block` of the sum blocks in chains. */
static void block_push(struct statistics *s, const struct chains *chains, gidx block)
{
  const real *values = chains->values;
  int group = 0;
  for (; block >= chains->blocks[group]; group++) {
    block -= chains->blocks[group];
    values += 2 * chains->blocks[group] * s->p;
  }
  columns_scatter(s, values, chains->ranks, chains->blocks[group], block);
  gidx index = s->first_block + (s->judged - 1) / ROW_BLOCK;
  block_tree_push(&s->tree, (struct block_node){.present = 1, .index = index}, s->joined);
  s->joined[2 * s->p] = s->joined[2 * s->p + 1] = 0;
}

void statistics_join(struct statistics *s, const struct row_quality *quality, idx n,
                     const struct chains *chains)
{
  gidx block = 0;
  for (idx i = 0; i < n; i++) {
    s->joined[2 * s->p] += quality[i].error;
    s->joined[2 * s->p + 1] += quality[i].cosine;
    s->nonzero += quality[i].nonzero;
    norms_add(s->norms, quality[i].square);
    if (is_end(s, ++s->judged)) block_push(s, chains, block++);
  }
}

void statistics_alone(struct statistics *s, const float *x, const struct row_quality *quality,
                      gidx first, idx n, real *work)
{
  gidx blocks = statistics_blocks(first, n, s->n);
  const struct chains chains = {work, 1, 1, &blocks};
  statistics_rows(s, x, first, n, work);
  statistics_join(s, quality, n, &chains);
}

int statistics_finish(struct statistics *s, struct comm *c, struct part_sums *sums)
{
  *sums = (struct part_sums){.first = s->first_block,
                             .count = ceil_div(s->judged, ROW_BLOCK),
                             .p = s->p,
                             .nodes = s->tree.count,
                             .values = s->tree.values};
  gidx codes[] = {s->codes.all, s->codes.negative, s->codes.zero};
  TRY(comm_sum(c, codes, LENGTH(codes)));
  s->codes = (struct code_counts){codes[0], codes[1], codes[2]};
  return OK;
}
