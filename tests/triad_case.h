/* SPDX-License-Identifier: BSD-3-Clause
 * Problems for products and gradients of dense matrices, and functions that copy their arrays to a
 * device and results back. */
#ifndef TESTS_TRIAD_CASE_H
#define TESTS_TRIAD_CASE_H

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/num.h"
#include "base/rng.h"
#include "device/tensor.h"
#include "device_how.h"

struct triad_shape {
  idx m, k, n;
};

enum triad_values { VALUES_NORMAL, VALUES_WILD, VALUES_NONE };

/* The arrays of a problem: x[m][k], w[k][n], dy[m][n], bias[n], and arrays for results. */
struct triad_case {
  struct triad_shape z;
  enum triad_values values;
  float *x, *w, *dy, *bias, *start; /* start[k][n]: to which a gradient is added */
  float *wanted, *got;              /* each as large as the largest of the three results */
  struct arena arena;
};

static float triad_value(uint64_t stream, gidx i, enum triad_values kind)
{
  float value = (float)random_normal(7, stream, (uint64_t)i);
  if (kind == VALUES_NORMAL) return value;
  switch (random_below(8, stream, (uint64_t)i, 41)) {
  case 0:
    return INFINITY;
  case 1:
    return -NAN;
  case 2:
    return value * 0x1p-140f;
  case 3:
    return -0.0f;
  case 4:
    return value * 0x1p80f;
  default:
    return value * 0x1p-70f;
  }
}

static float *triad_array(struct triad_case *c, gidx n, uint64_t stream, enum triad_values kind)
{
  float *values;
  if (arena_alloc(&c->arena, &values, n, sizeof *values)) return NULL;
  for (gidx i = 0; i < n && stream && kind != VALUES_NONE; i++)
    values[i] = triad_value(stream, i, kind);
  return values;
}

static inline void triad_case_make(struct triad_case *c, struct triad_shape z,
                                   enum triad_values kind)
{
  gidx m = z.m, k = z.k, n = z.n, most = imax(imax(m * k, m * n), k * n);
  *c = (struct triad_case){.z = z, .values = kind};
  c->x = triad_array(c, m * k, 1, kind);
  c->w = triad_array(c, k * n, 2, kind);
  c->dy = triad_array(c, m * n, 3, kind);
  c->bias = triad_array(c, n, 4, kind);
  c->start = triad_array(c, k * n, 5, kind);
  c->wanted = triad_array(c, most, 0, kind);
  c->got = triad_array(c, most, 0, kind);
}

/* Three operations: the forward product, to y[m][n]; the back product, to dx[m][k]; and the
 * gradient, which is added to dw[k][n].  triad_gradient_of() first copies c->start to dw. */
static inline struct triad_product triad_forward_of(const struct triad_case *c, const float *bias,
                                                    float *y)
{
  idx k = c->z.k, n = c->z.n;
  return (struct triad_product){c->x, {c->w, n, 1}, bias, y, k, n, c->z.m, k, n};
}

static inline struct triad_product triad_back_of(const struct triad_case *c, float *dx)
{
  idx k = c->z.k, n = c->z.n;
  return (struct triad_product){c->dy, {c->w, 1, n}, NULL, dx, n, k, c->z.m, n, k};
}

static inline struct triad_gradient triad_gradient_of(const struct triad_case *c, float *dw)
{
  idx k = c->z.k, n = c->z.n;
  memcpy(dw, c->start, (size_t)k * (size_t)n * sizeof *dw);
  return (struct triad_gradient){c->x, c->dy, dw, k, n, n, c->z.m, k, n};
}

/* Arrays on the device during an operation whose arrays are on the host. */
enum { MAX_SIDES = 12 };
struct triad_side {
  struct device *dev;
  struct buffer all[MAX_SIDES];
  int count, status;
};

/* Copy an array to the device.  Returns its address there; NULL for NULL. */
static void *side_put(struct triad_side *s, const void *host, gidx bytes)
{
  struct buffer *b = &s->all[s->count];
  if (!host || s->status) return NULL;
  s->count++;
  s->status = buffer_wrap(s->dev, b, (void *)host, bytes);
  if (!s->status) s->status = device_put(s->dev, b, 0, bytes);
  return b->device;
}

/* Copy the last `results` arrays back to the host, and free all arrays on the device.  Returns the
 * status. */
static int side_end(struct triad_side *s, int results)
{
  for (int i = s->count - results; i < s->count && !s->status; i++)
    s->status = device_get(s->dev, &s->all[i], 0, s->all[i].bytes);
  for (int i = 0; i < s->count; i++) buffer_free(s->dev, &s->all[i]);
  return s->status;
}

static gidx floats(gidx lines, gidx stride, gidx last)
{
  return ((lines - 1) * stride + last) * (gidx)sizeof(float);
}

/* Allocate work space on the device; NULL if bytes is 0. */
static void *side_work(struct triad_side *s, gidx bytes)
{
  struct buffer *b = &s->all[s->count];
  if (!bytes || s->status) return NULL;
  s->count++;
  s->status = buffer_alloc_device(s->dev, b, bytes);
  return b->device;
}

static int side_calls; /* every second call gives no work space; a GPU then uses its own */

static inline int side_product(struct device *dev, enum precision precision,
                               const struct triad_product *p)
{
  struct triad_side s = {.dev = dev};
  gidx bytes = device_triad_product_bytes(dev, precision, p);
  void *work = side_work(&s, side_calls++ % 2 ? bytes : 0);
  struct triad_product on = *p;
  int turned = p->w.in == 1 && p->k > 1;
  on.x = side_put(&s, p->x, floats(p->m, p->x_stride, p->k));
  on.w.at = side_put(&s, p->w.at,
                     turned || p->w.out != 1 ? floats(p->n, p->w.out, p->k)
                                             : floats(p->k, p->w.in, p->n));
  on.bias = side_put(&s, p->bias, p->n * (gidx)sizeof(float));
  on.y = side_put(&s, p->y, floats(p->m, p->y_stride, p->n));
  if (!s.status) s.status = device_triad_product(dev, precision, &on, work);
  return side_end(&s, 1);
}

static inline int side_gradient(struct device *dev, enum precision precision,
                                const struct triad_gradient *g)
{
  struct triad_side s = {.dev = dev};
  gidx bytes = device_triad_gradient_bytes(dev, precision, g);
  void *work = side_work(&s, side_calls++ % 2 ? bytes : 0);
  struct triad_gradient on = *g;
  on.x = side_put(&s, g->x, floats(g->m, g->x_stride, g->k));
  on.dy = side_put(&s, g->dy, floats(g->m, g->dy_stride, g->n));
  on.dw = side_put(&s, g->dw, floats(g->k, g->dw_stride, g->n));
  if (!s.status) s.status = device_triad_gradient(dev, precision, &on, work);
  return side_end(&s, 1);
}

#endif
