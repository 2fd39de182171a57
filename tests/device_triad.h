/* SPDX-License-Identifier: BSD-3-Clause
 * Checks of products, gradients and steps of Adam on any device against the plain loops.  Shapes
 * are around the sizes of tiles; the number of rows must not change the bits of a row; numbers are
 * tiny, infinite or NaN, too; sparse operations are compared with dense ones. */
#ifndef TESTS_DEVICE_TRIAD_H
#define TESTS_DEVICE_TRIAD_H

#include "triad_case.h"
#include "triad_oracle.h"

enum list_operation { LIST_SPARSE, LIST_GRADIENT, LIST_DOTS };

/* Run a sparse operation on the device.  lines: number of rows of the matrix; rows: only for
 * LIST_DOTS. */
static int side_lists(struct device *dev, enum list_operation what, const struct triad_lists *l,
                      gidx lines, const float *rows, float *out)
{
  struct triad_side s = {.dev = dev};
  struct triad_lists on = *l;
  gidx entries = l->start[l->count], width = l->width, item = (gidx)sizeof(float);
  on.start = side_put(&s, l->start, (l->count + 1) * (gidx)sizeof(gidx));
  on.index = side_put(&s, l->index, (entries + 1) * item);
  on.value = side_put(&s, l->value, (entries + 1) * item);
  on.matrix = side_put(&s, l->matrix, lines * width * item);
  rows = side_put(&s, rows, l->count * width * item);
  out = side_put(&s, out, (what == LIST_DOTS ? imax(entries, 1) : l->count * width) * item);
  if (!s.status)
    s.status = what == LIST_SPARSE     ? device_triad_sparse(dev, &on, out)
               : what == LIST_GRADIENT ? device_triad_sparse_gradient(dev, &on, out)
                                       : device_triad_dots(dev, &on, rows, out);
  return side_end(&s, 1);
}

static int side_adam(struct device *dev, const struct adam_state *a, const struct adam_rates *rates)
{
  struct triad_side s = {.dev = dev};
  gidx bytes = a->count * (gidx)sizeof(float);
  struct adam_state on = {.count = a->count};
  on.g = side_put(&s, a->g, bytes);
  on.w = side_put(&s, a->w, bytes);
  on.m = side_put(&s, a->m, bytes);
  on.v = side_put(&s, a->v, bytes);
  if (!s.status) s.status = device_adam(dev, &on, rates);
  return side_end(&s, 3);
}

static int triad_same(const struct triad_case *c, int status, gidx n, const char *what,
                      const struct how *how)
{
  int good = !status && memcmp(c->wanted, c->got, (size_t)n * sizeof *c->got) == 0;
  ok(good, "%s, %s: %d rows, %d inputs, %d outputs: %s", how->variant, what, c->z.m, c->z.k, c->z.n,
     status_message());
  status_clear();
  return good;
}

/* The results of the plain loops for a case: forward[m][n], back[m][k], gradient[k][n]. */
struct triad_answer {
  struct triad_shape z;
  enum triad_values values;
  float *forward, *back, *gradient;
};

/* The results of the plain loops.  They are computed once for all devices, because the plain loops
 * are slow. */
static const struct triad_answer *triad_answer_of(const struct triad_case *c)
{
  static struct triad_answer *answers;
  static int count;
  gidx m = c->z.m, k = c->z.k, n = c->z.n;
  for (int i = 0; i < count; i++)
    if (!memcmp(&answers[i].z, &c->z, sizeof c->z) && answers[i].values == c->values)
      return &answers[i];
  answers = realloc(answers, (size_t)(count + 1) * sizeof *answers);
  float *room = malloc((size_t)(m * n + m * k + k * n) * sizeof *room);
  struct triad_answer a = {c->z, c->values, room, room + m * n, room + m * n + m * k};
  struct triad_product p = triad_forward_of(c, c->bias, a.forward);
  triad_product(&p);
  p = triad_back_of(c, a.back);
  triad_product(&p);
  struct triad_gradient g = triad_gradient_of(c, a.gradient);
  triad_gradient(&g);
  answers[count] = a;
  return &answers[count++];
}

