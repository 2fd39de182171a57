/* SPDX-License-Identifier: BSD-3-Clause
 * Claim: training over ranks and threads has the bits of the plain loops with dense matrices, even
 * with dead atoms and batches of several chunks.  Every epoch has every row once.  Rows come in
 * windows, which are read ahead; a single rank reads no window that it does not need.  The quality
 * of held-out rows has the bits of the references.
 * RUN: np=1 3, full=1 2 3 */
#include "train/batches.h"
#include "train/step.h"
#include "device_train.h"
#include "train_cases.h"

enum { MOST = 40000 };

/* The order of rows: every epoch has every row once, in another order than the epoch before. */
static void check_shuffle(void)
{
  static const gidx sizes[] = {1, 128, 129, 1000, SHUFFLE_ROWS, SHUFFLE_ROWS + 1, MOST};
  claim_begin("an epoch has every row once, and another order than the one before");
  for (int i = 0; i < LENGTH(sizes); i++) {
    struct arena arena = {0};
    struct shuffle s;
    gidx n = sizes[i], *seen, all = 1, moved = 0, *last;
    arena_alloc(&arena, &seen, n, sizeof *seen);
    arena_alloc(&arena, &last, n, sizeof *last);
    shuffle_init(&s, &arena, n, 9);
    for (gidx epoch = 0; epoch < 2; epoch++)
      for (gidx at = 0; at < n; at++) {
        idx skip, w = 0, count = 0;
        gidx first = 0;
        shuffle_take(&s, epoch, at, &skip);
        idx left = s.at[skip];
        for (shuffle_window(&s, w, &first, &count); left >= count;) {
          left -= count;
          shuffle_window(&s, ++w, &first, &count);
        }
        gidx row = first + left;
        all &= row >= 0 && row < n && ++seen[row] == epoch + 1;
        moved += epoch && last[at] != row;
        last[at] = row;
      }
    ok(all, "%lld rows, each once", (long long)n);
    ok(n < 100 || moved > n / 2, "%lld of %lld rows have another place in the next epoch",
       (long long)moved, (long long)n);
    arena_free(&arena);
  }
  claim_end();
}

/* A source of which one window cannot be read. */
static int rows_break(void *self, gidx first, idx count, float *out)
{
  CHECK(first != 128 * 77, ERR_IO, "the disk is gone at row %lld", (long long)first);
  return rows_make(self, first, count, out);
}

/* Compare batches with those made by hand.  broken: one window cannot be read; all batches that are
 * made before this failure is met are right.  rests: batches_rest() is called after each batch. */
static void batches_check(struct comm *c, gidx n, idx batch, int broken, int rests)
{
  enum { P = 3, SCALE = -2 };
  struct made made = {.n = n, .p = P};
  struct row_source rows = {
      .n = n, .p = P, .name = "rows", .self = &made, .read = broken ? rows_break : rows_make};
  struct batches b = {.c = c, .rows = &rows, .scale = SCALE, .last_epoch = 1, .last_row = n - 1};
  struct device device;
  const struct device_options options = {
      .p = P, .d = 1, .threads = 1, .variant = "auto", .kind = "cpu"};
  struct buffer x = {0};
  struct shuffle order;
  struct arena arena = {0};
  float *wanted;
  gidx bytes = (gidx)batch * P * (gidx)sizeof *wanted;
  int status = device_open(&device, &options), same = 1;
  if (!status) status = batches_alloc(&b, &arena, 5);
  if (!status) status = batches_open(&b);
  if (!status) status = batches_buffers(&b, &device);
  if (!status) status = buffer_alloc(&device, &x, bytes);
  arena_alloc(&arena, &wanted, (gidx)batch * P, sizeof *wanted);
  shuffle_init(&order, &arena, n, 5);
  for (gidx epoch = 0; epoch < 2 && !status; epoch++)
    for (gidx first = 0; first < n && !status; first += batch) {
      idx count = (idx)imin(batch, n - first);
      status = batches_take(&b, epoch, first, count, &x);
      if (status) break;
      if (rests) batches_rest(&b);
      batch_make(&order, &made, epoch, first, count, SCALE, wanted);
      same &= memcmp(x.host, wanted, (size_t)count * P * sizeof *wanted) == 0;
    }
  const char *text = status_message();
  int told = broken ? status == ERR_IO && strstr(text, "the disk is gone at row 9856") != NULL
                    : status == OK;
  ok(same && told, "%lld rows, batches of %d%s%s: %s", (long long)n, batch,
     broken ? ", one window cannot be read" : "", rests ? ", with rests" : "", text);
  comm_recover(c);
  status_clear();
  batches_close(&b);
  buffer_free(&device, &x);
  device_close(&device);
  arena_free(&arena);
}

static void check_batches(struct comm *c)
{
  claim_begin("batches have the rows of the shuffled order, and a failure to read is reported");
  for (int rests = 0; rests < 2; rests++) {
    batches_check(c, 40000, 7000, 0, rests);
    batches_check(c, 40000, 40000, 0, rests);
    batches_check(c, 100, 64, 0, rests);
    batches_check(c, 40000, 7000, 1, rests);
  }
  claim_end();
}

/* Scaling by powers of two, including those that are not normal numbers, with results that are not
 * normal or overflow. */
