/* SPDX-License-Identifier: BSD-3-Clause
 * Checks of single operations of a training step on any device against plain loops: codes of whole
 * batches (N.46), nested widths (N.47), and a bias before the encoder (N.48). */
#ifndef TESTS_DEVICE_TRAIN_H
#define TESTS_DEVICE_TRAIN_H

#include "device/train.h"
#include "model/find.h"
#include "model/train.h"
#include "model/triad.h"
#include "triad_case.h"

/* Scores of a batch: normal numbers; three values; two neighbouring floats; one value; no positive
 * ones; zeros, tiny and huge ones. */
enum { BATCH_NORMAL, BATCH_FEW, BATCH_NEAR, BATCH_EQUAL, BATCH_NONE, BATCH_ODD, BATCH_KINDS };

static float batch_score(int kind, gidx i)
{
  static const float odd[] = {0, -0.0f, 1e-45f, 1.17549421e-38f, -1, 3.4e38f, 0.5f, -3.4e38f};
  uint64_t word = random_bits(6, 1, (uint64_t)i);
  float normal = (float)random_normal(6, 2, (uint64_t)i);
  switch (kind) {
  case BATCH_NORMAL:
    return normal;
  case BATCH_FEW:
    return (float)(word % 3);
  case BATCH_NEAR:
    return 1 + (float)(word % 2) * 1.1920929e-7f;
  case BATCH_EQUAL:
    return 0.75f;
  case BATCH_NONE:
    return word % 5 ? -fabsf(normal) : 0;
  default:
    return odd[word % LENGTH(odd)];
  }
}

/* Rows that equal their scores before these are raised, because the encoder is the identity. */
struct batch_problem {
  int kind;
  idx n, k, aux; /* aux: the most codes of dead atoms per row; 0: no atom is dead */
  gidx most;     /* the most codes of the batch */
  /* Scores are raised by codes (N.51), taken relative to the sizes of rows (N.49), or both. */
  enum { RAISE_NONE, RAISE_CODES, RAISE_SIZES, RAISE_BOTH } raise;
  float *rows, *encoder, *bias;  /* [n][k], [k][k], [k] */
  float *scores;                 /* [n][k] scores of the rows, raised as `raise` says */
  struct train_entries codes_of; /* codes by which scores are raised */
  unsigned char *is_dead;        /* [k] */
  struct train_entries live, dead;
  float *codes; /* [n][k] the reference's */
  struct arena arena;
};

static int entries_alloc(struct arena *a, struct train_entries *e, idx n, gidx room)
{
  TRY(arena_alloc(a, &e->start, (gidx)n + 1, sizeof *e->start));
  TRY(arena_alloc(a, &e->index, room + 1, sizeof *e->index));
  return arena_alloc(a, &e->value, room + 1, sizeof *e->value);
}

/* Draw the codes of n rows, by ascending atom.  Some rows have none. */
static int nested_entries(struct arena *a, struct train_entries *e, idx n, idx k)
{
  TRY(entries_alloc(a, e, n, (gidx)n * k));
  e->most = k;
  for (idx i = 0; i < n; i++) {
    gidx at = e->start[i];
    for (idx j = 0; j < k; j++)
      if (random_below(6, 5, (uint64_t)((gidx)i * k + j), 9) < (uint64_t)(i % 4)) {
        e->index[at] = j;
        e->value[at] = fabsf((float)random_normal(6, 4, (uint64_t)at));
        at++;
      }
    e->start[i + 1] = at;
  }
  return OK;
}

/* Raise the scores of a row by the reference, as part_raise() does on the device. */
static void scores_raise(struct batch_problem *b, idx row)
{
  const struct train_entries *e = &b->codes_of;
  struct find_raise to = {.k = b->k,
                          .square = train_square(b->rows + (gidx)row * b->k, b->k),
                          .relative = b->raise != RAISE_CODES,
                          .floor = 0.5};
  if (b->raise != RAISE_SIZES) {
    to.n = (idx)(e->start[row + 1] - e->start[row]);
    to.index = e->index + e->start[row];
    to.code = e->value + e->start[row];
  }
  find_raise(&to, b->scores + (gidx)row * b->k);
}

