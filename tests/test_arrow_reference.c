/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: device_arrow() gives the bits of the reference, for d to 8 and k to 40, for n around
 * limits, and with the narrow and the wide variant on one to three threads.  Systems are alone or
 * in a mixed batch; they are healthy, indefinite or not finite.  Steps have componentwise backward
 * errors of a few roundings.
 * RUN: np=1 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "arrow_data.h"
#include "base/status.h"
#include "device/device.h"
#include "device_how.h"
#include "tap.h"
#include "variants.h"

enum { MAX_DEVICES = 6 };
static struct device devices[MAX_DEVICES];
static int n_devices;

static void devices_open(void)
{
  static const struct {
    const char *variant;
    int threads;
  } wanted[] = {{NARROW_VARIANT, 1}, {NARROW_VARIANT, 3}, {WIDE_VARIANT, 1}, {WIDE_VARIANT, 2}};
  for (int i = 0; i < LENGTH(wanted); i++) {
    struct device_options options = {
        .p = 1, .d = 1, .threads = wanted[i].threads, .variant = wanted[i].variant};
    if (device_open(&devices[n_devices], &options) == OK)
      n_devices++;
    else
      status_clear();
  }
}

/* Solve by the reference and on every device.  Returns the number of devices that differ. */
static int differ_count(struct arrow_item *items, gidx count, const struct arrow_options *o)
{
  int differ = 0;
  struct arrow_item *expected = malloc((size_t)count * sizeof *expected);
  for (gidx i = 0; i < count; i++) expected[i] = item_reference(items + i, o);
  for (int v = 0; v < n_devices; v++) {
    struct arrow_job job = {.options = *o, .items = items, .count = count};
    for (gidx i = 0; i < count; i++) item_poison(items + i);
    int same = device_arrow(&devices[v], &job) == OK;
    for (gidx i = 0; i < count; i++) same = same && item_same(items + i, expected + i);
    differ += !same;
  }
  for (gidx i = 0; i < count; i++) item_free_steps(expected + i);
  free(expected);
  return differ;
}

/* The largest backward error, as a multiple of a rounding.  A row of a block has up to d + k =
 * 48 terms; a row of the border has terms of all blocks, in 32 lanes.  Errors grow like the root of
 * the number of terms.  The largest backward error that was measured is 6 roundings. */
static const real MAX_BACKWARD = 32 * 0x1p-53;

/* The backward error of the steps is within the bound.  With relative errors of 1e-12 in the steps
 * it is not. */
static void backward_test(const struct arrow_item *item, const struct arrow_options *o)
{
  const struct arrow_system *s = &item->system;
  if (s->n + s->k == 0) return;
  real error = item_backward(item, o, 0), off = item_backward(item, o, 1e-12);
  ok(error <= MAX_BACKWARD, "d = %d, k = %d, n = %lld: backward error %.2g", s->d, s->k,
     (long long)s->n, error);
  ok(off > 10 * MAX_BACKWARD, "d = %d, k = %d, n = %lld: off by 1e-12 it is %.2g", s->d, s->k,
     (long long)s->n, off);
}

static void sizes_test(void)
{
  static const gidx rows[] = {0, 1, 2, 7, 31, 32, 33, 255, 257, 1000};
  const struct arrow_options plain = {0}, ridges = {.ridge_t = 0.25, .ridge_b = 3};
  claim_begin(
      "d = 1 .. 8, k = 0 .. 40, n up to 1000: the reference's bits, with small backward errors");
  for (idx d = 1; d <= 8; d++) {
    int differ = 0, failed = 0;
    for (idx k = 0; k <= 40; k += is_small() ? 3 : 1) {
      gidx n = rows[(k * 7 + d) % LENGTH(rows)];
      struct arrow_item items[2] = {item_make(d, k, n, k, 0), item_make(d, k, rows[k % 10], 77, 0)};
      differ += differ_count(items, 2, k % 2 ? &plain : &ridges);
      failed += items[0].outcome.status || items[1].outcome.status;
      for (int i = 0; i < 2; i++) backward_test(items + i, k % 2 ? &plain : &ridges);
      for (int i = 0; i < 2; i++) item_free(items + i);
    }
    ok(differ == 0 && failed == 0, "d = %d: %d differ, %d are not solved", d, differ, failed);
  }
  claim_end();
}

