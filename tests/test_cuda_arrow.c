/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: solved on a GPU, arrow systems have the bits of the reference.  This holds for every form
 * of the kernels, around all limits of d, k and n, in mixed batches, and in lots of any size.
 * Systems that fail, or that are beyond the kernels, are left to the CPU and counted.  Memory is
 * page-locked or not. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "arrow_data.h"
#include "base/status.h"
#include "device/buffer.h"
#include "device_how.h"

static struct device gpu, cpu; /* long systems are compared with the CPU, which has its own test */
enum { WAYS = 4 };             /* page-locked: 0 nothing, 1 numbers, 2 steps, 3 both */
static gidx launches[WAYS];    /* kernels that jobs launched in each way */

static int devices_open(void)
{
  struct device_options on_gpu = how_options(&how_cuda, 1, 1, 0), on_cpu = on_gpu;
  on_gpu.threads = 4; /* compile kernels in parallel */
  on_cpu.kind = "cpu";
  return device_open(&gpu, &on_gpu) || device_open(&cpu, &on_cpu);
}

/* Solve on the GPU.  Returns how many systems differ from `expected`. */
static int run_differ(struct arrow_item *items, gidx count, const struct arrow_options *o,
                      const struct arrow_item *expected)
{
  int differ = 0;
  for (gidx i = 0; i < count; i++) item_poison(items + i);
  struct arrow_job job = {.options = *o, .items = items, .count = count};
  if (device_arrow_ready(&gpu, &job) || device_arrow(&gpu, &job)) {
    printf("# %s\n", status_message());
    status_clear();
    differ++;
  }
  for (gidx i = 0; i < count; i++) {
    if (item_same(items + i, expected + i)) continue;
    differ++;
    printf("# d = %d, k = %d, n = %lld: status %d, %d expected\n", items[i].system.d,
           items[i].system.k, (long long)items[i].system.n, items[i].outcome.status,
           expected[i].outcome.status);
  }
  return differ;
}

/* Copy the arrays of all systems to `to`, one after another: all H, then all B and so on, as in a
 * file.  Returns how many numbers they have; with `to` NULL nothing is copied. */
static gidx arrays_join(struct arrow_item *items, gidx count, real *to)
{
  gidx at = 0;
  for (int part = 0; part < 5; part++)
    for (gidx i = 0; i < count; i++) {
      struct arrow_system *s = &items[i].system;
      gidx d = s->d, k = s->k;
      const real **parts[] = {&s->h, &s->b, &s->g, &s->c, &s->g_b};
      const gidx counts[] = {s->n * d * d, s->n * d * k, s->n * d, k * k, k};
      if (to) {
        if (counts[part]) memcpy(to + at, *parts[part], (size_t)counts[part] * sizeof *to);
        *parts[part] = to + at;
      }
      at += counts[part];
    }
  return at;
}

/* Let the steps follow one another: those of rows in to_t, those of borders in to_b.  *t, *b <- how
 * many numbers they have.  With to_t NULL the items do not change. */
static void steps_join(struct arrow_item *items, gidx count, real *to_t, real *to_b, gidx *t,
                       gidx *b)
{
  *t = *b = 0;
  for (gidx i = 0; i < count; i++) {
    if (to_t) items[i].step_t = to_t + *t;
    if (to_t) items[i].step_b = to_b + *b;
    *t += items[i].system.n * items[i].system.d;
    *b += items[i].system.k;
  }
}

/* Allocate `reals` numbers on pages of their own, page-locked or not.  A 1 follows the numbers. */
static real *pages_take(gidx reals, int is_pinned)
{
  size_t bytes = ((size_t)(reals + 1) * sizeof(real) + 4095) / 4096 * 4096;
  real *at = aligned_alloc(4096, bytes);
  at[reals] = 1;
  if (is_pinned) host_pin(&gpu, at, (gidx)bytes);
  return at;
}

/* Free the pages of pages_take().  Returns 1 if something was written after the last number. */
static int pages_free(real *at, gidx reals, int is_pinned)
{
  int is_changed = at[reals] != 1;
  if (is_pinned) host_unpin(&gpu, at);
  free(at);
  return is_changed;
}