static void triad_case_check(struct triad_case *c, struct device *dev, const struct how *how)
{
  gidx m = c->z.m, k = c->z.k, n = c->z.n;
  const struct triad_answer *a = triad_answer_of(c);
  float *room = c->wanted;
  struct triad_product p = triad_forward_of(c, c->bias, c->got);
  c->wanted = a->forward;
  triad_same(c, side_product(dev, PRECISION_F32, &p), m * n, "forward", how);
  p = triad_back_of(c, c->got);
  c->wanted = a->back;
  triad_same(c, side_product(dev, PRECISION_F32, &p), m * k, "back", how);
  struct triad_gradient g = triad_gradient_of(c, c->got);
  c->wanted = a->gradient;
  triad_same(c, side_gradient(dev, PRECISION_F32, &g), k * n, "gradient", how);
  c->wanted = room;
}

static void check_shapes(struct device *dev, const struct how *how)
{
  static const idx sizes[] = {1, 2, 31, 32, 33, 129};
  static const struct triad_shape more[] = {{3, 1000, 250},  {2730, 33, 65}, {1024, 3, 1},
                                            {1025, 1, 33},   {4097, 5, 7},   {7, 127, 128},
                                            {4096, 16, 128}, {128, 8, 4096}, {2048, 256, 384}};
  struct triad_case c;
  claim_begin("%s, %s: products and gradients have the reference's bits", how->kind, how->variant);
  for (int i = 0; i < LENGTH(sizes) * LENGTH(sizes) * LENGTH(sizes); i++) {
    struct triad_shape z = {sizes[i % 6], sizes[i / 6 % 6], sizes[i / 36]};
    if (is_small() && i % 11) continue;
    triad_case_make(&c, z, VALUES_NORMAL);
    triad_case_check(&c, dev, how);
    arena_free(&c.arena);
  }
  for (int i = 0; i < 2 * LENGTH(more); i++) {
    if (is_small() && i / 2 >= 6) continue;
    triad_case_make(&c, more[i / 2], i % 2 ? VALUES_WILD : VALUES_NORMAL);
    triad_case_check(&c, dev, how);
    arena_free(&c.arena);
  }
  claim_end();
}

/* On a GPU a gradient has tiles of 128 inputs if all tiles are whole, otherwise tiles of 64 inputs.
 * If there are few tiles, chunks of rows are products of their own.  The first four shapes are such
 * cases.  The next three have so many tiles that on an H100 chunks stay together.  The next three
 * give products tiles of 64 x 192, or large tiles with an operand that is transposed first.  The
 * last two have more chunks than can be products of their own; teams of blocks divide the tiles of
 * the very last shape's products. */
static void check_halves(struct device *dev, const struct how *how)
{
  static const struct triad_shape halves[] = {
      {8, 64, 128},     {2048, 128, 192}, {1032, 192, 128},   {2100, 96, 200},
      {1032, 64, 8192}, {1032, 72, 8200}, {1040, 128, 12672}, {2048, 48, 768},
      {2048, 768, 48},  {4096, 16, 4096}, {66000, 5, 7},      {66560, 128, 128}};
  int shapes = is_small() ? 2 : strcmp(how->kind, "cuda") == 0 ? LENGTH(halves) : 4;
  struct triad_case c;
  claim_begin("%s, %s: gradients that end in half a tile have the reference's bits", how->kind,
              how->variant);
  for (int i = 0; i < shapes; i++) {
    triad_case_make(&c, halves[i], VALUES_NORMAL);
    triad_case_check(&c, dev, how);
    arena_free(&c.arena);
  }
  claim_end();
}

/* A gradient whose tiles are divided among teams of blocks of a GPU.  Its outputs repeat after FEW,
 * so that the plain loops compute only these. */
