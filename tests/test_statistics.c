/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: the sums of encode/statistics.h are the tree sums of (N.0), column by column, for any
 * number of groups and of ranks of a group, and any division of the rows into turns. */
#include <string.h>

#include "base/memory.h"
#include "base/num.h"
#include "base/rng.h"
#include "base/status.h"
#include "base/sums.h"
#include "encode/statistics.h"
#include "tap.h"

enum { P = 83, ROWS = 3 * ROW_BLOCK + 777, MAX_RANKS = 12 };

static struct arena arena;
static float *x;
static real shift[P], *want;           /* want: [2][P] sums and sums of squares, error, cosine */
static struct row_quality *quality;    /* [ROWS] */
static real ended[2 * P * 8], *all;    /* chains of a rank; chains of all ranks */
static struct statistics s[MAX_RANKS]; /* s[0]: of rank 0 of the first group, which joins sums */

/* A turn: each rank of a group adds up its own columns of the group's rows, and rank 0 of the first
 * group joins the sums. */
static void turn(gidx first, idx n, int groups, int ranks)
{
  gidx blocks[MAX_RANKS], at = first, used = 0;
  for (int g = 0; g < groups; g++) {
    gidx unit = groups > 1 ? ROW_BLOCK : imax(n, 1), begin, count;
    comm_partition(ceil_div(n, unit), groups, g, &begin, &count);
    count = imin((begin + count) * unit, n) - imin(begin * unit, n);
    blocks[g] = statistics_blocks(at, count, ROWS);
    for (int r = 0; r < ranks; r++) {
      struct statistics *one = &s[g * ranks + r];
      gidx values = 2 * blocks[g] * one->count;
      statistics_rows(one, x + at * P, at, (idx)count, ended);
      memcpy(all + used, ended, (size_t)values * sizeof *all);
      used += values;
    }
    at += count;
  }
  struct chains chains = {all, groups, ranks, blocks};
  statistics_join(&s[0], quality + first, n, &chains);
}

/* Check turns that take these three lengths again and again. */
static void cut(const idx *lengths, int groups, int ranks)
{
  struct comm c = {.size = ranks};
  real total[2 * P + 2];
  int right = 1;
  for (int r = 0; r < groups * ranks; r++) {
    c.rank = r % ranks;
    right &= !statistics_init(&s[r], &arena, &c, r == 0, P, shift, 0, ROWS);
    s[r].threads = 1 + r;
  }
  gidx at = 0;
  for (idx i = 0, n; at < ROWS; at += n, i++) {
    n = (idx)imin(lengths[i % 3], ROWS - at);
    turn(at, n, groups, ranks);
  }
  block_tree_total(&s[0].tree, total);
  right &= memcmp(total, want, sizeof total) == 0 && s[0].judged == ROWS;
  ok(right, "%d groups of %d ranks, turns of %d, %d and %d", groups, ranks, lengths[0], lengths[1],
     lengths[2]);
}

/* want[2 P + 2] <- the sums of the reference. */
static void sums_want(void)
{
  struct row_sum error = {0}, cosine = {0};
  for (idx c = 0; c < P; c++) {
    struct row_sum sum = {0}, squares = {0};
    for (idx i = 0; i < ROWS; i++) {
      real t = x[(gidx)i * P + c] - shift[c];
      row_sum_add(&sum, t);
      row_sum_add(&squares, t * t);
    }
    want[c] = row_sum_total(&sum);
    want[P + c] = row_sum_total(&squares);
  }
  for (idx i = 0; i < ROWS; i++) {
    row_sum_add(&error, quality[i].error);
    row_sum_add(&cosine, quality[i].cosine);
  }
  want[2 * P] = row_sum_total(&error);
  want[2 * P + 1] = row_sum_total(&cosine);
}

int main(void)
{
  enum { B = ROW_BLOCK };
  static const idx lengths[][3] = {{ROWS, ROWS, ROWS}, {1, 1, 1}, {63, 1, 65}, {64, 0, 4097}};
  static const idx wholes[][3] = {{ROWS, ROWS, ROWS}, {B, B, B}, {2 * B, B, B}, {3 * B, B, B}};
  static const int ranks[] = {1, 2, 3, 6};
  int status = arena_alloc(&arena, &x, (gidx)ROWS * P, sizeof *x);
  if (!status) status = arena_alloc(&arena, &quality, ROWS, sizeof *quality);
  if (!status) status = arena_alloc(&arena, &want, 2 * P + 2, sizeof *want);
  if (!status) status = arena_alloc(&arena, &all, 16 * P, sizeof *all);
  if (status) return 1;
  for (gidx i = 0; i < (gidx)ROWS * P; i++) x[i] = (float)random_normal(9, 1, (uint64_t)i);
  for (idx c = 0; c < P; c++) shift[c] = 0.1 * random_normal(9, 2, (uint64_t)c);
  for (idx i = 0; i < ROWS; i++) {
    quality[i].error = random_normal(9, 3, (uint64_t)i);
    quality[i].cosine = random_normal(9, 4, (uint64_t)i);
  }
  sums_want();
  claim_begin("sums of columns are the tree sums of (N.0)");
  for (int r = 0; r < LENGTH(ranks); r++) {
    for (int i = 0; i < LENGTH(lengths); i++) cut(lengths[i], 1, ranks[r]);
    for (int i = 0; i < LENGTH(wholes) && ranks[r] < 6; i++) {
      cut(wholes[i], 2, ranks[r]);
      cut(wholes[i], 4, ranks[r]);
    }
  }
  claim_end();
  arena_free(&arena);
  return done_testing();
}