/* As run_differ(), but the numbers of the systems, the steps, or both are in page-locked memory,
 * from which the GPU fetches numbers and to which it returns steps. */
static int pinned_differ(const struct arrow_item *items, gidx count, const struct arrow_options *o,
                         const struct arrow_item *expected, int numbers, int steps)
{
  gidx n_t, n_b, launched = gpu.counts.kernels;
  struct arrow_item *moved = malloc((size_t)count * sizeof *moved);
  memcpy(moved, items, (size_t)count * sizeof *moved);
  gidx reals = arrays_join(moved, count, NULL) + 1;
  steps_join(moved, count, NULL, NULL, &n_t, &n_b);
  real *all = pages_take(reals, numbers), *t = pages_take(n_t, steps), *b = pages_take(n_b, steps);
  arrays_join(moved, count, all + 1); /* the address is a multiple of 8 bytes, not of 16 */
  steps_join(moved, count, t, b, &n_t, &n_b);
  int differ = run_differ(moved, count, o, expected);
  differ += pages_free(all, reals, numbers);
  differ += pages_free(t, n_t, steps) + pages_free(b, n_b, steps);
  launches[(numbers ? 1 : 0) + (steps ? 2 : 0)] += gpu.counts.kernels - launched;
  free(moved);
  return differ;
}

/* Solve in all ways.  Returns how many systems differ from the reference, or, with by_cpu, from the
 * CPU. */
static int differ_count(struct arrow_item *items, gidx count, const struct arrow_options *o,
                        int by_cpu)
{
  struct arrow_item *expected = malloc((size_t)count * sizeof *expected);
  for (gidx i = 0; i < count; i++)
    expected[i] = by_cpu ? item_copy(items + i) : item_reference(items + i, o);
  struct arrow_job right = {.options = *o, .items = expected, .count = count};
  int differ = by_cpu && device_arrow(&cpu, &right);
  gidx launched = gpu.counts.kernels;
  differ += run_differ(items, count, o, expected);
  launches[0] += gpu.counts.kernels - launched;
  for (int pinned = 1; pinned < WAYS; pinned++)
    differ += pinned_differ(items, count, o, expected, pinned & 1, pinned & 2);
  for (gidx i = 0; i < count; i++) item_free_steps(expected + i);
  free(expected);
  return differ;
}

static void items_free(struct arrow_item *items, gidx count)
{
  for (gidx i = 0; i < count; i++) item_free(items + i);
}

/* Since the last call, did the GPU leave `declined` systems and `retried` systems to the CPU in
 * every way? */
static int is_counted(gidx declined, gidx retried)
{
  static struct device_counts before;
  struct device_counts now = gpu.counts;
  int right = now.declined - before.declined == WAYS * declined &&
              now.retried - before.retried == WAYS * retried;
  if (!right)
    printf("# declined %lld, retried %lld\n", (long long)(now.declined - before.declined),
           (long long)(now.retried - before.retried));
  before = now;
  return right;
}

static void sizes_test(void)
{
  static const gidx rows[] = {0, 1, 7, 31, 32, 33, 64, 65, 200, 256};
  static const idx borders[] = {0, 1, 2, 3, 4, 5, 8, 10, 11, 12, 16, 31, 32, 33, 40};
  static const idx frames[] = {1, 2, 3, 5, 8};
  const struct arrow_options plain = {0}, ridges = {.ridge_t = 0.25, .ridge_b = 3};
  enum { ROWS = LENGTH(rows) };
  claim_begin("d = 1 .. 8, k = 0 .. 40, n = 0 .. 256: the reference's bits");
  for (int f = 0; f < LENGTH(frames); f += is_small() ? 2 : 1)
    for (int b = 0; b < LENGTH(borders); b += is_small() ? 4 : 1) {
      if (!is_small() && frames[f] > 2 && (b + f) % 3) continue; /* compiling takes seconds */
      struct arrow_item items[ROWS];
      for (int i = 0; i < ROWS; i++) items[i] = item_make(frames[f], borders[b], rows[i], i + b, 0);
      int differ = differ_count(items, ROWS, b % 2 ? &plain : &ridges, 0);
      ok(differ == 0 && is_counted(0, 0), "d = %d, k = %d: %d differ", frames[f], borders[b],
         differ);
      items_free(items, ROWS);
    }
  claim_end();
}

