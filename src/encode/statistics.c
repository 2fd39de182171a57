/* SPDX-License-Identifier: BSD-3-Clause
 * Chains run down the rows for a run of columns at once; each full sum block is pushed on the
 * tree. */
#include "encode/statistics.h"

#include "base/status.h"

int statistics_init(struct statistics *s, struct arena *arena, const struct comm *c, idx p,
                    const real *shift)
{
  gidx first, count;
  comm_share(p, c->size, c->rank, &first, &count);
  *s = (struct statistics){.first = (idx)first, .count = (idx)count, .shift = shift};
  TRY(arena_alloc(arena, &s->chain, 2 * count, sizeof *s->chain));
  return arena_alloc(arena, &s->tree, TREE_LEVELS * 2 * count, sizeof *s->tree);
}

/* Push the sum block in progress on the tree, and begin the next. */
static void block_push(struct statistics *s)
{
  block_sum_push(s->tree, &s->blocks, 2 * s->count, s->chain);
  for (idx c = 0; c < 2 * s->count; c++) s->chain[c] = 0;
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
    if (++s->rows % ROW_BLOCK == 0) block_push(s);
  }
}

void statistics_quality(struct statistics *s, const struct row_quality *quality, idx n)
{
  for (idx i = 0; i < n; i++) {
    row_sum_add(&s->errors, quality[i].error);
    row_sum_add(&s->cosines, quality[i].cosine);
    s->nonzero += quality[i].nonzero;
  }
}

/* squares[count] <- total sum of squares of this rank's columns about their means. */
static void columns_finish(struct statistics *s, real *squares)
{
  real *total = s->chain; /* after the last push */
  if (s->rows % ROW_BLOCK) block_push(s);
  block_sum_total(s->tree, s->blocks, 2 * s->count, total);
  for (idx c = 0; c < s->count; c++) {
    real sum = total[c];
    squares[c] = s->rows ? total[s->count + c] - sum * sum / (real)s->rows : 0;
  }
}

int statistics_finish(struct statistics *s, struct comm *c, idx p, struct metrics *metrics)
{
  struct arena arena = {0};
  real *mine = NULL, *all = NULL;
  idx *counts = NULL;
  int status = arena_alloc(&arena, &mine, s->count, sizeof *mine);
  if (!status) status = arena_alloc(&arena, &all, p, sizeof *all);
  if (!status) status = arena_alloc(&arena, &counts, c->size, sizeof *counts);
  TRY(comm_agree(c, status));
  columns_finish(s, mine);
  for (int r = 0; r < c->size; r++) {
    gidx first, count;
    comm_share(p, c->size, r, &first, &count);
    counts[r] = (idx)count;
  }
  TRY(comm_gather(c, mine, counts, sizeof *mine, all));
  real tss = 0;
  for (idx column = 0; column < p; column++) tss += all[column];
  metrics->n = s->rows;
  metrics->p = p;
  metrics_fit(metrics, row_sum_total(&s->errors), tss, row_sum_total(&s->cosines), s->nonzero);
  gidx codes[] = {s->codes.all, s->codes.negative, s->codes.zero};
  TRY(comm_sum(c, codes, LENGTH(codes)));
  metrics_codes(metrics, &(struct code_counts){codes[0], codes[1], codes[2]});
  arena_free(&arena);
  return OK;
}