static int batch_make_problem(struct batch_problem *b)
{
  struct arena *a = &b->arena;
  gidx all = (gidx)b->n * b->k;
  TRY(arena_alloc(a, &b->rows, all + 1, sizeof *b->rows));
  TRY(arena_alloc(a, &b->scores, all + 1, sizeof *b->scores));
  TRY(nested_entries(a, &b->codes_of, b->n, b->k));
  TRY(arena_alloc(a, &b->codes, all + 1, sizeof *b->codes));
  TRY(arena_alloc(a, &b->encoder, (gidx)b->k * b->k, sizeof *b->encoder));
  TRY(arena_alloc(a, &b->bias, b->k, sizeof *b->bias));
  TRY(arena_alloc(a, &b->is_dead, b->k, 1));
  TRY(entries_alloc(a, &b->live, b->n, imin(all, b->most)));
  TRY(entries_alloc(a, &b->dead, b->n, (gidx)b->n * b->aux));
  for (gidx i = 0; i < all; i++) b->scores[i] = b->rows[i] = batch_score(b->kind, i);
  for (idx i = 0; i < b->n && b->raise; i++) scores_raise(b, i);
  for (idx i = 0; i < b->k; i++) b->encoder[(gidx)i * b->k + i] = 1;
  for (idx i = 0; i < b->k; i++) b->is_dead[i] = random_below(6, 3, (uint64_t)i, 3) == 0;
  return OK;
}

/* Rows first .. first + n - 1, as one of several ranks has them, and their arrays on the device. */
struct batch_part {
  struct batch_problem *of;
  idx first, n;
  struct train_codes_job job;
  struct triad_side side;
  struct train_entries live, dead; /* results on the host */
  gidx tied;                       /* scores that equal the cut */
};

static void entries_put(struct triad_side *s, const struct train_entries *host, idx n, gidx room,
                        struct train_entries *on)
{
  on->most = host->most;
  on->start = side_put(s, host->start, ((gidx)n + 1) * (gidx)sizeof *host->start);
  on->index = side_put(s, host->index, (room + 1) * (gidx)sizeof *host->index);
  on->value = side_put(s, host->value, (room + 1) * (gidx)sizeof *host->value);
}

/* Change the scores of a part on the device as `raise` of its problem says. */
static int part_raise(struct batch_part *p, struct device *dev)
{
  const struct train_entries *e = &p->of->codes_of;
  struct triad_side s = {.dev = dev};
  struct train_entries own = {.most = e->most}, on;
  const struct train_raise raise = {.entries = p->of->raise == RAISE_SIZES ? NULL : &on,
                                    .relative = p->of->raise != RAISE_CODES,
                                    .floor = 0.5};
  gidx first = e->start[p->first];
  TRY(entries_alloc(&p->of->arena, &own, p->n, 0));
  for (idx i = 0; i <= p->n; i++) own.start[i] = e->start[p->first + i] - first;
  own.index = e->index + first;
  own.value = e->value + first;
  entries_put(&s, &own, p->n, own.start[p->n], &on);
  if (!s.status) s.status = device_train_raise(dev, &p->job, &raise);
  return side_end(&s, 0);
}

static int part_open(struct batch_part *p, struct device *dev)
{
  const struct batch_problem *b = p->of;
  struct triad_side *s = &p->side;
  gidx item = (gidx)sizeof(float), room = imin((gidx)p->n * b->k, b->most);
  s->dev = dev;
  TRY(entries_alloc(&p->of->arena, &p->live, p->n, room));
  TRY(entries_alloc(&p->of->arena, &p->dead, p->n, (gidx)p->n * b->aux));
  p->live.most = (idx)imin(b->k, imax(b->most, 1));
  p->dead.most = b->aux;
  p->job = (struct train_codes_job){.n = p->n, .p = b->k, .k = b->k};
  p->job.x = side_put(s, b->rows + (gidx)p->first * b->k, ((gidx)p->n * b->k + 1) * item);
  p->job.encoder = side_put(s, b->encoder, (gidx)b->k * b->k * item);
  p->job.bias = side_put(s, b->bias, b->k * item);
  p->job.is_dead = side_put(s, b->aux ? b->is_dead : NULL, b->k);
  p->job.live.most = p->live.most;
  p->job.dead.most = p->dead.most;
  p->job.work_bytes = device_train_batch_bytes(dev, &p->job);
  p->job.work = side_work(s, imax(p->job.work_bytes, 1));
  entries_put(s, &p->live, p->n, room, &p->job.live);
  entries_put(s, &p->dead, p->n, (gidx)p->n * b->aux, &p->job.dead);
  if (!s->status) s->status = device_train_scores(dev, &p->job);
  return !s->status && b->raise ? part_raise(p, dev) : s->status;
}