/* Borders that several warps factor together.  Some of the systems fail. */
static void borders_test(void)
{
  static const idx borders[] = {31, 9, 12, 16, 32, 33};
  enum { ALL = 100 };
  struct arrow_item items[ALL];
  int count = is_small() ? 20 : ALL;
  claim_begin("large borders, healthy and not: the reference's bits");
  for (int b = 0; b < (is_small() ? 2 : LENGTH(borders)); b++) {
    const struct arrow_options o = {.ridge_t = b % 2, .ridge_b = 1e-3};
    int failed = 0;
    for (int i = 0; i < count; i++)
      items[i] = item_make(2, borders[b], 60 + i * 37 % 250, i, i % 3 ? 0 : i / 3 % 5);
    int differ = differ_count(items, count, &o, 0);
    for (int i = 0; i < count; i++) failed += items[i].outcome.status != ARROW_OK;
    ok(differ == 0 && is_counted(0, failed) && failed > count / 10,
       "k = %d: %d differ, %d of %d fail", borders[b], differ, failed, count);
    items_free(items, count);
  }
  claim_end();
}

/* More systems than are solved at a time.  For d = 2 the second pivot of a row follows its factor,
 * for d = 3 no pivot does.  Numbers of rows are multiples of ARROW_LANES, or not. */
static void pivots_test(void)
{
  static const idx shapes[][2] = {{2, 4}, {2, 1}, {1, 4}, {3, 4}};
  enum { ALL = 1200 };
  struct arrow_item *items = malloc(ALL * sizeof *items);
  int count = is_small() ? 20 : ALL;
  claim_begin("small borders, healthy and not: the reference's bits");
  for (int s = 0; s < (is_small() ? 1 : LENGTH(shapes)); s++) {
    const struct arrow_options o = {.ridge_t = s % 2, .ridge_b = 1e-3};
    idx d = shapes[s][0], k = shapes[s][1];
    int failed = 0, whole = 0;
    for (int i = 0; i < count; i++) {
      gidx n = 256 - i * 7 % (d == 3 ? 160 : 32);
      items[i] = item_make(d, k, n, i, i % 3 ? 0 : i / 3 % 5);
      whole += n % 32 == 0;
    }
    int differ = differ_count(items, count, &o, 0);
    for (int i = 0; i < count; i++) failed += items[i].outcome.status != ARROW_OK;
    ok(differ == 0 && is_counted(0, failed) && failed > count / 10 && whole > 0 && whole < count,
       "d = %d, k = %d: %d differ, %d of %d fail, %d have whole rounds", d, k, differ, failed,
       count, whole);
    items_free(items, count);
  }
  free(items);
  claim_end();
}

/* Borders for which threads hold the factors of their rows in registers, in one, two, four or eight
 * blocks.  Systems have as many rows as these blocks hold, one more, and other numbers of rows. */
static void held_test(void)
{
  static const gidx rows[] = {700, 300, 129, 128, 257, 512, 513, 1024, 1025, 2048, 2049};
  static const idx shapes[][2] = {{2, 8},  {2, 31}, {1, 13}, {2, 32},
                                  {2, 16}, {2, 17}, {1, 30}, {2, 5}};
  const struct arrow_options plain = {0};
  int count = is_small() ? 3 : LENGTH(rows);
  claim_begin("factors in registers, one block to eight: the reference's bits");
  for (int s = 0; s < (is_small() ? 3 : LENGTH(shapes)); s++) {
    struct arrow_item items[LENGTH(rows)];
    for (int i = 0; i < count; i++) items[i] = item_make(shapes[s][0], shapes[s][1], rows[i], i, 0);
    int differ = differ_count(items, count, &plain, 0);
    ok(differ == 0 && is_counted(0, 0), "d = %d, k = %d: %d differ", shapes[s][0], shapes[s][1],
       differ);
    items_free(items, count);
    int failed = 0;
    for (int i = 0; i < count; i++)
      items[i] = item_make(shapes[s][0], shapes[s][1], rows[i], i, 1 + i % 4);
    differ = differ_count(items, count, &plain, 0);
    for (int i = 0; i < count; i++) failed += items[i].outcome.status != ARROW_OK;
    ok(differ == 0 && is_counted(0, failed) && failed > count / 2,
       "d = %d, k = %d: %d differ, %d of %d fail", shapes[s][0], shapes[s][1], differ, failed,
       count);
    items_free(items, count);
  }
  claim_end();
}

