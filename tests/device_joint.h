/* SPDX-License-Identifier: BSD-3-Clause
 * Checks of the assembly of S on any device against the plain loops.  Supports have different
 * lengths, some vectors are dropped, some atoms have no directions, and batches have one row or
 * many. */
#ifndef TESTS_DEVICE_JOINT_H
#define TESTS_DEVICE_JOINT_H

#include <string.h>

#include "device/joint.h"
#include "device_how.h"
#include "joint_problem.h"
#include "model/codes.h"

struct answer {
  real *s; /* [border][border] lower triangle of S */
  struct joint_sums sums;
};

static int batches_add(const struct joint_problem *c, struct joint_work *w, idx batch, real *s,
                       struct joint_sums *sums)
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
    TRY(joint_batch(w, &rows, sums));
    TRY(joint_add(w, s, n));
    i += count;
  }
  return OK;
}

/* s->host <- S, *sums <- the sums, from batches of at most `batch` rows. */
static int joint_assemble(const struct joint_problem *c, struct device *dev, idx batch,
                          struct buffer *s, struct joint_sums *sums)
{
  struct dense d = {0};
  struct joint_work w = {0};
  idx n = joint_border(&c->joint);
  gidx capacity = cpu_joint_row_bytes(&c->joint, c->s) * (batch > 1 ? 1000 : 1);
  int status = dense_open(&d, dev, 64, n);
  joint_sums_init(sums);
  if (!status) status = joint_open(&w, dev, &c->joint, c->s, capacity);
  if (!status) status = joint_begin(&w, &d, s->device, n);
  if (!status) status = batches_add(c, &w, batch, s->device, sums);
  if (!status) status = device_get(dev, s, 0, (gidx)n * n * (gidx)sizeof(real));
  joint_close(&w);
  dense_close(&d);
  return status;
}

static int answers_compare(const struct joint_problem *c, const struct answer *want,
                           const struct answer *got)
{
  gidx n = joint_border(&c->joint);
  for (gidx j = 0; j < n; j++)
    CHECK(!memcmp(got->s + j * n + j, want->s + j * n + j, (size_t)(n - j) * sizeof(real)),
          ERR_ANSWER, "column %lld of S", (long long)j);
  struct det_pair a = pair_sum_total(&got->sums.pairs), b = pair_sum_total(&want->sums.pairs);
  real rss = row_sum_total(&got->sums.errors), want_rss = row_sum_total(&want->sums.errors);
  CHECK(a.m == b.m && a.e == b.e && rss == want_rss && got->sums.codes == want->sums.codes,
        ERR_ANSWER, "the sums");
  return OK;
}

/* Check one device, with batches of at most `batch` rows and one or two threads. */
static int joint_way_check(const struct joint_problem *c, const struct answer *want,
                           const struct how *how, idx batch)
{
  struct device dev;
  struct device_options options = how_options(how, 1, 1, 0);
  struct answer got;
  struct buffer s = {0};
  gidx n = joint_border(&c->joint);
  options.threads = 1 + batch % 2;
  int status = device_open(&dev, &options);
  if (!status) status = buffer_alloc(&dev, &s, n * n * (gidx)sizeof(real));
  if (!status) status = joint_assemble(c, &dev, batch, &s, &got.sums);
  got.s = s.host;
  if (!status) status = answers_compare(c, want, &got);
  if (status) printf("# %s, batch %d: %s\n", how->variant, batch, status_message());
  status_clear();
  buffer_free(&dev, &s);
  device_close(&dev);
  return status == OK;
}

static void joint_run(struct joint_problem c, const struct how *hows, int count)
{
  struct answer want = {0};
  static const idx batches[] = {1, 10, 1000};
  int status = joint_problem_open(&c);
  gidx n = joint_border(&c.joint);
  if (!status) status = arena_alloc(&c.arena, &want.s, n * n, sizeof(real));
  joint_sums_init(&want.sums);
  if (!status) status = joint_reference(&c.joint, &c.rows, want.s, n, &want.sums);
  int drops = c.duplicates && c.rho < DROP_TOLERANCE;
  int good = !status && (want.sums.codes < c.start[c.n] * c.d) == drops;
  for (int h = 0; h < count; h++)
    for (int b = 0; b < LENGTH(batches) && good; b++)
      good = joint_way_check(&c, &want, &hows[h], batches[b]);
  ok(good, "n=%d k=%d d=%d p=%d s=%d q=%d rho=%g border %lld", c.n, c.k, c.d, c.p, c.s, c.q, c.rho,
     (long long)n);
  arena_free(&c.arena);
}

static void check_joint(const struct how *hows, int count)
{
  static const struct joint_problem problems[] = {
      {.n = 0, .k = 3, .d = 1, .p = 5, .s = 2, .q = 2},
      {.n = 1, .k = 1, .d = 1, .p = 3, .s = 1, .q = 1},
      {.n = 100, .k = 20, .d = 1, .p = 40, .s = 5, .q = 4, .duplicates = 1},
      {.n = 100, .k = 30, .d = 1, .p = 70, .s = 20, .q = 7, .rho = 0.25, .duplicates = 1},
      {.n = 50, .k = 30, .d = 1, .p = 70, .s = 20, .q = 7, .rho = 1e-12, .duplicates = 1},
      {.n = 60, .k = 60, .d = 1, .p = 90, .s = 45, .q = 3},
      {.n = 80, .k = 12, .d = 3, .p = 33, .s = 6, .q = 3, .duplicates = 1},
      {.n = 30, .k = 10, .d = 8, .p = 100, .s = 5, .q = 2, .rho = 0.5, .duplicates = 1},
      {.n = 30, .k = 10, .d = 2, .p = 100, .s = 5, .q = 0},
      {.n = 50, .k = 40, .d = 1, .p = 64, .s = 1, .q = 9, .apart = 1},
  };
  claim_begin("S and the sums of a joint system: the reference's bits");
  for (int i = 0; i < LENGTH(problems); i++) joint_run(problems[i], hows, count);
  claim_end();
}

#endif
