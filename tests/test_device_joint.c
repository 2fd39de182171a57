/* SPDX-License-Identifier: BSD-3-Clause
 * S, the determinant of the rows and the sums of the fast assembly have the bits of the plain
 * loops, for every variant, thread count and batch: ragged supports, dropped vectors, frames. */
#include <stdlib.h>
#include <string.h>

#include "device/joint.h"
#include "joint_problem.h"
#include "tap.h"

static const char *const variants[] = {"avx2", "avx512"};

struct answer {
  real *s; /* [border][border] lower */
  struct joint_sums sums;
};

static int batches_add(const struct joint_problem *c, struct joint_work *w, idx batch,
                       struct answer *a)
{
  idx n = joint_border(&c->joint);
  for (idx i = 0; i < c->n;) {
    idx left = c->n - i < batch ? c->n - i : batch;
    idx count = joint_fit(w, c->start + i, left);
    struct joint_rows rows = {i,
                              count,
                              c->x + (gidx)i * c->p,
                              c->start + i,
                              c->list + c->start[i],
                              c->codes + c->start[i] * c->d};
    CHECK(count > 0, ERR_INTERNAL, "no row fits");
    TRY(joint_batch(w, &rows, &a->sums));
    joint_add(w, a->s, n);
    i += count;
  }
  return OK;
}

static int way_check(const struct joint_problem *c, const struct answer *want, int v, idx batch,
                     struct answer *got)
{
  struct dense d;
  struct joint_work w = {0};
  idx n = joint_border(&c->joint);
  gidx room = joint_row_bytes(&c->joint, c->s) * (batch > 1 ? 1000 : 1);
  TRY(dense_open(&d, variants[v], 1 + batch % 2, 64, n));
  TRY(joint_open(&w, &c->joint, &d, c->s, room));
  joint_sums_init(&got->sums);
  joint_begin(&w, &d, got->s, n);
  int status = batches_add(c, &w, batch, got);
  joint_close(&w);
  dense_close(&d);
  TRY(status);
  for (gidx j = 0; j < n; j++)
    CHECK(!memcmp(got->s + j * n + j, want->s + j * n + j, (size_t)(n - j) * sizeof(real)),
          ERR_DIFFER, "column %lld of S, %s, batch %d", (long long)j, variants[v], batch);
  struct log_pair a = pair_sum_total(&got->sums.pairs), b = pair_sum_total(&want->sums.pairs);
  real rss = row_sum_total(&got->sums.errors), want_rss = row_sum_total(&want->sums.errors);
  CHECK(a.m == b.m && a.e == b.e && rss == want_rss && got->sums.codes == want->sums.codes,
        ERR_DIFFER, "sums, %s, batch %d", variants[v], batch);
  return OK;
}

static void problem_run(struct joint_problem c)
{
  struct answer want = {0}, got = {0};
  static const idx batches[] = {1, 10, 1000};
  int status = joint_problem_open(&c);
  gidx n = joint_border(&c.joint);
  if (!status) status = arena_take(&c.arena, &want.s, n * n, sizeof(real));
  if (!status) status = arena_take(&c.arena, &got.s, n * n, sizeof(real));
  joint_sums_init(&want.sums);
  if (!status) status = joint_reference(&c.joint, &c.rows, want.s, n, &want.sums);
  int has_dropped = want.sums.codes < c.start[c.n] * c.d;
  for (int v = 0; v < LENGTH(variants); v++)
    for (int b = 0; b < LENGTH(batches) && !status; b++)
      status = way_check(&c, &want, v, batches[b], &got);
  if (status) printf("# %s\n", status_message());
  status_clear();
  ok(!status && has_dropped == c.duplicates, "n=%d k=%d d=%d p=%d s=%d q=%d rho=%g border %lld",
     c.n, c.k, c.d, c.p, c.s, c.q, c.rho, (long long)n);
  arena_free(&c.arena);
}

int main(void)
{
  static const struct joint_problem problems[] = {
      {.n = 0, .k = 3, .d = 1, .p = 5, .s = 2, .q = 2},
      {.n = 1, .k = 1, .d = 1, .p = 3, .s = 1, .q = 1},
      {.n = 100, .k = 20, .d = 1, .p = 40, .s = 5, .q = 4, .duplicates = 1},
      {.n = 100, .k = 30, .d = 1, .p = 70, .s = 20, .q = 7, .rho = 0.25, .duplicates = 1},
      {.n = 60, .k = 60, .d = 1, .p = 90, .s = 45, .q = 3},
      {.n = 80, .k = 12, .d = 3, .p = 33, .s = 6, .q = 3, .duplicates = 1},
      {.n = 30, .k = 10, .d = 8, .p = 100, .s = 5, .q = 2, .rho = 0.5, .duplicates = 1},
      {.n = 30, .k = 10, .d = 2, .p = 100, .s = 5, .q = 0},
      {.n = 50, .k = 40, .d = 1, .p = 64, .s = 1, .q = 9, .apart = 1},
  };
  struct dense d;
  if (dense_open(&d, "auto", 1, 64, 1)) {
    skip("%s", status_message());
    return done_testing();
  }
  dense_close(&d);
  for (int i = 0; i < LENGTH(problems); i++) problem_run(problems[i]);
  return done_testing();
}