/* Numbers of rows for clusters of two, four and eight blocks, the smallest one for three kernels,
 * numbers around the length of a segment, and larger ones. */
static void long_test(void)
{
  static const gidx rows[] = {1000, 5000,  2500,  2049,  600,    1400,
                              4097, 65535, 65536, 65537, 100000, 131072 + 31};
  static const idx shapes[][2] = {{2, 8}, {1, 4}, {2, 32}, {1, 0}, {2, 16}, {3, 11}, {8, 40}};
  const struct arrow_options plain = {0};
  claim_begin("long systems: the bits of the CPU");
  for (int s = 0; s < (is_small() ? 3 : LENGTH(shapes)); s++) {
    int count = is_small() ? 2 : s == LENGTH(shapes) - 1 ? 3 : LENGTH(rows);
    struct arrow_item items[LENGTH(rows)];
    for (int i = 0; i < count; i++) items[i] = item_make(shapes[s][0], shapes[s][1], rows[i], i, 0);
    int differ = differ_count(items, count, &plain, 1);
    ok(differ == 0 && is_counted(0, 0), "d = %d, k = %d, up to %lld rows: %d differ", shapes[s][0],
       shapes[s][1], (long long)rows[count - 1], differ);
    items_free(items, count);
  }
  claim_end();
}

/* Healthy systems beside failing ones of every kind.  There are few shapes, because kernels are
 * compiled for each. */
static void mixed_test(void)
{
  static const idx shapes[][2] = {{2, 8}, {1, 4}, {2, 0}, {2, 41}, {1, 100}};
  enum { ALL = 400 };
  int count = is_small() ? 40 : ALL;
  struct arrow_item *items = malloc(ALL * sizeof *items);
  claim_begin("a mixed batch, failing, escalated and beyond the kernels: the reference's bits");
  for (int escalate = 0; escalate < 2; escalate++) {
    const struct arrow_options o = {.escalate = escalate, .ridge_b = 1e-3};
    int declined = 0, failed = 0, mended = 0, statuses[4] = {0};
    for (int i = 0; i < count; i++) {
      const idx *shape = shapes[i % LENGTH(shapes)];
      gidx n = i % 7 ? i * 37 % 300 : 2000;
      items[i] = item_make(shape[0], shape[1], n, 1000 + i, i / 5 % 5);
    }
    int differ = differ_count(items, count, &o, 0);
    for (int i = 0; i < count; i++) {
      const struct arrow_outcome *out = &items[i].outcome;
      int here = items[i].system.k <= 40;
      declined += !here;
      failed += here && (out->status || out->retries);
      mended += out->status == ARROW_OK && out->retries > 0;
      statuses[out->status]++;
    }
    ok(differ == 0, "%d systems%s: %d differ", count, escalate ? ", escalated" : "", differ);
    ok(is_counted(declined, failed), "%d are beyond the kernels, %d fail in them", declined,
       failed);
    ok(statuses[0] > count / 4 && statuses[3] > 0 && (escalate ? mended > 0 : statuses[1] > 0),
       "%d good, %d bad rows, %d bad borders, %d not finite, %d mended", statuses[0], statuses[1],
       statuses[2], statuses[3], mended);
    items_free(items, count);
  }
  free(items);
  claim_end();
}