static void long_test(void)
{
  static const gidx rows[] = {65535, 65536, 65537, 131073 + 31};
  static const idx shapes[][2] = {{2, 8}, {1, 3}, {3, 5}, {2, 0}};
  const struct arrow_options plain = {0};
  claim_begin("long systems: the reference's bits, with small backward errors");
  for (int i = 0; i < LENGTH(rows); i += 1 + is_small()) {
    struct arrow_item item = item_make(shapes[i][0], shapes[i][1], rows[i], 5, 0);
    ok(differ_count(&item, 1, &plain) == 0 && item.outcome.status == ARROW_OK, "%lld rows",
       (long long)rows[i]);
    backward_test(&item, &plain);
    item_free(&item);
  }
  claim_end();
}

/* A batch of mixed shapes, healthy ones beside failing ones of every kind. */
static struct arrow_item *mixed_make(gidx count)
{
  struct arrow_item *items = malloc((size_t)count * sizeof *items);
  for (gidx i = 0; i < count; i++) {
    idx d = (idx)(i % 8 + 1), k = (idx)(i * 11 % 33);
    items[i] = item_make(d, k, i * 37 % 300, 1000 + (int)i, (int)(i % 5));
  }
  return items;
}

static void mixed_test(void)
{
  enum { COUNT = 200 };
  int counts[4] = {0}, alone_differ = 0, escalated = 0;
  for (int escalate = 0; escalate < 2; escalate++) {
    struct arrow_item *items = mixed_make(COUNT);
    const struct arrow_options o = {.escalate = escalate, .ridge_b = 1e-3};
    ok(differ_count(items, COUNT, &o) == 0, "a mixed batch%s: the reference's bits",
       escalate ? ", escalated" : "");
    for (gidx i = 0; i < COUNT; i++) {
      struct arrow_item alone = item_copy(items + i);
      struct arrow_job job = {.options = o, .items = &alone, .count = 1};
      device_arrow(&devices[i % n_devices], &job);
      alone_differ += !item_same(&alone, items + i);
      counts[items[i].outcome.status] += !escalate;
      escalated += items[i].outcome.status == ARROW_OK && items[i].outcome.retries > 0;
      item_free_steps(&alone);
    }
    for (gidx i = 0; i < COUNT; i++) item_free(items + i);
    free(items);
  }
  ok(alone_differ == 0, "a system alone has the bits that it has in a batch");
  ok(counts[0] > 50 && counts[1] > 20 && counts[2] > 10 && counts[3] > 20 && escalated > 30,
     "the batch had %d good, %d bad rows, %d bad borders, %d not finite; %d mended", counts[0],
     counts[1], counts[2], counts[3], escalated);
}

/* Long systems with each kind of trouble: status and row of the failure are the reference's. */
static void long_failures_test(void)
{
  const struct arrow_options plain = {0}, escalate = {.escalate = 1};
  int differ = 0;
  for (int kind = 1; kind <= 4; kind++) {
    struct arrow_item item = item_make(2, 3, is_small() ? 9001 : 70001, kind, kind);
    differ += differ_count(&item, 1, &plain) + differ_count(&item, 1, &escalate);
    item_free(&item);
  }
  ok(differ == 0, "long systems that fail: the reference's outcome");
}

/* Systems in which some intermediate values overflow or underflow. */
static void extreme_test(void)
{
  static const real scales[] = {0x1p-1060, 0x1p-530, 0x1p-200, 0x1p300, 0x1p500, 0x1p600, 0x1p1000};
  const struct arrow_options plain = {0}, escalate = {.escalate = 1};
  int differ = 0;
  for (int part = 0; part < 5; part++)
    for (int i = 0; i < LENGTH(scales); i++) {
      struct arrow_item item = item_make(2, 5, 70, i, 0);
      item_scale(&item, part, scales[i]);
      differ += differ_count(&item, 1, &plain) + differ_count(&item, 1, &escalate);
      item_free(&item);
    }
  ok(differ == 0, "overflow and underflow in every part: the reference's bits");
}

