/* SPDX-License-Identifier: BSD-3-Clause
 * S, the determinant of the rows and the sums of the fast assembly have the bits of the plain
 * loops, for every variant, thread count and batch: ragged supports, dropped vectors, frames. */
#include <stdlib.h>
#include <string.h>

#include "device/backend.h"
#include "device/lanczos.h"
#include "joint_problem.h"
#include "tap.h"
#include "variants.h"

static int is_present[LOOP_VARIANTS];

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
    idx count = cpu_joint_fit(w, c->start + i, left);
    struct joint_rows rows = {i,
                              count,
                              c->x + (gidx)i * c->p,
                              c->start + i,
                              c->list + c->start[i],
                              c->codes + c->start[i] * c->d};
    CHECK(count > 0, ERR_INTERNAL, "no row fits");
    TRY(joint_batch(w, &rows, &a->sums));
    TRY(joint_add(w, a->s, n));
    i += count;
  }
  return OK;
}

/* One variant with one or two threads, and batches of so many rows. */
static int way_check(const struct joint_problem *c, const struct answer *want, int v, idx batch,
                     struct answer *got)
{
  struct device dev;
  struct device_options options = {
      .p = 1, .d = 1, .threads = 1 + batch % 2, .variant = loop_variants[v]};
  struct dense d;
  struct joint_work w = {0};
  idx n = joint_border(&c->joint);
  gidx capacity = cpu_joint_row_bytes(&c->joint, c->s) * (batch > 1 ? 1000 : 1);
  TRY(device_open(&dev, &options));
  TRY(dense_open(&d, &dev, 64, n));
  TRY(joint_open(&w, &dev, &c->joint, c->s, capacity));
  joint_sums_init(&got->sums);
  int status = joint_begin(&w, &d, got->s, n);
  if (!status) status = batches_add(c, &w, batch, got);
  joint_close(&w);
  dense_close(&d);
  device_close(&dev);
  TRY(status);
  for (gidx j = 0; j < n; j++)
    CHECK(!memcmp(got->s + j * n + j, want->s + j * n + j, (size_t)(n - j) * sizeof(real)),
          ERR_ANSWER, "column %lld of S, %s, batch %d", (long long)j, loop_variants[v], batch);
  struct det_pair a = pair_sum_total(&got->sums.pairs), b = pair_sum_total(&want->sums.pairs);
  real rss = row_sum_total(&got->sums.errors), want_rss = row_sum_total(&want->sums.errors);
  CHECK(a.m == b.m && a.e == b.e && rss == want_rss && got->sums.codes == want->sums.codes,
        ERR_ANSWER, "sums, %s, batch %d", loop_variants[v], batch);
  return OK;
}

static void problem_run(struct joint_problem c)
{
  struct answer want = {0}, got = {0};
  static const idx batches[] = {1, 10, 1000};
  int status = joint_problem_open(&c);
  gidx n = joint_border(&c.joint);
  if (!status) status = arena_alloc(&c.arena, &want.s, n * n, sizeof(real));
  if (!status) status = arena_alloc(&c.arena, &got.s, n * n, sizeof(real));
  joint_sums_init(&want.sums);
  if (!status) status = joint_reference(&c.joint, &c.rows, want.s, n, &want.sums);
  int has_dropped = want.sums.codes < c.start[c.n] * c.d;
  for (int v = 0; v < LOOP_VARIANTS; v++)
    for (int b = 0; b < LENGTH(batches) && !status && is_present[v]; b++)
      status = way_check(&c, &want, v, batches[b], &got);
  if (status) printf("# %s\n", status_message());
  status_clear();
  ok(!status && has_dropped == c.duplicates, "n=%d k=%d d=%d p=%d s=%d q=%d rho=%g border %lld",
     c.n, c.k, c.d, c.p, c.s, c.q, c.rho, (long long)n);
  arena_free(&c.arena);
}

/* How many variants this processor has. */
static int variants_find(void)
{
  int count = 0;
  for (int v = 0; v < LOOP_VARIANTS; v++) {
    struct device dev;
    struct device_options options = {.p = 1, .d = 1, .threads = 1, .variant = loop_variants[v]};
    is_present[v] = device_open(&dev, &options) == OK;
    if (!is_present[v]) skip("%s", status_message());
    count += is_present[v];
    status_clear();
    device_close(&dev);
  }
  return count;
}

/* A backend without the joint system, or without Lanczos steps, says so. */
static void lack_check(void)
{
  const struct backend none = {.kind = "none"};
  struct device dev = {.backend = &none, .kind = none.kind};
  struct joint joint = {.k = 0};
  struct joint_work w;
  struct lanczos l = {.max = 1};
  ok(joint_open(&w, &dev, &joint, 1, 1) == ERR_DEVICE && strstr(status_message(), "joint_open") &&
         strstr(status_message(), "'none'"),
     "joint_open on a device without it: %s", status_message());
  joint_close(&w);
  status_clear();
  ok(lanczos_step(&dev, &l, 0, NULL) == ERR_DEVICE && strstr(status_message(), "lanczos_step"),
     "lanczos_step: %s", status_message());
  status_clear();
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
  claim_begin("a device without joint work says so");
  lack_check();
  claim_end();
  if (!variants_find()) return done_testing();
  claim_begin("S and the sums of a joint system: the reference's bits");
  for (int i = 0; i < LENGTH(problems); i++) problem_run(problems[i]);
  claim_end();
  return done_testing();
}
