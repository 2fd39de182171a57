/* SPDX-License-Identifier: BSD-3-Clause
 * Random arrow systems for tests, healthy or with a chosen kind of trouble. */
#ifndef TESTS_ARROW_DATA_H
#define TESTS_ARROW_DATA_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "device/arrow.h"

/* Kinds of trouble:
 *   0  none
 *   1  one or two row blocks are not positive definite
 *   2  the border is not positive definite
 *   3  an entry is not finite
 *   4  an entry above a diagonal is not finite; solvers read only lower triangles */
enum { STREAM_TEST = 900 };

static real *reals_make(gidx count, uint64_t seed, uint64_t part)
{
  real *x = malloc((size_t)(count + 1) * sizeof *x);
  for (gidx i = 0; i < count; i++) x[i] = random_normal(seed, STREAM_TEST + part, (uint64_t)i);
  return x;
}

static void trouble_make(struct arrow_system *s, uint64_t seed, int kind)
{
  gidx d = s->d, k = s->k, n = s->n, at = n * 2 / 3;
  real *h = (real *)s->h, *c = (real *)s->c;
  if (kind == 1 && n > 0) {
    h[at * d * d + (d * d - 1)] = seed % 2 ? -0.5 : 0;
    h[(n - 1) * d * d] = -3;
  }
  if (kind == 2 && k > 0) c[(k - 1) * k + k - 1] = 1e-3;
  if (kind == 3) {
    real *parts[] = {h, (real *)s->b, (real *)s->g, c, (real *)s->g_b};
    gidx counts[] = {n * d * d, n * d * k, n * d, k * k, k};
    static const real bad[] = {NAN, INFINITY, -INFINITY};
    for (uint64_t i = 0; i < 5; i++) {
      gidx part = (gidx)((seed + i) % 5);
      if (counts[part] == 0) continue;
      parts[part][part % 3 ? counts[part] / 2 : counts[part] - 1] = bad[seed % 3];
      break;
    }
  }
  if (kind == 4 && d > 1 && n > 0) h[at * d * d + d] = NAN;
  if (kind == 4 && k > 1) c[k] = INFINITY;
}

/* A random system with trouble of this kind.  Without trouble its blocks are diagonally
 * dominant. */
__attribute__((unused)) static struct arrow_item item_make(idx d, idx k, gidx n, int number,
                                                           int kind)
{
  uint64_t seed = (uint64_t)number;
  real *h = reals_make(n * d * d, seed, 0), *c = reals_make((gidx)k * k, seed, 1);
  for (gidx i = 0; i < n; i++)
    for (gidx m = 0; m < d; m++) h[i * d * d + m * d + m] = 5 * d + h[i * d * d + m * d + m];
  for (gidx j = 0; j < k; j++) c[j * k + j] = 5. * k + (real)n * k;
  struct arrow_item item = {.system = {.d = d,
                                       .k = k,
                                       .n = n,
                                       .h = h,
                                       .b = reals_make(n * d * k, seed, 2),
                                       .g = reals_make(n * d, seed, 3),
                                       .c = c,
                                       .g_b = reals_make(k, seed, 4)}};
  item.step_t = malloc((size_t)(n * d + 1) * sizeof(real));
  item.step_b = malloc((size_t)(k + 1) * sizeof(real));
  trouble_make(&item.system, seed, kind);
  return item;
}

__attribute__((unused)) static void item_scale(struct arrow_item *item, int part, real scale)
{
  gidx d = item->system.d, k = item->system.k, n = item->system.n;
  const real *parts[] = {item->system.h, item->system.b, item->system.g, item->system.c,
                         item->system.g_b};
  gidx counts[] = {n * d * d, n * d * k, n * d, k * k, k};
  for (gidx i = 0; i < counts[part]; i++) ((real *)parts[part])[i] *= scale;
}

static void item_free_steps(struct arrow_item *item)
{
  free(item->step_t);
  free(item->step_b);
}

__attribute__((unused)) static void item_free(struct arrow_item *item)
{
  item_free_steps(item);
  free((real *)item->system.h);
  free((real *)item->system.b);
  free((real *)item->system.g);
  free((real *)item->system.c);
  free((real *)item->system.g_b);
}

