/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: an assignment has the largest sum, and of several assignments with this sum it is the
 * first in lexicographic order, as a search through all assignments finds.  The fast solver gives
 * the pairs of the reference, on any number of threads (N.22a).
 * RUN: np=1 */
#include "model/assignment.h"

#include <math.h>

#include "base/rng.h"
#include "base/status.h"
#include "tap.h"

enum { FEW = 6, MOST = 400 };

static uint64_t draws; /* so far */

static idx draw_below(int bound)
{
  return (idx)random_below(5, 1, draws++, (uint64_t)bound);
}

static float draw_normal(void)
{
  return (float)random_normal(5, 2, draws++);
}

/* The search through all injective maps of the smaller side, in lexicographic order. */
struct trial {
  idx k, l; /* k <= l */
  const float *scores;
  gidx row_step, column_step;
  idx now[FEW], best[FEW];
  uint8_t is_taken[FEW];
  double most;
};

static void all_try(struct trial *t, idx i, double sum)
{
  if (i == t->k && sum > t->most) {
    t->most = sum;
    memcpy(t->best, t->now, sizeof t->best);
  }
  for (idx j = 0; i < t->k && j < t->l; j++) {
    if (t->is_taken[j]) continue;
    t->is_taken[j] = 1;
    t->now[i] = j;
    all_try(t, i + 1, sum + (double)t->scores[i * t->row_step + j * t->column_step]);
    t->is_taken[j] = 0;
  }
}

static void oracle(idx k, idx l, const float *scores, idx *match)
{
  struct trial t = {.k = k, .l = l, .scores = scores, .row_step = l, .column_step = 1};
  t.most = -HUGE_VAL;
  if (k > l) {
    t.k = l;
    t.l = k;
    t.row_step = 1;
    t.column_step = l;
  }
  all_try(&t, 0, 0);
  for (idx i = 0; i < k; i++) match[i] = k > l ? -1 : t.best[i];
  for (idx j = 0; j < l && k > l; j++) match[t.best[j]] = j;
}

/* Draw scores of `values` different values; few values give many ties. */
static void scores_draw(int values, gidx count, float *scores)
{
  for (gidx n = 0; n < count; n++) scores[n] = (float)(draw_below(values) - values / 2) / 8;
}

static void check_all_tried(void)
{
  float scores[FEW * FEW];
  idx wanted[FEW], found[FEW], fast[FEW];
  claim_begin(
      "both solvers find the pairs of a full search: of all with the largest sum, the first");
  for (int round = 0; round < 4000; round++) {
    idx k = 1 + draw_below(is_full() ? FEW : FEW - 1);
    idx l = 1 + draw_below(is_full() ? FEW : FEW - 1);
    int values = 1 + round % 9 * (round % 5 ? 1 : 1000);
    scores_draw(values, (gidx)k * l, scores);
    oracle(k, l, scores, wanted);
    ok(assignment_reference(k, l, scores, found) == OK, "%s", status_message());
    ok(assignment_solve(k, l, scores, 1, fast) == OK, "%s", status_message());
    size_t bytes = (size_t)k * sizeof *wanted;
    ok(memcmp(wanted, found, bytes) == 0, "reference, round %d: %d x %d of %d values", round, k, l,
       values);
    ok(memcmp(wanted, fast, bytes) == 0, "round %d: %d x %d of %d values", round, k, l, values);
  }
  claim_end();
}

static void one_compare(idx k, idx l, const float *scores, const char *name)
{
  static idx wanted[MOST], found[MOST];
  ok(assignment_reference(k, l, scores, wanted) == OK, "%s", status_message());
  for (int threads = 1; threads < 4; threads += 2) {
    memset(found, 0, sizeof found);
    ok(assignment_solve(k, l, scores, threads, found) == OK, "%s", status_message());
    ok(memcmp(wanted, found, (size_t)k * sizeof *found) == 0, "%s: %d x %d on %d threads", name, k,
       l, threads);
  }
}

/* Draw scores like cosines of similar vectors: products of vectors that share parts. */
static void cosines_draw(idx k, idx l, float *scores)
{
  enum { P = 24 };
  static float a[MOST * P], b[MOST * P];
  for (gidx n = 0; n < (gidx)k * P; n++) a[n] = draw_normal() / 5;
  for (gidx n = 0; n < (gidx)l * P; n++) {
    idx at = (idx)(n / P) * 7 % k;
    b[n] = draw_normal() / 9 + (at % 3 ? a[(gidx)at * P + n % P] : 0);
  }
  for (idx i = 0; i < k; i++)
    for (idx j = 0; j < l; j++) {
      float sum = 0;
      for (idx c = 0; c < P; c++) sum += a[(gidx)i * P + c] * b[(gidx)j * P + c];
      scores[(gidx)i * l + j] = sum;
    }
}

static void check_reference(void)
{
  static const idx shapes[][2] = {{MOST, MOST}, {MOST, 37}, {37, MOST}, {199, 200},
                                  {1, 300},     {300, 1},   {64, 64}};
  static float scores[MOST * MOST];
  claim_begin("the fast solver gives the pairs of the reference, on 1 and 3 threads");
  for (int s = 0; s < LENGTH(shapes); s++) {
    idx k = shapes[s][0], l = shapes[s][1];
    gidx count = (gidx)k * l;
    for (int values = 1; values <= 100000; values *= 10) {
      scores_draw(values, count, scores);
      one_compare(k, l, scores, "integers");
    }
    cosines_draw(k, l, scores);
    one_compare(k, l, scores, "cosines");
    for (gidx n = 0; n < count; n++) scores[n] = fabsf(scores[n]);
    one_compare(k, l, scores, "sizes of cosines");
    for (gidx n = 0; n < count; n++) scores[n] = -scores[n];
    one_compare(k, l, scores, "negative scores");
    for (gidx n = 0; n < count; n++) scores[n] = (float)((n / l) * (n % l)) * -0x1p-60f;
    one_compare(k, l, scores, "products, whose assignment is all but forced");
  }
  claim_end();
}

static void check_ends(void)
{
  float scores[4] = {1, 2, 3, NAN};
  idx match[2] = {7, 7};
  claim_begin("an empty side has no pairs, and a NaN among scores is refused with its place");
  ok(assignment_solve(2, 0, scores, 1, match) == OK && match[0] == -1 && match[1] == -1, "empty");
  ok(assignment_solve(0, 2, scores, 1, match) == OK, "no rows");
  ok(assignment_solve(2, 2, scores, 1, match) == ERR_INPUT &&
         strstr(status_message(), "row 1 and column 1 is not finite"),
     "%s", status_message());
  status_clear();
  scores[3] = 0x1p127f;
  ok(assignment_solve(2, 2, scores, 1, match) == OK && match[0] == 0 && match[1] == 1, "large");
  claim_end();
}

int main(void)
{
  check_all_tried();
  check_reference();
  check_ends();
  return done_testing();
}
