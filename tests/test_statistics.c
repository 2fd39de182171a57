/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: the column sums of encode/statistics.h, in progress, are the tree sums of (N.0), column by
 * column, for any run of own columns and any cut of the rows. */
#include <string.h>

#include "base/memory.h"
#include "base/rng.h"
#include "base/sums.h"
#include "base/status.h"
#include "encode/statistics.h"
#include "tap.h"

enum { P = 83, ROWS = 3 * ROW_BLOCK + 777 };

/* Sums in progress are sums of the reference: the chain, and the finished subtrees. */
static int is_sum(const struct statistics *s, idx column, const struct row_sum *want)
{
  gidx blocks = want->rows / ROW_BLOCK;
  const struct block_tree *t = &s->columns;
  int node = 0, same = s->rows == want->rows &&
                       memcmp(&s->chain[column], &want->chain, sizeof want->chain) == 0;
  for (int level = 8; level >= 0; level--)
    if (blocks >> level & 1) {
      same &= node < t->count && t->node[node].level == level &&
              memcmp(&t->values[(gidx)node * t->width + column], &want->tree[level],
                     sizeof want->chain) == 0;
      node++;
    }
  return same && node == t->count;
}

/* Rows arrive in calls of these lengths, again and again; own columns by rank of so many. */
static void cut(const float *x, const real *shift, const idx *lengths, int rank, int size)
{
  struct statistics s;
  struct arena arena = {0};
  struct comm c = {.rank = rank, .size = size};
  int right = statistics_init(&s, &arena, &c, P, shift, 0, ROWS) == OK;
  for (idx at = 0, call = 0, n; at < ROWS; at += n, call++) {
    n = lengths[call % 3] < ROWS - at ? lengths[call % 3] : ROWS - at;
    statistics_rows(&s, x + (gidx)at * P, n, P);
  }
  for (idx column = 0; column < s.count; column++) {
    struct row_sum sum = {0}, squares = {0};
    for (idx i = 0; i < ROWS; i++) {
      real t = x[(gidx)i * P + s.first + column] - shift[s.first + column];
      row_sum_add(&sum, t);
      row_sum_add(&squares, t * t);
    }
    right &= is_sum(&s, column, &sum) && is_sum(&s, s.count + column, &squares);
  }
  ok(right, "columns %d to %d, rows in calls of %d, %d and %d", s.first, s.first + s.count - 1,
     lengths[0], lengths[1], lengths[2]);
  arena_free(&arena);
}

int main(void)
{
  static const idx lengths[][3] = {{ROWS, ROWS, ROWS}, {1, 1, 1}, {63, 1, 65}, {64, 0, 4097}};
  static const int sizes[] = {1, 2, 7, 83};
  struct arena arena = {0};
  float *x;
  real shift[P];
  if (arena_alloc(&arena, &x, (gidx)ROWS * P, sizeof *x)) return 1;
  for (gidx i = 0; i < (gidx)ROWS * P; i++) x[i] = (float)random_normal(9, 1, (uint64_t)i);
  for (idx c = 0; c < P; c++) shift[c] = 0.1 * random_normal(9, 2, (uint64_t)c);
  claim_begin("sums in progress are the tree sums of (N.0)");
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (size_t j = 0; j < sizeof lengths / sizeof *lengths; j++)
      cut(x, shift, lengths[j], sizes[i] / 2, sizes[i]);
  claim_end();
  arena_free(&arena);
  return done_testing();
}
