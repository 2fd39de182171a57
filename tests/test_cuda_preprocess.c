/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: a GPU that preprocesses rows finds the same hash, bits and first row that is not finite as
 * the host.  The chains of columns are those of encode/statistics.h, for any width, number of rows,
 * first row, and division of the rows into calls. */
#include <math.h>

#include "base/memory.h"
#include "base/num.h"
#include "base/rng.h"
#include "base/sums.h"
#include "device/preprocess.h"
#include "device_how.h"
#include "encode/statistics.h"
#include "model/identity.h"
#include "model/rows.h"

enum { MAX_P = 1030, AT = 3, TOTAL = 3 * ROW_BLOCK + 777 };

static struct device dev;
static real mean[MAX_P], shift[MAX_P];

/* Small and large numbers of either sign; sometimes -0 or a subnormal number. */
static float value(gidx i)
{
  uint64_t bits = random_bits(7, 1, (uint64_t)i);
  if (bits % 97 == 0) return bits % 2 ? -0.0f : 0x1p-140f;
  return ldexpf((float)random_normal(7, 2, (uint64_t)i), (int)(bits % 24) - 12);
}

struct rows {
  struct arena arena;
  struct buffer b;
  float *want; /* [n][p] */
  idx n, p;
};

/* Make n rows, after AT other rows. */
static int rows_open(struct rows *r, idx n, idx p)
{
  gidx count = ((gidx)n + AT) * p;
  *r = (struct rows){.n = n, .p = p};
  TRY(buffer_alloc(&dev, &r->b, count * (gidx)sizeof(float)));
  TRY(arena_alloc(&r->arena, &r->want, (gidx)n * p, sizeof *r->want));
  float *x = r->b.host;
  for (gidx i = 0; i < count; i++) x[i] = value(i);
  return OK;
}

static void rows_close(struct rows *r)
{
  buffer_free(&dev, &r->b);
  arena_free(&r->arena);
}

/* A value that is not finite, and its place in the rows; row -1: none. */
struct planted {
  idx row, column;
  float value;
};

static int take(struct rows *r, int centers, gidx first, struct planted bad)
{
  gidx count = (gidx)r->n * r->p, bytes = (count + AT * r->p) * (gidx)sizeof(float);
  float *x = (float *)r->b.host + AT * r->p;
  struct preprocess in = {0};
  const struct preprocess_shape shape = {.p = r->p, .block = r->n, .mean = centers ? mean : NULL};
  struct preprocess_job job = {.rows = &r->b, .at = AT, .first = first, .n = r->n};
  if (bad.row >= 0) x[(gidx)bad.row * r->p + bad.column] = bad.value;
  memcpy(r->want, x, (size_t)count * sizeof *x);
  uint64_t terms = items_terms(r->want, r->n, r->p, first);
  rows_center(r->want, r->n, r->p, shape.mean);
  TRY(device_put(&dev, &r->b, 0, bytes));
  TRY(preprocess_open(&in, &dev, &shape));
  TRY(preprocess_run(&in, &job));
  TRY(device_get(&dev, &r->b, 0, bytes));
  preprocess_close(&in);
  int same = !memcmp(x, r->want, (size_t)count * sizeof *x);
  ok(same && job.terms == terms && job.bad == bad.row,
     "%d rows of %d at %lld%s: bits %d, hash %d, first bad row %lld", r->n, r->p, (long long)first,
     centers ? ", less the mean" : "", same, job.terms == terms, (long long)job.bad);
  return OK;
}

static void check_take(idx n, idx p)
{
  const struct planted none = {-1, 0, 0}, bad[] = {{n / 2, p - 1, NAN}, {n - 1, 0, INFINITY}};
  struct rows r;
  for (int i = 0; i < 8; i++) {
    int status = rows_open(&r, n, p);
    if (!status) status = take(&r, i % 2, i % 4 / 2 ? 1ll << 33 : 5, i < 4 ? none : bad[i % 2]);
    if (status) ok(0, "%s", status_message());
    rows_close(&r);
  }
}