/* The same system, with its own arrays for the steps. */
__attribute__((unused)) static struct arrow_item item_copy(const struct arrow_item *item)
{
  struct arrow_item copy = *item;
  copy.step_t = malloc((size_t)(item->system.n * item->system.d + 1) * sizeof(real));
  copy.step_b = malloc((size_t)(item->system.k + 1) * sizeof(real));
  return copy;
}

__attribute__((unused)) static struct arrow_item item_reference(const struct arrow_item *item,
                                                                const struct arrow_options *o)
{
  struct arrow_item out = item_copy(item);
  real *work = malloc((size_t)arrow_work(item->system.d, item->system.k) * sizeof *work);
  arrow_reference(&out.system, o, out.start, out.step_t, out.step_b, &out.outcome, work);
  free(work);
  return out;
}

/* A sum of terms, and the sum of their absolute values. */
struct residual {
  long double left, size;
};

static void residual_add(struct residual *r, long double a, long double x)
{
  r->left += a * x;
  r->size += fabsl(a * x);
}

static void residual_worst(const struct residual *r, real *worst)
{
  if (r->left != 0) *worst = fmax(*worst, (real)(fabsl(r->left) / r->size));
}

/* The componentwise backward error of Oettli and Prager: the largest |A x - r|_i / (|A| |x| +
 * |r|)_i over all rows i of the system A x = r, ridges included.  With off > 0 the steps are first
 * multiplied by 1 - off and 1 + off in turn, a fault that the error has to show. */
__attribute__((unused)) static real item_backward(const struct arrow_item *item,
                                                  const struct arrow_options *o, real off)
{
  const struct arrow_system *s = &item->system;
  gidx d = s->d, k = s->k;
  real worst = 0;
  struct residual *border = calloc((size_t)k + 1, sizeof *border);
#define STEP(x, j) ((x)[j] * (1 + ((j) % 2 ? (long double)off : -(long double)off)))
  for (gidx i = 0; i < s->n; i++)
    for (gidx m = 0; m < d; m++) {
      struct residual r = {0};
      residual_add(&r, s->g[i * d + m], 1);
      residual_add(&r, o->ridge_t, STEP(item->step_t, i * d + m));
      for (gidx l = 0; l < d; l++)
        residual_add(&r, s->h[i * d * d + (m < l ? m * d + l : l * d + m)],
                     STEP(item->step_t, i * d + l));
      for (gidx c = 0; c < k; c++) {
        long double b = s->b[i * d * k + c * d + m];
        residual_add(&r, b, STEP(item->step_b, c));
        residual_add(&border[c], b, STEP(item->step_t, i * d + m));
      }
      residual_worst(&r, &worst);
    }
  for (gidx c = 0; c < k; c++) {
    residual_add(&border[c], s->g_b[c], 1);
    residual_add(&border[c], o->ridge_b, STEP(item->step_b, c));
    for (gidx j = 0; j < k; j++)
      residual_add(&border[c], s->c[c < j ? c * k + j : j * k + c], STEP(item->step_b, j));
    residual_worst(&border[c], &worst);
  }
#undef STEP
  free(border);
  return worst;
}

__attribute__((unused)) static void item_poison(struct arrow_item *item)
{
  memset(item->step_t, 0x5a, (size_t)(item->system.n * item->system.d) * sizeof(real));
  memset(item->step_b, 0x5a, (size_t)item->system.k * sizeof(real));
  memset(&item->outcome, 0x5a, sizeof item->outcome);
}

static int same_bits(const void *a, const void *b, gidx count)
{
  return memcmp(a, b, (size_t)count * sizeof(real)) == 0;
}

__attribute__((unused)) static int item_same(const struct arrow_item *a, const struct arrow_item *b)
{
  const struct arrow_outcome *x = &a->outcome, *y = &b->outcome;
  return x->status == y->status && x->failed_at == y->failed_at && x->retries == y->retries &&
         x->pair.e == y->pair.e && same_bits(&x->suggested_bump, &y->suggested_bump, 1) &&
         same_bits(&x->ridge_t, &y->ridge_t, 1) && same_bits(&x->ridge_b, &y->ridge_b, 1) &&
         same_bits(&x->addition.t, &y->addition.t, 2) && same_bits(&x->pair.m, &y->pair.m, 1) &&
         same_bits(&x->log_det, &y->log_det, 1) &&
         same_bits(a->step_t, b->step_t, a->system.n * a->system.d) &&
         same_bits(a->step_b, b->step_b, a->system.k);
}

#endif