static void check_teams(struct device *dev, const struct how *how)
{
  enum { K = 128, FEW = 640, N = 60 * FEW };
  struct triad_case few, all;
  idx m = is_small() ? 48 : 1040; /* 1040 rows are more than a chunk */
  if (strcmp(how->kind, "cuda") != 0) return;
  claim_begin("%s, %s: gradients that teams of blocks share have the reference's bits", how->kind,
              how->variant);
  triad_case_make(&few, (struct triad_shape){m, K, FEW}, VALUES_NORMAL);
  struct triad_gradient g = triad_gradient_of(&few, few.wanted);
  triad_gradient(&g);
  triad_case_make(&all, (struct triad_shape){m, K, N}, VALUES_NONE);
  memcpy(all.x, few.x, sizeof(float) * (size_t)m * K);
  for (gidx i = 0; i < m; i++)
    for (gidx j = 0; j < N; j += FEW)
      memcpy(all.dy + i * N + j, few.dy + i * FEW, sizeof(float) * FEW);
  for (gidx i = 0; i < K; i++)
    for (gidx j = 0; j < N; j += FEW) {
      memcpy(all.start + i * N + j, few.start + i * FEW, sizeof(float) * FEW);
      memcpy(all.wanted + i * N + j, few.wanted + i * FEW, sizeof(float) * FEW);
    }
  g = triad_gradient_of(&all, all.got);
  triad_same(&all, side_gradient(dev, PRECISION_F32, &g), (gidx)K * N, "gradient", how);
  arena_free(&few.arena);
  arena_free(&all.arena);
  claim_end();
}

/* The first rows have the same bits, however many rows follow them. */
static void check_rows(struct device *dev, const struct how *how)
{
  enum { FIRST = 64, K = 96, N = 130 };
  static const idx counts[] = {1, 16, 31, 32, 64, 256, 1024, 1025, 2048, 2730, 2731, 4096};
  struct triad_case c;
  triad_case_make(&c, (struct triad_shape){4096, K, N}, VALUES_NORMAL);
  claim_begin("%s, %s: a row's bits do not depend on the rows beside it", how->kind, how->variant);
  struct triad_product p = triad_forward_of(&c, c.bias, c.wanted);
  p.m = FIRST;
  triad_product(&p);
  p.y = c.got;
  for (int i = 0; i < LENGTH(counts); i++) {
    p.m = counts[i];
    if (is_small() && p.m > 64 && p.m != 2730) continue;
    memset(c.got, 0, 4096 * N * sizeof *c.got);
    int status = side_product(dev, PRECISION_F32, &p);
    triad_same(&c, status, imin(p.m, FIRST) * N, "rows 0..63", how);
  }
  claim_end();
  arena_free(&c.arena);
}

/* A matrix and its transpose, read with exchanged strides, give the same product. */
static void check_layouts(struct device *dev, const struct how *how)
{
  enum { M = 9, K = 37, N = 70 };
  struct triad_case c;
  float turned[N * K];
  triad_case_make(&c, (struct triad_shape){M, K, N}, VALUES_NORMAL);
  for (idx i = 0; i < K; i++)
    for (idx j = 0; j < N; j++) turned[j * K + i] = c.w[i * N + j];
  struct triad_product p = triad_forward_of(&c, NULL, c.wanted);
  triad_product(&p);
  p.y = c.got;
  p.w = (struct triad_weights){turned, 1, K};
  claim_begin("%s, %s: a matrix that is stored transposed gives the same bits", how->kind,
              how->variant);
  triad_same(&c, side_product(dev, PRECISION_F32, &p), (gidx)M * N, "transposed", how);
  claim_end();
  arena_free(&c.arena);
}

/* About a third of the entries of x are not 0.  These entries as lists by row, and by column, for
 * the operations that are compared with dense ones. */
struct sparse_case {
  gidx *row_start, *column_start;
  idx *row_index, *column_index;
  float *row_value, *column_value;
};