/* Values that are not finite in every part of a system, with a border and without. */
static void not_finite_test(void)
{
  const struct arrow_options plain = {0};
  int differ = 0, found = 0, tried = 0;
  for (int number = 0; number < 15; number++)
    for (int k = 0; k <= 3; k += 3)
      for (int d = 1; d <= 3; d += 2) {
        struct arrow_item item = item_make(d, k, 45, number, 3);
        differ += differ_count(&item, 1, &plain);
        found += item.outcome.status == ARROW_NOT_FINITE;
        tried++;
        item_free(&item);
      }
  ok(differ == 0 && found == tried, "NaN and infinities in every part: %d of %d found", found,
     tried);
}

/* An ill-conditioned system.  Row blocks H have a condition of 1e10, couplings B are in the range
 * of H, and little of the border C is left after elimination: H = v v' + 1e-10 I, B = H z, C = sum
 * z' B + 1e-4 I. */
static struct arrow_item ill_make(idx d, idx k, gidx n)
{
  struct arrow_item item = item_make(d, k, n, 11, 0);
  real *h = (real *)item.system.h, *b = (real *)item.system.b, *c = (real *)item.system.c;
  real *v = reals_make(n * d, 12, 0), *z = reals_make(n * d * k, 12, 1);
  for (gidx i = 0; i < (gidx)k * k; i++) c[i] = i % (k + 1) ? 0 : 1e-4;
  for (gidx i = 0; i < n; i++) {
    real *hi = h + i * d * d, *bi = b + i * d * k, *vi = v + i * d, *zi = z + i * d * k;
    for (gidx m = 0; m < d * d; m++) hi[m] = vi[m / d] * vi[m % d] + (m % (d + 1) ? 0 : 1e-10);
    for (gidx m = 0; m < (gidx)d * k; m++)
      for (gidx l = bi[m] = 0; l < d; l++) bi[m] += hi[m % d * d + l] * zi[m / d * d + l];
    for (gidx j = 0; j < (gidx)k * k; j++)
      for (gidx m = 0; m < d; m++) c[j] += zi[j / k * d + m] * bi[j % k * d + m];
  }
  free(v);
  free(z);
  return item;
}

static void ill_test(void)
{
  static const idx shapes[][3] = {{2, 3, 4}, {3, 2, 5}, {4, 4, 30}, {8, 10, 200}, {2, 32, 1000}};
  const struct arrow_options plain = {0};
  claim_begin("ill-conditioned systems: the reference's bits, with small backward errors");
  for (int i = 0; i < LENGTH(shapes); i++) {
    struct arrow_item item = ill_make(shapes[i][0], shapes[i][1], shapes[i][2]);
    ok(differ_count(&item, 1, &plain) == 0 && item.outcome.status == ARROW_OK, "d = %d, k = %d",
       shapes[i][0], shapes[i][1]);
    backward_test(&item, &plain);
    item_free(&item);
  }
  claim_end();
}

static void start_test(void)
{
  const struct arrow_options o = {.escalate = 1, .ridge_t = 0.5};
  int differ = 0;
  for (int kind = 0; kind < 5; kind++) {
    struct arrow_item item = item_make(3, 4, 50, kind, kind);
    item.start = (struct arrow_start){.addition = {1e-7, 1e-5}, .retries = 18};
    differ += differ_count(&item, 1, &o);
    item_free(&item);
  }
  ok(differ == 0, "an escalation that continues from a given start: the reference's bits");
}

int main(void)
{
  devices_open();
  if (n_devices == 0) {
    printf("1..0 # SKIP this processor has no fused multiply-add\n");
    return 0;
  }
  mixed_test(); /* first, when devices have not yet allocated memory for larger systems */
  sizes_test();
  long_test();
  ill_test();
  long_failures_test();
  extreme_test();
  not_finite_test();
  start_test();
  for (int i = 0; i < n_devices; i++) device_close(&devices[i]);
  return done_testing();
}
