/* SPDX-License-Identifier: BSD-3-Clause
 * Checks of dense operations on any device against the plain loops: Cholesky factor, pivots,
 * inverse, entries of the inverse matrix, and products.  The upper triangle and the gaps between
 * columns must not change.
 *
 * Strides are odd and even.  Matrices are positive definite, indefinite, or have a NaN. */
#ifndef TESTS_DEVICE_DENSE_H
#define TESTS_DEVICE_DENSE_H

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/num.h"
#include "base/rng.h"
#include "base/status.h"
#include "device/dense.h"
#include "model/dense.h"
#include "device_how.h"

enum dense_kind { DENSE_DEFINITE, DENSE_INDEFINITE, DENSE_NAN };

/* A device, and the number of columns that it factors at a time. */
struct dense_way {
  struct device *dev;
  idx panel;
};

struct dense_problem {
  idx n, good; /* rows; good pivots of the reference */
  gidx stride;
  real *s, *factor, *inverse, *pivots; /* the matrix; the reference's results */
  struct arena arena;
};

static gidx dense_bytes(const struct dense_problem *q)
{
  return (q->stride * q->n + 1) * (gidx)sizeof(real);
}

/* A positive definite matrix whose condition is not small, or one with a bad entry. */
static void dense_fill(struct dense_problem *q, enum dense_kind kind)
{
  idx n = q->n;
  for (gidx i = 0; i < q->stride * n; i++) q->s[i] = (real)i; /* outside of L: must not change */
  for (idx j = 0; j < n; j++)
    for (idx i = j; i < n; i++) {
      real near = i - j < 5 ? 0.2 / (1 + i - j) : 0;
      q->s[i + j * q->stride] =
          near + 0.3 / sqrt(n) * random_normal((uint64_t)n, 1, (uint64_t)(i * n + j));
      if (i == j) q->s[i + j * q->stride] = 1.2 + 1e-3 * random_normal((uint64_t)n, 2, (uint64_t)i);
    }
  if (kind == DENSE_INDEFINITE && n) q->s[n / 2 + n / 2 * q->stride] = -0.25;
  if (kind == DENSE_NAN && n) q->s[n - 1 + n / 3 * q->stride] = NAN;
}

static int dense_problem_open(struct dense_problem *q, idx n, enum dense_kind kind)
{
  gidx values;
  *q = (struct dense_problem){.n = n, .stride = n + (n % 3 == 0 ? 7 : n % 2)};
  values = q->stride * n + 1;
  TRY(arena_alloc(&q->arena, &q->s, values, sizeof(real)));
  TRY(arena_alloc(&q->arena, &q->factor, values, sizeof(real)));
  TRY(arena_alloc(&q->arena, &q->inverse, values, sizeof(real)));
  TRY(arena_alloc(&q->arena, &q->pivots, (gidx)n + 1, sizeof(real)));
  dense_fill(q, kind);
  memcpy(q->factor, q->s, (size_t)dense_bytes(q));
  q->good = cholesky_reference(q->factor, n, q->stride, q->pivots);
  CHECK((q->good == n) == (kind == DENSE_DEFINITE || n == 0), ERR_INTERNAL, "%d pivots are good",
        q->good);
  memcpy(q->inverse, q->factor, (size_t)dense_bytes(q));
  if (q->good == n) inverse_reference(q->inverse, n, q->stride);
  return OK;
}

/* Equal bits, or both NaN. */
static int real_same(real a, real b)
{
  return (isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof a) == 0;
}

/* Compare the matrix on a device with `want`, bit by bit. */
static int dense_compare(const struct dense_problem *q, struct device *dev, const struct buffer *b,
                         const real *want, const char *what)
{
  const real *got = b->host;
  TRY(device_get(dev, b, 0, b->bytes));
  for (gidx i = 0; i < q->stride * q->n; i++)
    CHECK(memcmp(&got[i], &want[i], sizeof *want) == 0, ERR_INTERNAL,
          "%s: entry (%lld, %lld) is %a, not %a", what, (long long)(i % q->stride),
          (long long)(i / q->stride), got[i], want[i]);
  return OK;
}

static int dense_factor_check(const struct dense_problem *q, struct dense *d, struct buffer *b)
{
  struct arena arena = {0};
  real *pivots = NULL;
  idx good = -1;
  TRY(arena_alloc(&arena, &pivots, (gidx)q->n + 1, sizeof *pivots));
  memcpy(b->host, q->s, (size_t)b->bytes);
  TRY(device_put(d->device, b, 0, b->bytes));
  TRY(dense_cholesky(d, b->device, q->n, q->stride, pivots, &good));
  CHECK(good == q->good, ERR_INTERNAL, "pivot %d is bad, not %d", good, q->good);
  for (idx i = 0; i < q->n && i <= good; i++)
    CHECK(real_same(pivots[i], q->pivots[i]), ERR_INTERNAL, "pivot %d is %a, not %a", i, pivots[i],
          q->pivots[i]);
  arena_free(&arena);
  return good == q->n ? dense_compare(q, d->device, b, q->factor, "factor") : OK;
}

