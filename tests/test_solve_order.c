/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: ranks read a batch in consecutive runs of about equal size.  If no rank then has more than
 * 1.1 times its share of the work, each rank solves what it reads.  Otherwise systems travel, and
 * no rank has more work than its share plus the work of the largest system. */
#include <stdlib.h>

#include "base/rng.h"
#include "base/status.h"
#include "model/systems.h"
#include "solve/order.h"
#include "tap.h"

enum { COUNT = 60, MOST_RANKS = 7, SHAPES = 200 };

static struct system_batch batch;
static int reader[COUNT], owner[COUNT];
static struct work_order order[COUNT];

/* Systems of equal or different lengths, of two kinds, or with a long one, so that both outcomes
 * occur. */
static void shape_make(struct systems_shape *s, int number)
{
  s->row[0] = 0;
  for (gidx a = 0; a < COUNT; a++) {
    gidx n = 30 + (number % 4 == 1 ? random_below(1, (uint64_t)number, (uint64_t)a, 60) : 0);
    if (number % 4 == 3 && a == number % COUNT) n = 40 * (gidx)number;
    s->d[a] = 1 + number % 2;
    s->k[a] = number % 4 == 2 && a % 5 < number % 6 ? 12 : 3;
    s->row[a + 1] = s->row[a] + n;
  }
}

/* Are the runs in the order of ranks, and do their ends differ from even shares by no more than the
 * largest system? */
static int reads_right(const struct systems_shape *s, int ranks)
{
  gidx largest = 0, all = systems_reals(s, 0, COUNT), next = 0;
  for (gidx a = 0; a < COUNT; a++)
    if (systems_reals(s, a, a + 1) > largest) largest = systems_reals(s, a, a + 1);
  for (int r = 0; r < ranks; r++) {
    gidx first, end;
    batch_part(&batch, r, &first, &end);
    if (first != next || end < first) return 0;
    for (gidx a = first; a < end; a++)
      if (reader[a] != r) return 0;
    gidx behind = systems_reals(s, 0, end) * ranks - all * (r + 1);
    if (behind < -largest * ranks - ranks || behind > largest * ranks + ranks) return 0;
    next = end;
  }
  return next == COUNT;
}

/* The most work of a rank; *extra <- the work of the largest system.  Both are divided by the mean
 * work of a rank. */
static double most_work(const struct systems_shape *s, const int *of, int ranks, double *extra)
{
  double work[MOST_RANKS] = {0}, all = 0, most = 0;
  *extra = 0;
  for (gidx a = 0; a < COUNT; a++) {
    work[of[a]] += system_work(s, a);
    all += system_work(s, a);
    if (system_work(s, a) > *extra) *extra = system_work(s, a);
  }
  *extra *= ranks / all;
  for (int r = 0; r < ranks; r++)
    if (work[r] > most) most = work[r];
  return most * ranks / all;
}

int main(void)
{
  struct arena arena = {0};
  struct systems_shape s;
  int stay = 0, travel = 0, wrong = 0;
  batch = (struct system_batch){0, COUNT, reader, owner, 0};
  ok(systems_alloc(&s, COUNT, &arena) == OK, "%d systems", COUNT);
  for (int number = 0; number < SHAPES; number++) {
    shape_make(&s, number);
    if (systems_measure(&s, "made")) return 1;
    int ranks = 1 + number / 4 % MOST_RANKS;
    batch_deal(&s, ranks, &batch, order);
    double extra, read = most_work(&s, reader, ranks, &extra);
    double solved = most_work(&s, owner, ranks, &extra);
    int right = reads_right(&s, ranks) && batch.stays == (read <= 1.1);
    right &= batch.stays ? solved == read : solved <= 1 + extra;
    if (!right && wrong++ == 0)
      printf("# shape %d on %d ranks: stays %d, work as read %g, as solved %g, a system %g\n",
             number, ranks, batch.stays, read, solved, extra);
    stay += batch.stays;
    travel += !batch.stays;
  }
  ok(wrong == 0, "%d of %d batches are not dealt by the rule", wrong, SHAPES);
  ok(stay > SHAPES / 4 && travel > SHAPES / 4, "both cases were met: %d batches stay, %d travel",
     stay, travel);
  arena_free(&arena);
  return done_testing();
}