/* Find the cut of the scores of all parts, digit by digit, and cut each part there.  Scores that
 * equal the cut are taken from the first parts first. */
static int parts_cut(struct device *dev, struct batch_part *parts, int count, struct batch_cut *cut)
{
  *cut = batch_cut_begin(parts[0].of->most);
  while (cut->digits < BATCH_DIGITS) {
    gidx own[4][BATCH_BINS], all[BATCH_BINS] = {0};
    int last = cut->digits == BATCH_DIGITS - 1;
    for (int i = 0; i < count; i++) {
      TRY(device_train_count(dev, &parts[i].job, cut, own[i]));
      for (int bin = 0; bin < BATCH_BINS; bin++) all[bin] += own[i][bin];
    }
    batch_cut_narrow(cut, all);
    for (int i = 0; i < count && last; i++)
      parts[i].tied = cut->key > 0 ? own[i][cut->key & 1023] : 0;
  }
  gidx left = cut->left;
  for (int i = 0; i < count; i++) {
    gidx ties = imin(left, parts[i].tied);
    left -= ties;
    TRY(device_train_cut(dev, &parts[i].job, cut, ties));
  }
  return OK;
}

/* Are the entries of a row the positive numbers of dense[k]? */
static int row_entries_same(const struct train_entries *e, idx row, const float *dense, idx k)
{
  gidx at = e->start[row];
  for (idx a = 0; a < k; a++) {
    if (!(dense[a] > 0)) continue;
    if (at >= e->start[row + 1] || e->index[at] != a || e->value[at] != dense[a]) return 0;
    at++;
  }
  return at == e->start[row + 1];
}

/* Are the codes of dead atoms of a row those of train_select()?  dense, atoms and codes are work
 * space. */
static int row_dead_same(const struct batch_part *p, idx row, float *dense, idx *atoms,
                         float *codes)
{
  const struct batch_problem *b = p->of;
  const float *scores = b->scores + ((gidx)p->first + row) * b->k;
  for (idx a = 0; a < b->k; a++) dense[a] = b->is_dead[a] ? scores[a] : 0;
  idx n = train_select(dense, b->k, b->aux, atoms, codes);
  memset(dense, 0, (size_t)b->k * sizeof *dense);
  for (idx i = 0; i < n; i++) dense[atoms[i]] = codes[i];
  return row_entries_same(&p->dead, row, dense, b->k);
}

static int part_same(const struct batch_part *p, float *dense, idx *atoms, float *codes)
{
  const struct batch_problem *b = p->of;
  int same = p->live.start[0] == 0 && (b->aux == 0 || p->dead.start[0] == 0);
  for (idx i = 0; i < p->n; i++) {
    same &= row_entries_same(&p->live, i, b->codes + ((gidx)p->first + i) * b->k, b->k);
    if (b->aux) same &= row_dead_same(p, i, dense, atoms, codes);
  }
  return same;
}