static void sparse_make(struct triad_case *c, struct sparse_case *s)
{
  idx m = c->z.m, k = c->z.k;
  gidx at = 0;
  arena_alloc(&c->arena, &s->row_start, m + 1, sizeof(gidx));
  arena_alloc(&c->arena, &s->column_start, k + 1, sizeof(gidx));
  arena_alloc(&c->arena, &s->row_index, (gidx)m * k + 1, sizeof(idx));
  arena_alloc(&c->arena, &s->column_index, (gidx)m * k + 1, sizeof(idx));
  arena_alloc(&c->arena, &s->row_value, (gidx)m * k + 1, sizeof(float));
  arena_alloc(&c->arena, &s->column_value, (gidx)m * k + 1, sizeof(float));
  for (gidx i = 0; i < (gidx)m * k; i++)
    if (random_below(9, 1, (uint64_t)i, 3)) c->x[i] = 0;
  for (idx r = 0; r < m; r++, s->row_start[r] = at)
    for (idx i = 0; i < k; i++)
      if (c->x[(gidx)r * k + i] != 0) {
        s->row_index[at] = i;
        s->row_value[at++] = c->x[(gidx)r * k + i];
      }
  at = 0;
  for (idx i = 0; i < k; i++, s->column_start[i] = at)
    for (idx r = 0; r < m; r++)
      if (c->x[(gidx)r * k + i] != 0) {
        s->column_index[at] = r;
        s->column_value[at++] = c->x[(gidx)r * k + i];
      }
}

/* LIST_DOTS computes the entries of the dense back product that are listed, with the same bits. */
static void dots_check(struct triad_case *c, const struct sparse_case *s, struct device *dev,
                       const struct how *how)
{
  idx m = c->z.m, k = c->z.k;
  struct triad_lists rows = {m, s->row_start, s->row_index, NULL, c->w, c->z.n};
  struct triad_product back = triad_back_of(c, c->wanted);
  int status = side_product(dev, PRECISION_F32, &back), same = 1;
  if (!status) status = side_lists(dev, LIST_DOTS, &rows, c->z.k, c->dy, c->got);
  for (idx r = 0; r < m; r++)
    for (gidx e = s->row_start[r]; e < s->row_start[r + 1]; e++)
      same &= memcmp(&c->wanted[(gidx)r * k + s->row_index[e]], &c->got[e], sizeof(float)) == 0;
  ok(!status && same, "%s, sparse back: %d rows: %s", how->variant, m, status_message());
}

static void sparse_check(struct triad_case *c, struct device *dev, const struct how *how)
{
  idx m = c->z.m, k = c->z.k, n = c->z.n;
  struct sparse_case s;
  sparse_make(c, &s);
  struct triad_lists rows = {m, s.row_start, s.row_index, s.row_value, c->w, n};
  struct triad_product p = triad_forward_of(c, NULL, c->wanted);
  int status = side_product(dev, PRECISION_F32, &p);
  if (!status) status = side_lists(dev, LIST_SPARSE, &rows, k, NULL, c->got);
  triad_same(c, status, (gidx)m * n, "sparse forward", how);
  triad_sparse(&rows, c->got);
  triad_same(c, OK, (gidx)m * n, "reference of sparse forward", how);
  dots_check(c, &s, dev, how);
  struct triad_lists columns = {k, s.column_start, s.column_index, s.column_value, c->dy, n};
  struct triad_gradient g = triad_gradient_of(c, c->wanted);
  status = side_gradient(dev, PRECISION_F32, &g);
  triad_gradient_of(c, c->got);
  if (!status) status = side_lists(dev, LIST_GRADIENT, &columns, m, NULL, c->got);
  triad_same(c, status, (gidx)k * n, "sparse gradient", how);
  triad_gradient_of(c, c->got);
  triad_sparse_gradient(&columns, c->got);
  triad_same(c, OK, (gidx)k * n, "reference of the sparse gradient", how);
}

