/* SPDX-License-Identifier: BSD-3-Clause
 * More checks of products and gradients on any device: some outputs against f64; rows of the back
 * product, whose bits must not depend on the number of rows; and chunks of rows, which any rank may
 * have. */
#ifndef TESTS_TRIAD_ORACLE_H
#define TESTS_TRIAD_ORACLE_H

#include "triad_case.h"

/* The inner product of n terms at strides, in f64, added to `start`.  *size <- the sum of the sizes
 * of start and terms. */
static real oracle_sum(real start, const float *a, gidx a_step, const float *b, gidx b_step, idx n,
                       real *size)
{
  real sum = start;
  *size = fabs(start);
  for (idx i = 0; i < n; i++) {
    real term = (real)a[i * a_step] * b[i * b_step];
    sum += term;
    *size += fabs(term);
  }
  return sum;
}

/* Is a result near to the f64 sum?  A chain of n terms has n roundings; 2 (n + 1) are allowed. */
static int oracle_near(real sum, real size, idx n, float got)
{
  return fabs(sum - got) <= 2 * (n + 1) * 0x1p-24 * size;
}

/* The first, the middle or the last of n. */
static idx oracle_place(int i, idx n)
{
  return i == 0 ? 0 : i == 1 ? n / 2 : n - 1;
}

/* Are nine outputs of a product near to f64, with the bits of the reference? */
static int product_near(const struct triad_product *p)
{
  int good = 1;
  for (int i = 0; i < 9; i++) {
    idx r = oracle_place(i / 3, p->m), j = oracle_place(i % 3, p->n);
    const float *x = p->x + r * p->x_stride, *w = p->w.at + j * p->w.out;
    const float *bias = p->bias ? p->bias + j : NULL, *got = p->y + r * p->y_stride + j;
    float wanted;
    real size, sum = oracle_sum(bias ? *bias : 0, x, 1, w, p->w.in, p->k, &size);
    triad_product(
        &(struct triad_product){x, {w, p->w.in, p->w.out}, bias, &wanted, p->k, 1, 1, p->k, 1});
    good &= oracle_near(sum, size, p->k, *got) && memcmp(&wanted, got, sizeof wanted) == 0;
  }
  return good;
}

/* The same for a gradient, which was added to `start`. */
static int gradient_near(const struct triad_gradient *g, const float *start)
{
  int good = 1;
  for (int a = 0; a < 9; a++) {
    idx i = oracle_place(a / 3, g->k), j = oracle_place(a % 3, g->n);
    const float *x = g->x + i, *dy = g->dy + j, *got = g->dw + i * g->dw_stride + j;
    float wanted = start[i * g->dw_stride + j];
    real size, sum = oracle_sum(wanted, x, g->x_stride, dy, g->dy_stride, g->m, &size);
    triad_gradient(
        &(struct triad_gradient){x, dy, &wanted, g->x_stride, g->dy_stride, 1, g->m, 1, 1});
    good &= oracle_near(sum, size, g->m, *got) && memcmp(&wanted, got, sizeof wanted) == 0;
  }
  return good;
}

static void check_oracles(struct device *dev, const struct how *how)
{
  static const idx sizes[] = {1, 2, 3, 31, 32, 33, 127, 128, 129, 1000};
  const int count = LENGTH(sizes), step = is_small() ? 7 : 1;
  struct triad_case c;
  triad_case_make(&c, (struct triad_shape){1000, 1000, 1000}, VALUES_NORMAL);
  claim_begin("%s, %s: products and gradients are near to f64", how->kind, how->variant);
  for (int i = 0; i < count * count * count; i += step) {
    c.z =
        (struct triad_shape){sizes[i % count], sizes[i / count % count], sizes[i / count / count]};
    if (is_small() && imax(imax(c.z.m, c.z.k), c.z.n) > 129) continue;
    struct triad_product p = triad_forward_of(&c, c.bias, c.got);
    int status = side_product(dev, PRECISION_F32, &p);
    int forward = !status && product_near(&p);
    p = triad_back_of(&c, c.got);
    if (!status) status = side_product(dev, PRECISION_F32, &p);
    int back = !status && product_near(&p);
    struct triad_gradient g = triad_gradient_of(&c, c.got);
    if (!status) status = side_gradient(dev, PRECISION_F32, &g);
    int gradient = !status && gradient_near(&g, c.start);
    ok(forward && back && gradient, "%d rows, %d inputs, %d outputs: %d%d%d %s", c.z.m, c.z.k,
       c.z.n, forward, back, gradient, status_message());
    status_clear();
  }
  claim_end();
  arena_free(&c.arena);
}