/* Check a batch in `count` parts, some of which may be empty. */
static void batch_check(struct device *dev, struct batch_problem *b, int count)
{
  struct batch_part parts[4] = {{0}};
  struct batch_cut cut;
  idx *atoms = NULL;
  float least, *dense = NULL, *codes = NULL;
  int status = batch_make_problem(b), same = 1;
  if (!status) status = arena_alloc(&b->arena, &atoms, b->k, sizeof *atoms);
  if (!status) status = arena_alloc(&b->arena, &dense, b->k, sizeof *dense);
  if (!status) status = arena_alloc(&b->arena, &codes, b->k, sizeof *codes);
  if (!status) status = batch_select_reference(b->scores, b->n, b->k, b->most, b->codes, &least);
  for (int i = 0; i < count && !status; i++) {
    idx first = (idx)((gidx)b->n * i * i / ((gidx)count * count));
    idx end = (idx)((gidx)b->n * (i + 1) * (i + 1) / ((gidx)count * count));
    parts[i] = (struct batch_part){.of = b, .first = first, .n = end - first};
    status = part_open(&parts[i], dev);
  }
  if (!status) status = parts_cut(dev, parts, count, &cut);
  for (int i = 0; i < count; i++) {
    int end = side_end(&parts[i].side, status ? 0 : 6);
    if (!status) status = end;
    if (!status) same &= part_same(&parts[i], dense, atoms, codes);
  }
  ok(!status && same && (b->most == 0 || batch_cut_value(&cut) == least),
     "kind %d, raised %d, %d rows in %d parts, %d atoms, the first %lld, %d of the dead: %s",
     b->kind, b->raise, b->n, count, b->k, (long long)b->most, b->aux, status_message());
  status_clear();
  arena_free(&b->arena);
}

static void check_batch_codes(struct device *dev)
{
  static const struct {
    idx n, k;
  } shapes[] = {{1, 1}, {1, 130}, {7, 3}, {37, 129}, {300, 64}, {1030, 40}};
  for (int kind = 0; kind < BATCH_KINDS; kind++)
    for (int i = 0; i < LENGTH(shapes) - 2 * is_small(); i++) {
      gidx all = (gidx)shapes[i].n * shapes[i].k;
      const gidx most[] = {0, 1, all / 7, all / 2, all - 1, all, all + 5};
      for (int m = 0; m < LENGTH(most); m++) {
        struct batch_problem b = {.kind = kind, .n = shapes[i].n, .k = shapes[i].k};
        b.most = most[m];
        b.raise = (m + kind) % 4;
        b.aux = (idx)imin(m % 3 * 4, b.k);
        batch_check(dev, &b, 1 + m % 4);
      }
    }
}

static int blocks_same(const struct train_blocks_job *j)
{
  const struct train_entries *e = j->entries;
  int blocks = nested_blocks(j->nested), same = j->start[(gidx)j->n * blocks] == e->start[j->n];
  for (idx i = 0; i < j->n; i++)
    for (int b = 0; b < blocks; b++) {
      idx first, end;
      gidx at = e->start[i];
      nested_block(j->nested, j->k, b, &first, &end);
      while (at < e->start[i + 1] && e->index[at] < first) at++;
      same &= j->start[(gidx)i * blocks + b] == at;
    }
  return same;
}

static void blocks_check(struct device *dev, idx n, idx k, const char *widths)
{
  struct triad_side s = {.dev = dev};
  struct arena arena = {0};
  struct nested nested;
  struct train_entries entries = {0}, on = {.most = k};
  struct train_blocks_job wanted = {.entries = &entries, .nested = &nested, .n = n, .k = k}, job;
  int status = nested_read(widths, k, &nested);
  gidx starts = (gidx)n * nested_blocks(&nested) + 1;
  if (!status) status = nested_entries(&arena, &entries, n, k);
  if (!status) status = arena_alloc(&arena, &wanted.start, starts, sizeof(gidx));
  if (!status) {
    entries_put(&s, &entries, n, entries.start[n], &on);
    job = wanted;
    job.entries = &on;
    job.start = side_put(&s, wanted.start, starts * (gidx)sizeof(gidx));
    if (!s.status) s.status = device_train_blocks(dev, &job);
    status = side_end(&s, 1);
  }
  ok(!status && blocks_same(&wanted), "blocks %s of %d rows: %s", widths, n, status_message());
  status_clear();
  arena_free(&arena);
}

/* Errors of nested widths (N.47).  z[n][blocks][p] begins with the contribution of each block of
 * atoms to each row.  It becomes the error of each width, and then for each block the sum of the
 * errors of the widths that contain the block.  one[n][p]: these sums of a single block.  got and
 * got_...: the same arrays of the device. */
