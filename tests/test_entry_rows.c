/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: entry_row_is_plain() accepts exactly the rows of more than four entries that keep the
 * rules, for any length, rules, and place of a wrong entry.  It counts the values of these rows
 * that are not 0. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "io/entry_rows.h"
#include "tap.h"

enum { MOST = 41, K = 1000, TRIES = 60000 };

struct row {
  idx atoms[MOST];
  float values[MOST], scores[MOST];
  int32_t begins[MOST];
  gidx n;
};

static int below(int n)
{
  return rand() % n;
}

/* Does a row keep the rules, entry by entry? */
static int keeps(const struct entry_rules *r, const struct row *x)
{
  for (gidx i = 0; i < x->n; i++) {
    float v = x->values[i], s = x->scores[i];
    if (x->atoms[i] < 0 || x->atoms[i] >= r->k || !isfinite(v) || !isfinite(s)) return 0;
    if (r->nonnegative && (v < 0 || s < 0)) return 0;
    if (r->same && memcmp(&v, &s, sizeof v) != 0) return 0;
    if (x->begins[i]) continue;
    float a = fabsf(x->scores[i - 1]), b = fabsf(s);
    int ascends = x->atoms[i - 1] < x->atoms[i];
    if (r->order == ORDER_ATOMS && !ascends) return 0;
    if (r->order != ORDER_ATOMS && a < b) return 0;
    if (r->order == ORDER_SCORES_ATOMS && a == b && !ascends) return 0;
  }
  return 1;
}

/* Draw rules, and a row that keeps them. */
static void row_make(struct row *x, struct entry_rules *r)
{
  *r = (struct entry_rules){.k = K,
                            .order = (enum entry_order)below(3),
                            .nonnegative = below(2),
                            .same = below(2),
                            .begins = x->begins};
  x->n = 1 + below(MOST);
  int score = 0, rounds = below(2) ? 1 + below(6) : 1;
  for (gidx i = 0; i < x->n; i++) {
    x->begins[i] = i == 0 || (r->order != ORDER_ATOMS && below((int)x->n) < rounds - 1) ? -1 : 0;
    score = x->begins[i] ? 100 : (int)imax(score - below(3), 0);
    x->scores[i] = (float)score / 8 * (!r->nonnegative && below(2) ? -1 : 1);
    x->values[i] = r->same ? x->scores[i] : (float)below(3);
    if (x->values[i] == 0 && below(2)) x->values[i] = -0.0f;
    if (r->same) x->scores[i] = x->values[i];
    x->atoms[i] = (idx)(i ? x->atoms[i - 1] + 1 + below(20) : below(100));
  }
}

static void row_break(struct row *x)
{
  static const float wrong[] = {INFINITY, -INFINITY, NAN, -NAN, -1, 1e30f, -0.0f, 0};
  gidx i = below((int)x->n), j = below((int)x->n);
  switch (below(5)) {
  case 0:
    x->atoms[i] = (idx[]){-1, K, INT32_MIN, INT32_MAX, K - 1, 0}[below(6)];
    break;
  case 1:
    x->values[i] = wrong[below(LENGTH(wrong))];
    break;
  case 2:
    x->scores[i] = wrong[below(LENGTH(wrong))];
    break;
  case 3:
    x->values[i] = x->scores[i] = wrong[below(LENGTH(wrong))];
    break;
  default:
    x->atoms[i] = x->atoms[j];
  }
}

int main(void)
{
  gidx wrong = 0, right = 0, other = 0, counted = 0, few = 0;
  srand(7);
  for (int t = 0; t < TRIES; t++) {
    struct entry_rules r;
    struct row x;
    gidx nonzero = 0, wanted = 0;
    row_make(&x, &r);
    if (t % 2) row_break(&x);
    for (gidx i = 0; i < x.n; i++) wanted += x.values[i] != 0;
    int is = entry_row_is_plain(&r, x.atoms, x.values, x.scores, x.n, &nonzero);
    int want = x.n > 4 && keeps(&r, &x);
    other += is != want;
    counted += nonzero != (want ? wanted : 0);
    wrong += x.n > 4 && !want, right += want, few += x.n <= 4;
  }
  ok(right > TRIES / 3 && wrong > TRIES / 10 && few > 0,
     "rows in order, rows out of order, short rows were tried: %lld, %lld, %lld", (long long)right,
     (long long)wrong, (long long)few);
  ok(other == 0, "a row is found to be plain only if it is: %lld are not", (long long)other);
  ok(counted == 0, "values that are not 0 are counted: of %lld rows they are not",
     (long long)counted);
  return done_testing();
}