/* The first rows of dX have the same bits, however many rows follow them. */
static void check_rows_back(struct device *dev, const struct how *how)
{
  enum { FIRST = 64, K = 65, N = 130 };
  static const idx counts[] = {1, 16, 31, 32, 64, 256, 1024, 1025, 2048, 2730, 2731, 4096};
  struct triad_case c;
  triad_case_make(&c, (struct triad_shape){4096, K, N}, VALUES_NORMAL);
  claim_begin("%s, %s: a row of the back product does not depend on others", how->kind,
              how->variant);
  struct triad_product p = triad_back_of(&c, c.wanted);
  p.m = FIRST;
  triad_product(&p);
  p.y = c.got;
  for (int i = 0; i < LENGTH(counts); i++) {
    p.m = counts[i];
    if (is_small() && p.m > 64 && p.m != 2730) continue;
    memset(c.got, 0, 4096 * K * sizeof *c.got);
    int status = side_product(dev, PRECISION_F32, &p);
    ok(!status && !memcmp(c.got, c.wanted, (size_t)imin(p.m, FIRST) * K * sizeof *c.got),
       "rows 0..63 of %d: %s", p.m, status_message());
    status_clear();
  }
  claim_end();
  arena_free(&c.arena);
}

/* Gradients of chunks of rows, each by itself and in any order, as ranks may compute them.  Their
 * sum in f64, added to the start, is the whole gradient. */
static void check_cuts(struct device *dev, const struct how *how)
{
  enum { K = 5, N = 33, CHUNKS = 5, NUMBERS = K * N };
  static const idx counts[] = {1, 1023, 1024, 1025, 2048, 3000, 4097};
  struct triad_case c;
  triad_case_make(&c, (struct triad_shape){4097, K, N}, VALUES_NORMAL);
  claim_begin("%s, %s: a gradient is the sum of its chunks", how->kind, how->variant);
  for (int i = 0; i < LENGTH(counts); i++) {
    float part[CHUNKS][NUMBERS] = {{0}};
    int status = OK, chunks = (int)ceil_div(counts[i], TRIAD_CHUNK);
    for (int order = chunks - 1; order >= 0 && !status; order--) {
      struct triad_gradient g = triad_gradient_of(&c, c.got);
      gidx first = (gidx)order * TRIAD_CHUNK;
      g.x += first * g.x_stride;
      g.dy += first * g.dy_stride;
      g.dw = part[order];
      g.m = (idx)imin(TRIAD_CHUNK, counts[i] - first);
      status = side_gradient(dev, PRECISION_F32, &g);
    }
    struct triad_gradient g = triad_gradient_of(&c, c.got);
    g.m = counts[i];
    if (!status) status = side_gradient(dev, PRECISION_F32, &g);
    int same = !status;
    for (int at = 0; at < NUMBERS && same; at++) {
      real sum = 0;
      for (int chunk = 0; chunk < chunks; chunk++) sum += part[chunk][at];
      float wanted = c.start[at] + (float)sum;
      same = memcmp(&wanted, &c.got[at], sizeof wanted) == 0;
    }
    ok(same, "%d rows: %s", counts[i], status_message());
    status_clear();
  }
  claim_end();
  arena_free(&c.arena);
}

#endif