struct widths_case {
  gidx n;
  idx p;
  int blocks, has_left;
  float *z, *x, *left, *got, *got_left, *one, *got_one;
  real *squares, *got_squares;
  struct arena arena;
};

static int widths_make(struct widths_case *w)
{
  gidx rows = w->n * w->p, all = rows * w->blocks;
  TRY(arena_alloc(&w->arena, &w->z, all, sizeof(float)));
  TRY(arena_alloc(&w->arena, &w->got, all, sizeof(float)));
  TRY(arena_alloc(&w->arena, &w->x, rows, sizeof(float)));
  TRY(arena_alloc(&w->arena, &w->left, rows, sizeof(float)));
  TRY(arena_alloc(&w->arena, &w->got_left, rows, sizeof(float)));
  TRY(arena_alloc(&w->arena, &w->one, rows, sizeof(float)));
  TRY(arena_alloc(&w->arena, &w->got_one, rows, sizeof(float)));
  TRY(arena_alloc(&w->arena, &w->squares, 2 * w->n, sizeof(real)));
  TRY(arena_alloc(&w->arena, &w->got_squares, 2 * w->n, sizeof(real)));
  for (gidx i = 0; i < all; i++) w->got[i] = w->z[i] = (float)random_normal(6, 7, (uint64_t)i);
  for (gidx i = 0; i < rows; i++) {
    w->x[i] = (float)random_normal(6, 8, (uint64_t)i);
    w->got_left[i] = w->left[i] = (float)random_normal(6, 9, (uint64_t)i);
  }
  return OK;
}

/* Compute z, squares, left and one by plain loops; `one` is copied from the sums of `block`. */
static void widths_want(struct widths_case *w, int block)
{
  for (gidx i = 0; i < w->n; i++) {
    float *row = w->z + i * w->blocks * w->p, *last = row + (gidx)(w->blocks - 1) * w->p;
    nested_errors(row, w->x + i * w->p, w->blocks, w->p);
    w->squares[2 * i] = train_square(last, w->p);
    w->squares[2 * i + 1] = train_square(w->x + i * w->p, w->p);
    for (idx c = 0; c < w->p && w->has_left; c++) w->left[i * w->p + c] += last[c];
    nested_suffix(row, w->blocks, w->p);
    memcpy(w->one + i * w->p, row + (gidx)block * w->p, (size_t)w->p * sizeof *row);
  }
}

static int widths_run(struct widths_case *w, struct device *dev, int block)
{
  struct triad_side s = {.dev = dev};
  gidx rows = w->n * w->p * (gidx)sizeof(float);
  struct train_errors_job job = {.n = (idx)w->n, .p = w->p, .blocks = w->blocks};
  job.x = side_put(&s, w->x, rows);
  job.error = side_put(&s, w->got, rows * w->blocks);
  float *left = side_put(&s, w->got_left, rows);
  job.left = w->has_left ? left : NULL;
  job.squares = side_put(&s, w->got_squares, 2 * w->n * (gidx)sizeof(real));
  float *one = side_put(&s, w->got_one, rows);
  if (!s.status) s.status = device_train_errors(dev, &job);
  if (!s.status) s.status = device_train_suffix(dev, job.error, w->n, w->blocks, w->p);
  if (!s.status)
    s.status = device_train_block_get(dev, job.error, w->n, w->blocks, block, w->p, one);
  return side_end(&s, 4);
}

static void widths_check(struct device *dev, gidx n, idx p, int blocks, int has_left)
{
  struct widths_case w = {.n = n, .p = p, .blocks = blocks, .has_left = has_left};
  size_t rows = (size_t)n * (size_t)p * sizeof(float);
  int status = widths_make(&w), block = blocks / 2;
  if (!status) widths_want(&w, block);
  if (!status) status = widths_run(&w, dev, block);
  int same = !status && memcmp(w.z, w.got, rows * (size_t)blocks) == 0 &&
             memcmp(w.left, w.got_left, rows) == 0 && memcmp(w.one, w.got_one, rows) == 0 &&
             memcmp(w.squares, w.got_squares, 2 * (size_t)n * sizeof(real)) == 0;
  ok(same, "%d widths of %lld rows of %d, %s of the dead: %s", blocks, (long long)n, p,
     has_left ? "some" : "none", status_message());
  status_clear();
  arena_free(&w.arena);
}