/* A value that is finite, but infinite after the mean is subtracted. */
static void check_overflow(void)
{
  struct rows r;
  int status = rows_open(&r, 40, 8);
  real before = mean[3];
  mean[3] = -3e38;
  if (!status) status = take(&r, 1, 0, (struct planted){7, 3, 3e38f});
  if (status) ok(0, "%s", status_message());
  mean[3] = before;
  rows_close(&r);
}

/* Check the sums of the columns of rank `rank` of `ranks`.  Calls take lengths[0], lengths[1],
 * lengths[2], lengths[0], ... rows. */
static int sums(struct rows *r, int rank, int ranks, const idx *lengths)
{
  struct comm c = {.size = ranks, .rank = rank};
  struct statistics s;
  struct preprocess in = {0};
  real *want, *have;
  gidx most = (TOTAL / ROW_BLOCK + 1) * 2 * (gidx)r->p;
  TRY(arena_alloc(&r->arena, &want, most, sizeof *want));
  TRY(arena_alloc(&r->arena, &have, most, sizeof *have));
  TRY(statistics_init(&s, &r->arena, &c, 0, r->p, shift, 0, TOTAL));
  const struct preprocess_shape shape = {
      .p = r->p, .block = TOTAL, .first = s.first, .count = s.count, .n = TOTAL};
  TRY(preprocess_open(&in, &dev, &shape));
  TRY(preprocess_shift(&in, shift));
  int good = 1;
  gidx at = 0;
  for (idx i = 0, n; at < TOTAL; at += n, i++) {
    n = (idx)imin(lengths[i % 3], TOTAL - at);
    gidx bytes = statistics_blocks(at, n, TOTAL) * 2 * s.count * (gidx)sizeof *want;
    struct buffer rows = {.device = (float *)r->b.device + at * r->p, .bytes = r->b.bytes};
    statistics_rows(&s, (float *)r->b.host + at * r->p, at, n, want);
    TRY(preprocess_sums(&in, &rows, at, n, have));
    good &= !bytes || !memcmp(want, have, (size_t)bytes);
  }
  preprocess_close(&in);
  ok(good, "columns of rank %d of %d, %d columns, turns of %d, %d and %d", rank, ranks, r->p,
     lengths[0], lengths[1], lengths[2]);
  return OK;
}

static void check_sums(idx p)
{
  static const idx lengths[][3] = {{TOTAL, TOTAL, TOTAL},
                                   {ROW_BLOCK, 1, ROW_BLOCK - 1},
                                   {1000, 31, 5000},
                                   {2 * ROW_BLOCK, 7, 9}};
  struct rows r;
  int status = rows_open(&r, TOTAL, p);
  if (!status) status = device_put(&dev, &r.b, 0, r.b.bytes);
  for (int i = 0; i < 4 && !status; i++)
    for (int ranks = 1; ranks <= 3 && !status; ranks += 2)
      status = sums(&r, ranks - 1, ranks, lengths[i]);
  if (status) ok(0, "%s", status_message());
  rows_close(&r);
}

int main(void)
{
  if (!gpu_present()) return done_testing();
  const struct device_options options = how_options(&how_cuda, 4, 1, 0);
  for (idx c = 0; c < MAX_P; c++) mean[c] = 0.3 * c - 50, shift[c] = 0.01 * c - 1.0 / 3;
  if (device_open(&dev, &options)) ok(0, "%s", status_message());
  for (int i = 0; i < 6; i++) {
    static const idx widths[] = {1, 3, 4, 83, 768, MAX_P};
    claim_begin("rows of %d columns: the host's hash, bits and bad value", widths[i]);
    check_take(1, widths[i]);
    check_take(is_small() ? 70 : 9001, widths[i]);
    claim_end();
  }
  claim_begin("a value that becomes infinite less the mean is found");
  check_overflow();
  claim_end();
  claim_begin("sums of columns have the bits of the host's");
  check_sums(83);
  if (!is_small()) check_sums(768);
  claim_end();
  device_close(&dev);
  return done_testing();
}