/* Systems with zeros, and systems in which some intermediate values overflow or underflow. */
static void extreme_test(void)
{
  static const real scales[] = {0x1p-1060, 0x1p-530, 0x1p-420, 0x1p-200, 0,
                                0x1p300,   0x1p410,  0x1p500,  0x1p600,  0x1p1000};
  enum { SCALES = LENGTH(scales) };
  const struct arrow_options plain = {0}, escalate = {.escalate = 1};
  /* Shapes for a warp, a block, a cluster and three kernels, with and without factors in
   * registers. */
  static const idx shapes[][3] = {{2, 8, 70},   {1, 4, 70},   {2, 8, 300},
                                  {2, 32, 200}, {2, 8, 2000}, {2, 8, 6000},
                                  {2, 4, 200},  {3, 4, 200},  {2, 16, 200}};
  enum { SHAPES = LENGTH(shapes) };
  int differ = 0;
  claim_begin("overflow, underflow and zeros in every part: the reference's bits");
  for (int part = 0; part < 5; part++) {
    struct arrow_item items[SHAPES * SCALES];
    for (int i = 0; i < SHAPES * SCALES; i++) {
      const idx *shape = shapes[i % SHAPES];
      items[i] = item_make(shape[0], shape[1], shape[2], i, 0);
      item_scale(items + i, part, scales[i / SHAPES]);
    }
    differ += differ_count(items, SHAPES * SCALES, &plain, 0);
    differ += differ_count(items, SHAPES * SCALES, &escalate, 0);
    items_free(items, SHAPES * SCALES);
  }
  ok(differ == 0, "%d differ", differ);
  claim_end();
}

/* Check that the kernels solve all systems, with the bits of the reference.  Frees the systems. */
static void solved_check(struct arrow_item *items, int count, const char *what)
{
  const struct arrow_options plain = {0};
  int solved = 0, differ = differ_count(items, count, &plain, 0);
  for (int i = 0; i < count; i++) solved += items[i].outcome.status == ARROW_OK;
  ok(differ == 0 && solved == count && is_counted(0, 0), "%s: %d differ, %d of %d are solved", what,
     differ, solved, count);
  items_free(items, count);
}

/* Systems that the kernels solve although factors are outside 2^-400 .. 2^400, pivots are
 * subnormal, or numbers are zeros of either sign. */
static void unusual_test(void)
{
  static const real roots[] = {0x1p-530, 0x1p-512, 0x1p-420, 0x1p420, 0x1p500};
  static const idx shapes[][3] = {{2, 8, 2000}, {2, 8, 70},  {2, 8, 6000}, {2, 8, 300},
                                  {2, 31, 200}, {2, 4, 200}, {3, 4, 200},  {2, 16, 200},
                                  {1, 4, 2000}, {1, 4, 70},  {1, 4, 6000}, {1, 4, 300}};
  enum { ROOTS = LENGTH(roots), SHAPES = LENGTH(shapes) };
  struct arrow_item items[SHAPES * ROOTS];
  int count = LENGTH(items);
  claim_begin("small and large factors, subnormal pivots, zeros: the reference's bits");
  for (int i = 0; i < count; i++) {
    real root = roots[i / SHAPES];
    const idx *shape = shapes[i % SHAPES];
    items[i] = item_make(shape[0], shape[1], shape[2], i, 0);
    item_scale(items + i, 0, root); /* twice, because root * root may overflow or underflow */
    item_scale(items + i, 0, root);
    item_scale(items + i, 1, root);
    item_scale(items + i, 2, root);
  }
  solved_check(items, count, "factors");
  for (int i = 0; i < 4; i++) { /* large borders: all numbers, or one group of diagonal ones */
    items[i] = item_make(2, i % 2 ? 32 : 17, 200, i, 0);
    idx k = items[i].system.k;
    for (idx j = 0; j < k * k; j++) {
      idx row = j / k, column = j % k;
      real *c = (real *)items[i].system.c + j;
      if (i < 2 || (row == column && row / 4 == 1)) *c *= 0x1p410;
      if (i > 1 && row != column) *c = 0;
    }
  }
  solved_check(items, 4, "large borders");
  for (int i = 0; i < 2; i++) {
    items[i] = item_make(2, 0, i ? 100 : 9000, i, 0);
    for (gidx j = 0; j < items[i].system.n * 2; j++)
      ((real *)items[i].system.g)[j] = j % 3 ? j % 2 ? -0.0 : 0.0 : 1;
  }
  solved_check(items, 2, "zeros of both signs");
  claim_end();
}