static void check_widths(struct device *dev)
{
  static const struct {
    gidx n;
    idx p;
    int blocks;
  } shapes[] = {{1, 1, 2}, {33, 70, 3}, {700, 24, 1}, {64, 32, 16}, {130, 385, 4}};
  blocks_check(dev, 1, 1, "1");
  blocks_check(dev, 500, 40, "3,17,40");
  blocks_check(dev, 70, 24, "1,3,5,7,9,11,13,15,17,18,19,20,21,22,23,24");
  blocks_check(dev, 300, 1000, "1,999,1000");
  for (int i = 0; i < LENGTH(shapes); i++)
    for (int left = 0; left < 2; left++)
      widths_check(dev, shapes[i].n, shapes[i].p, shapes[i].blocks, left);
}

/* Subtract an offset from rows[n] at a stride, and add up the rows like the gradient of a matrix
 * whose only input is 1. */
static void offset_check(struct device *dev, idx n, idx p, gidx stride, enum triad_values kind)
{
  struct triad_side s = {.dev = dev};
  struct triad_case c = {0};
  gidx item = (gidx)sizeof(float), all = (gidx)n * stride;
  float *rows = triad_array(&c, all, 1, kind), *moved = triad_array(&c, all, 1, kind);
  float *offset = triad_array(&c, stride, 2, kind), *sums = triad_array(&c, p, 0, kind);
  float *got = triad_array(&c, p, 3, kind), *ones = triad_array(&c, n, 0, kind);
  for (idx i = 0; i < n; i++) ones[i] = 1;
  const struct triad_gradient wanted = {ones, rows, sums, 1, stride, p, n, 1, p};
  triad_gradient(&wanted);
  float *from = side_put(&s, rows, all * item), *less = side_put(&s, offset, stride * item);
  float *x = side_put(&s, moved, all * item), *to = side_put(&s, got, p * item);
  if (!s.status) s.status = device_train_sums(dev, from, n, stride, p, to);
  if (!s.status) s.status = device_train_offset(dev, x, n, (idx)stride, less);
  int same = side_end(&s, 2) == OK && memcmp(sums, got, (size_t)p * sizeof *sums) == 0;
  for (gidx i = 0; i < all && same; i++) {
    float left = rows[i] - offset[i % stride];
    same = memcmp(&moved[i], &left, sizeof left) == 0 || (isnan(left) && isnan(moved[i]));
  }
  ok(same, "%d rows of %d at %lld: %s", n, p, (long long)stride, status_message());
  status_clear();
  arena_free(&c.arena);
}

static void check_offset(struct device *dev)
{
  static const struct {
    idx n, p;
    gidx stride;
  } shapes[] = {{1, 1, 1}, {1023, 31, 93}, {1024, 33, 33}, {1025, 384, 768}, {9500, 5, 5}};
  for (int i = 0; i < LENGTH(shapes); i++)
    for (int kind = VALUES_NORMAL; kind <= VALUES_WILD; kind++)
      offset_check(dev, shapes[i].n, shapes[i].p, shapes[i].stride, (enum triad_values)kind);
}

/* Every operation, on 1, 3, .. how->threads threads. */
static void check_train_operations(const struct how *how)
{
  claim_begin("on %s: operations on whole batches, nested widths and a bias before the encoder "
              "have the bits of plain loops",
              how->kind);
  for (int threads = 1; threads <= how->threads; threads += 2) {
    struct device dev = {0};
    struct device_options options = how_options(how, 1, 1, 0);
    options.threads = threads;
    int status = device_open(&dev, &options);
    ok(!status, "%s", status_message());
    if (!status) check_batch_codes(&dev);
    if (!status) check_widths(&dev);
    if (!status) check_offset(&dev);
    device_close(&dev);
    status_clear();
  }
  claim_end();
}

#endif