static void check_sparse(struct device *dev, const struct how *how)
{
  static const struct triad_shape shapes[] = {{1, 1, 1}, {5, 33, 1}, {40, 20, 77}, {2500, 12, 35}};
  struct triad_case c;
  claim_begin("%s, %s: sparse operations give the bits of dense ones", how->kind, how->variant);
  for (int i = 0; i < LENGTH(shapes); i++) {
    triad_case_make(&c, shapes[i], VALUES_NORMAL);
    sparse_check(&c, dev, how);
    arena_free(&c.arena);
  }
  claim_end();
}

static void check_adam(struct device *dev, const struct how *how)
{
  enum { MOST = 40000 };
  static const gidx counts[] = {1, 15, 16, 33, MOST};
  struct triad_case c = {0};
  claim_begin("%s, %s: steps of Adam have the reference's bits", how->kind, how->variant);
  for (int i = 0; i < LENGTH(counts); i++) {
    gidx n = is_small() ? imin(counts[i], 300) : counts[i];
    float *all[2][3], *g = triad_array(&c, n, 6, VALUES_NORMAL);
    for (int j = 0; j < 6; j++)
      all[j / 3][j % 3] = triad_array(&c, n, j % 3 ? 0 : 7, VALUES_NORMAL);
    for (gidx t = 1; t < 4; t++) {
      struct adam_rates rates = adam_rates(0.01 / (real)t, t);
      struct adam_state s = {all[0][0], all[0][1], all[0][2], g, n};
      adam_step(&s, &rates);
      s = (struct adam_state){all[1][0], all[1][1], all[1][2], g, n};
      int status = side_adam(dev, &s, &rates);
      for (gidx j = 0; j < n; j++) g[j] *= j % 3 ? 0x1p-30f : -2;
      for (int j = 0; j < 3; j++)
        ok(!status && !memcmp(all[0][j], all[1][j], (size_t)n * sizeof *g), "%lld, step %lld",
           (long long)n, (long long)t);
    }
  }
  claim_end();
  arena_free(&c.arena);
}

/* Every wrong dimension or stride is refused. */
static void check_refused(struct device *dev, const struct how *how)
{
  float x[4] = {0};
  const struct triad_product good = {x, {x, 1, 1}, NULL, x, 1, 1, 1, 1, 1};
  struct triad_product p;
  claim_begin("%s, %s: shapes without rows, inputs or outputs are refused", how->kind,
              how->variant);
  for (int i = 0; i < 12; i++) {
    p = good;
    int bad = i % 2 ? -1 : 0;
    if (i / 2 == 0) p.m = bad;
    if (i / 2 == 1) p.k = bad;
    if (i / 2 == 2) p.n = bad;
    if (i / 2 == 3) p.x_stride = bad;
    if (i / 2 == 4) p.y_stride = bad;
    if (i / 2 == 5) p.w.in = p.w.out = bad;
    ok(device_triad_product(dev, PRECISION_F32, &p, NULL) == ERR_INTERNAL, "%d: %s", i,
       status_message());
    status_clear();
    if (i / 2 > 2) continue;
    struct triad_gradient g = {x, x, x, 1, 1, 1, p.m, p.k, p.n};
    ok(device_triad_gradient(dev, PRECISION_F32, &g, NULL) == ERR_INTERNAL, "gradient, %d", i);
    status_clear();
  }
  claim_end();
}

static void check_triad(const struct how *how)
{
  for (int threads = 1; threads <= how->threads; threads += 2) {
    struct device dev = {0};
    struct device_options options = how_options(how, 1, 1, 0);
    options.threads = threads;
    if (!ok(device_open(&dev, &options) == OK, "%s opens: %s", how->kind, status_message())) return;
    check_shapes(&dev, how);
    check_halves(&dev, how);
    check_teams(&dev, how);
    check_rows(&dev, how);
    check_layouts(&dev, how);
    check_sparse(&dev, how);
    check_adam(&dev, how);
    if (threads + 2 > how->threads) {
      check_oracles(&dev, how);
      check_rows_back(&dev, how);
      check_cuts(&dev, how);
    }
    check_refused(&dev, how);
    device_close(&dev);
  }
}

#endif