/* Make every second column of C equal to the one before it, except for a part of `left`, and make B
 * small.  Then every second pivot is small, because most of it cancels.  If a quotient were not yet
 * rounded, the upper half of the pivot could differ. */
static void border_cancel(struct arrow_item *item, real left)
{
  idx k = item->system.k;
  item_scale(item, 1, 0x1p-60);
  for (idx j = 0; j < k * k; j++) {
    idx row = j / k, column = j % k;
    real size = 3 + row / 2, same = row / 2 == column / 2;
    ((real *)item->system.c)[j] = row == column ? size : same ? size * (1 - left) : 0;
  }
}

static void cancelling_test(void)
{
  static const real left[] = {0x1p-20, 0x1p-40, 0x1p-44, 0x1p-47, 0x1p-49};
  static const idx shapes[][3] = {
      {2, 8, 70}, {2, 8, 300}, {2, 8, 6000}, {2, 31, 200}, {2, 32, 200}};
  enum { LEFT = LENGTH(left), SHAPES = LENGTH(shapes) };
  struct arrow_item items[SHAPES * LEFT];
  int count = LENGTH(items);
  claim_begin("pivots that mostly cancel: the reference's bits");
  for (int i = 0; i < count; i++) {
    const idx *shape = shapes[i % SHAPES];
    items[i] = item_make(shape[0], shape[1], shape[2], i, 0);
    border_cancel(items + i, left[i / SHAPES]);
  }
  solved_check(items, count, "borders");
  claim_end();
}

/* More systems than a lot has room for, and one system that is a lot by itself. */
static void lots_test(void)
{
  const struct arrow_options plain = {0};
  int count = is_small() ? 3 : 3000;
  struct arrow_item *items = malloc((size_t)count * sizeof *items);
  claim_begin("systems in several lots: the bits of the CPU");
  for (int i = 0; i < count; i++)
    items[i] = item_make(2, 8, i == 1 && !is_small() ? 300000 : i * 7919 % 400, i, i == 2);
  int differ = differ_count(items, count, &plain, 1);
  ok(differ == 0, "%d systems: %d differ", count, differ);
  for (int i = 0; i < count; i++) /* as a refit does when it solves systems again */
    items[i].start = (struct arrow_start){{i % 3 * 0.5, i % 3 * 0.25}, i % 3};
  differ = differ_count(items, count, &plain, 1);
  ok(differ == 0, "from a start that is not the first: %d differ", differ);
  items_free(items, count);
  free(items);
  claim_end();
}

int main(void)
{
  if (!gpu_present()) return done_testing();
  if (!ok(devices_open() == OK, "a GPU and a CPU are open")) return done_testing();
  sizes_test();
  borders_test();
  pivots_test();
  held_test();
  long_test();
  mixed_test();
  unusual_test();
  cancelling_test();
  extreme_test();
  lots_test();
  ok(launches[1] > launches[0] && launches[2] > launches[0] && launches[3] > launches[1] &&
         launches[3] > launches[2],
     "%lld kernels, %lld if systems are fetched, %lld if steps are returned, %lld if both are",
     (long long)launches[0], (long long)launches[1], (long long)launches[2],
     (long long)launches[3]);
  ok(gpu.counts.kernels > 0 && gpu.counts.put > 0 && gpu.counts.got > 0,
     "%lld kernels, %lld bytes to and %lld from the GPU", (long long)gpu.counts.kernels,
     (long long)gpu.counts.put, (long long)gpu.counts.got);
  device_close(&gpu);
  device_close(&cpu);
  return done_testing();
}