/* Compare entries of the inverse matrix: two with corner or middle indices, the others random. */
static int dense_entries_check(const struct dense_problem *q, struct dense *d,
                               const struct buffer *b)
{
  enum { COUNT = 100 };
  idx pairs[2 * COUNT];
  real out[COUNT];
  struct dense_entries e = {b->device, q->n, q->stride, COUNT, pairs, out};
  if (q->n == 0) return OK;
  for (int i = 0; i < 2 * COUNT; i++)
    pairs[i] =
        i < 4 ? i % 3 * (q->n - 1) / 2 : (idx)random_below(5, 1, (uint64_t)i, (uint64_t)q->n);
  TRY(dense_entries(d, &e));
  for (int i = 0; i < COUNT; i++) {
    real want = inverse_entry(q->inverse, q->n, q->stride, pairs[2 * i], pairs[2 * i + 1]);
    CHECK(memcmp(&want, &out[i], sizeof want) == 0, ERR_INTERNAL, "entry (%d, %d) of the inverse",
          pairs[2 * i], pairs[2 * i + 1]);
  }
  return OK;
}

static int dense_way_check(const struct dense_problem *q, const struct dense_way *way)
{
  struct dense d = {0};
  struct buffer b = {0};
  int status = dense_open(&d, way->dev, way->panel, q->n);
  if (!status) status = buffer_alloc(way->dev, &b, dense_bytes(q));
  if (!status) status = dense_factor_check(q, &d, &b);
  if (!status && q->good == q->n) status = dense_inverse(&d, b.device, q->n, q->stride);
  if (!status && q->good == q->n) status = dense_compare(q, way->dev, &b, q->inverse, "inverse");
  if (!status && q->good == q->n) status = dense_entries_check(q, &d, &b);
  buffer_free(way->dev, &b);
  dense_close(&d);
  if (status)
    printf("# n=%d stride=%lld %s panel=%d: %s\n", q->n, (long long)q->stride, way->dev->variant,
           way->panel, status_message());
  status_clear();
  return status == OK;
}

/* Check one matrix in all ways. */
static int dense_check(idx n, enum dense_kind kind, const struct dense_way *ways, int count)
{
  struct dense_problem q;
  int good = dense_problem_open(&q, n, kind) == OK;
  for (int w = 0; w < count && good; w++) good = dense_way_check(&q, &ways[w]);
  arena_free(&q.arena);
  return good;
}

/* C_ij of a product by its definition. */
static real product_entry(const struct dense_product *p, idx i, idx j, real acc)
{
  for (idx k = p->depth_begin; k < p->depth_end; k++) {
    real a = p->a.is_triangular && k < i ? 0 : p->a.at[i * p->a.row + k * p->a.depth];
    real b = p->b.is_triangular && k < j ? 0 : p->b.at[j * p->b.row + k * p->b.depth];
    acc = fma(p->a.negative ? -a : a, p->b.negative ? -b : b, acc);
  }
  return acc;
}

/* Compute a product on the device, and compare all of C with the definition.  Both operands are
 * parts of the matrix `from`.  The product is added to C, which begins with 0 and -0; entries
 * outside of the wanted part must not change. */
static int product_run(const struct dense_product *p, struct dense *d, idx n, const real *from,
                       const struct buffer *operand, struct buffer *c)
{
  struct dense_product on = *p, here = *p;
  gidx at = p->row_begin + p->column_begin * p->stride;
  on.a.at = on.b.at = operand->device;
  on.c = (real *)c->device + at;
  here.a.at = here.b.at = from;
  TRY(dense_product(d, &on));
  TRY(device_get(d->device, c, 0, c->bytes));
  for (idx j = 0; j < n; j++)
    for (idx i = 0; i < n; i++) {
      int in = i >= p->row_begin && i < p->row_end && j >= p->column_begin && j < p->column_end;
      int has = in && (p->part == PART_ALL || (p->part == PART_LOWER ? i >= j : i < j));
      real got = ((const real *)c->host)[i + j * p->stride], start = (i + j) % 5 ? 0.0 : -0.0;
      real want = has ? product_entry(&here, i, j, start) : start;
      CHECK(memcmp(&got, &want, sizeof got) == 0, ERR_INTERNAL, "entry (%d, %d) is %a, not %a", i,
            j, got, want);
    }
  return OK;
}