static void check_scale(void)
{
  static const float values[] = {0,      -0.0f,    1,    -1.5f,    3.4e38f,         1.1754944e-38f,
                                 1e-40f, 1.4e-45f, 0.1f, 7.0e-42f, 1.17549421e-38f, 16777215};
  claim_begin("rows are scaled as ldexpf() scales them");
  for (int q = -160; q <= 160; q++) {
    float x[LENGTH(values)], wanted[LENGTH(values)];
    memcpy(x, values, sizeof x);
    train_rows_scale(x, LENGTH(x), q);
    for (int i = 0; i < LENGTH(x); i++) wanted[i] = ldexpf(values[i], q);
    ok(memcmp(x, wanted, sizeof x) == 0, "2^%d", q);
  }
  claim_end();
}

/* A score of a kind: 0 normal; 1 of three values; 2 of two neighbouring floats; 3 odd numbers. */
static float score_of(int kind, gidx i)
{
  static const float odd[] = {0, -0.0f, 1e-45f, 1.17549421e-38f, -1, INFINITY, NAN, 0.5f, 3.4e38f};
  uint64_t word = random_bits(4, 1, (uint64_t)i);
  if (kind == 0) return (float)random_normal(4, 2, (uint64_t)i);
  if (kind == 1) return (float)(word % 3);
  if (kind == 2) return 1 + (float)(word % 2) * 1.1920929e-7f;
  return odd[word % LENGTH(odd)];
}

/* Check that the cut that is found by counting digits selects the same codes as sorting. */
static void cut_check(int kind, idx n, idx k, gidx most)
{
  struct arena arena = {0};
  float *scores, *codes, least;
  gidx counts[BATCH_BINS], all = (gidx)n * k, same = 1, left;
  struct batch_cut cut = batch_cut_begin(most);
  arena_alloc(&arena, &scores, all, sizeof *scores);
  arena_alloc(&arena, &codes, all, sizeof *codes);
  for (gidx i = 0; i < all; i++) scores[i] = score_of(kind, i);
  int status = batch_select_reference(scores, n, k, most, codes, &least);
  for (int digits = 0; cut.digits < BATCH_DIGITS && digits < 4; digits++) {
    memset(counts, 0, sizeof counts);
    for (gidx i = 0; i < all; i++) {
      int bin = batch_digit(&cut, batch_key(scores[i]));
      if (bin >= 0) counts[bin]++;
    }
    batch_cut_narrow(&cut, counts);
  }
  left = cut.left;
  for (gidx i = 0; i < all; i++) {
    int32_t key = batch_key(scores[i]);
    int is_code = key && (key > cut.key || (key == cut.key && left-- > 0));
    same &= is_code == (codes[i] != 0);
  }
  float value = most > 0 ? batch_cut_value(&cut) : 0;
  ok(!status && same && cut.digits == BATCH_DIGITS && (most == 0 || value == least),
     "kind %d, %d x %d, the first %lld: %g, not %g", kind, n, k, (long long)most, value, least);
  arena_free(&arena);
}

static void check_cut(void)
{
  static const gidx most[] = {0, 1, 2, 7, 100, 699, 700, 701, 1399, 1400, 2000};
  claim_begin(
      "counting digits selects the codes that sorting selects, with ties, infinities and NaN, too");
  for (int kind = 0; kind < 4; kind++) {
    for (int i = 0; i < LENGTH(most); i++) cut_check(kind, 20, 70, most[i]);
    cut_check(kind, 1, 1, 1);
  }
  claim_end();
}

/* A step with more codes than an exchange can carry is refused before anything is allocated. */
static void check_counts(void)
{
  static const struct {
    idx batch, s, aux;
    int size, code;
  } cases[] = {{1 << 24, 127, 255, 2, OK},
               {1 << 24, 256, 0, 2, ERR_INPUT},
               {1 << 24, 1, 256, 2, ERR_INPUT},
               {1 << 24, 256, 0, 3, OK},
               {1 << 24, 256, 0, 1, OK}};
  claim_begin("more codes than ranks can exchange are refused");
  for (int i = 0; i < LENGTH(cases); i++) {
    struct comm c = {.size = cases[i].size};
    const struct train_sizes sizes = {.k = 300, .p = 2, .s = cases[i].s, .aux = cases[i].aux};
    struct device dry = {.is_dry = 1};
    struct train_state state = {0};
    struct stepper s = {
        .sizes = &sizes, .c = &c, .device = &dry, .state = &state, .batch = cases[i].batch};
    struct device_options options = {.p = 2, .d = 1, .threads = 1, .variant = "auto"};
    gidx forms;
    device_open_dry(&dry, &options, &forms);
    int code = stepper_open(&s);
    ok(code == cases[i].code, "%d rows, %d and %d codes, %d ranks: %s", cases[i].batch, cases[i].s,
       cases[i].aux, cases[i].size, status_message());
    ok(code == OK || strstr(status_message(), "lower --batch"), "%s", status_message());
    status_clear();
    arena_free(&s.arena);
  }
  claim_end();
}

static const struct how how_cpu = {.kind = "cpu", .variant = "auto", .threads = 3};

int main(void)
{
  struct comm c;
  if (comm_open(&c)) return 1;
  tap_rank = c.rank;
  train_device = "cpu";
  if (c.size == 1) check_shuffle();
  if (c.size == 1) check_counts();
  if (c.size == 1) check_scale();
  if (c.size == 1) check_cut();
  check_batches(&c);
  if (c.size == 1) check_train_operations(&how_cpu);
  check_reference(&c);
  if (c.size == 1 || is_full()) check_resumed(&c, 0);
  if (c.size > 1 || is_full()) check_resumed(&c, 2.5);
  check_judge(&c);
  comm_close(&c);
  return done_testing();
}