/* Numbers of every fifth row and column are tiny.  A product of two tiny numbers underflows to a
 * zero with a sign.  A sum of such products has the sign of the last one. */
static real product_number(gidx row, gidx column)
{
  real x = random_normal(7, (uint64_t)row, (uint64_t)column);
  return row % 5 == 1 || column % 5 == 1 ? 1e-170 * x : x;
}

static int product_check(const struct dense_way *way, idx n, struct dense_product p)
{
  struct dense d = {0};
  struct buffer operand = {0}, c = {0};
  gidx values = p.stride * n;
  int status = dense_open(&d, way->dev, way->panel, n);
  if (!status) status = buffer_alloc(way->dev, &operand, values * (gidx)sizeof(real));
  if (!status) status = buffer_alloc(way->dev, &c, values * (gidx)sizeof(real));
  for (gidx i = 0; i < values && !status; i++) {
    ((real *)operand.host)[i] = product_number(i % p.stride, i / p.stride);
    ((real *)c.host)[i] = (i % p.stride + i / p.stride) % 5 ? 0.0 : -0.0;
  }
  if (!status) status = device_put(way->dev, &operand, 0, operand.bytes);
  if (!status) status = device_put(way->dev, &c, 0, c.bytes);
  if (!status) status = product_run(&p, &d, n, operand.host, &operand, &c);
  buffer_free(way->dev, &operand);
  buffer_free(way->dev, &c);
  dense_close(&d);
  if (status)
    printf("# n=%d part %d depths %d to %d: %s\n", n, p.part, p.depth_begin, p.depth_end,
           status_message());
  status_clear();
  return status == OK;
}

/* Products of operands whose rows, or whose depths, are contiguous; of whole matrices and of parts;
 * all of C, or a triangle of it. */
static int products_check(const struct dense_way *way, idx n)
{
  int good = 1;
  for (int odd = 0; odd < 2; odd++)
    for (int deep = 0; deep < 4; deep++)
      for (int part = PART_ALL; part <= PART_UPPER; part++) {
        gidx stride = n + (n + odd) % 2;
        struct dense_operand rows = {NULL, 1, stride, 0, 0}, depths = {NULL, stride, 1, 0, 0};
        struct dense_product p = {.a = deep & 1 ? depths : rows,
                                  .b = deep & 2 ? depths : rows,
                                  .row_begin = n / 5,
                                  .row_end = n - odd,
                                  .column_begin = odd ? 1 : n / 3,
                                  .column_end = deep ? n : (idx)imin(n, n / 3 + 50),
                                  .depth_begin = deep == 2 ? 3 : 0,
                                  .depth_end = n - deep,
                                  .stride = stride,
                                  .part = (enum dense_part)part};
        p.a.negative = part == PART_LOWER;
        good &= product_check(way, n, p);
      }
  return good;
}

/* C = Z'Z, added to +0, as for the covariance.  Z is lower triangular. */
static int triangles_check(const struct dense_way *way, idx n)
{
  struct dense_problem q;
  struct dense d = {0};
  struct buffer z = {0}, c = {0};
  int status = dense_problem_open(&q, n, DENSE_DEFINITE);
  idx begin = n / 4;
  gidx stride = n - begin;
  if (!status) status = dense_open(&d, way->dev, way->panel, n);
  if (!status) status = buffer_wrap(way->dev, &z, q.inverse, dense_bytes(&q));
  if (!status) status = buffer_alloc(way->dev, &c, stride * stride * (gidx)sizeof(real));
  if (!status) status = device_put(way->dev, &z, 0, z.bytes);
  struct dense_operand side = {z.device, q.stride, 1, 0, 1};
  struct dense_product p = {side, side, begin, n, begin, n, begin, n, c.device, stride, PART_LOWER};
  if (!status) status = dense_product(&d, &p);
  if (!status) status = device_get(way->dev, &c, 0, c.bytes);
  int good = status == OK;
  for (idx j = begin; j < n && good; j++)
    for (idx i = begin; i < n && good; i++) {
      real want = i < j ? 0 : inverse_entry(q.inverse, n, q.stride, i, j);
      good = memcmp(&want, (real *)c.host + (i - begin) + (j - begin) * stride, sizeof want) == 0;
      if (!good) printf("# n=%d: entry (%d, %d) of Z'Z differs\n", n, i, j);
    }
  if (status) printf("# %s\n", status_message());
  status_clear();
  buffer_free(way->dev, &z);
  buffer_free(way->dev, &c);
  dense_close(&d);
  arena_free(&q.arena);
  return good;
}

#endif
