/* SPDX-License-Identifier: BSD-3-Clause
 * Products, gradients, sparse forms and Adam: arguments are checked here, once for all backends. */
#include "device/triad.h"

#include "base/status.h"
#include "device/backend.h"
#include "device/tensor.h"

/* ERR_DEVICE unless the device's table has the operations. */
static int device_has(const struct device *dev, int has)
{
  CHECK(has, ERR_DEVICE, "a device of kind '%s' has no operations for training",
        dev->backend ? dev->backend->kind : "dry");
  return OK;
}

static int shape_check(const char *what, idx m, idx k, idx n)
{
  CHECK(m > 0 && k > 0 && n > 0, ERR_INTERNAL, "a %s of %d rows, %d inputs and %d outputs", what, m,
        k, n);
  return OK;
}

int device_triad_product_check(const struct triad_product *p)
{
  const struct triad_weights *w = &p->w;
  TRY(shape_check("product", p->m, p->k, p->n));
  CHECK(p->x_stride >= p->k && p->y_stride >= p->n, ERR_INTERNAL,
        "rows at strides of %lld and %lld, with %d inputs and %d outputs", (long long)p->x_stride,
        (long long)p->y_stride, p->k, p->n);
  CHECK((w->out == 1 && w->in >= p->n) || (w->in == 1 && w->out >= p->k), ERR_INTERNAL,
        "weights at strides of %lld and %lld", (long long)w->in, (long long)w->out);
  return OK;
}

/* Can the device make products in this precision? */
static int precision_check(const struct device *dev, enum precision precision)
{
  TRY(device_has(dev, dev->backend && dev->backend->triad_product));
  return precision == PRECISION_F32 ? OK : device_tensor_has(dev, precision);
}

int device_triad_product(struct device *dev, enum precision precision,
                         const struct triad_product *p, void *work)
{
  TRY(precision_check(dev, precision));
  TRY(device_triad_product_check(p));
  return dev->backend->triad_product(dev, precision, p, work);
}

gidx device_triad_product_bytes(const struct device *dev, enum precision precision,
                                const struct triad_product *p)
{
  int has = dev->backend && dev->backend->triad_product_bytes;
  return has ? dev->backend->triad_product_bytes(dev, precision, p) : 0;
}

int device_triad_gradient_check(const struct triad_gradient *g)
{
  TRY(shape_check("gradient", g->m, g->k, g->n));
  CHECK(g->x_stride >= g->k && g->dy_stride >= g->n && g->dw_stride >= g->n, ERR_INTERNAL,
        "rows at strides of %lld, %lld and %lld, with %d inputs and %d outputs",
        (long long)g->x_stride, (long long)g->dy_stride, (long long)g->dw_stride, g->k, g->n);
  return OK;
}

int device_triad_gradient(struct device *dev, enum precision precision,
                          const struct triad_gradient *g, void *work)
{
  TRY(precision_check(dev, precision));
  TRY(device_triad_gradient_check(g));
  return dev->backend->triad_gradient(dev, precision, g, work);
}

gidx device_triad_gradient_bytes(const struct device *dev, enum precision precision,
                                 const struct triad_gradient *g)
{
  int has = dev->backend && dev->backend->triad_gradient_bytes;
  return has ? dev->backend->triad_gradient_bytes(dev, precision, g) : 0;
}

static int lists_check(const struct device *dev, const struct triad_lists *l)
{
  TRY(device_has(dev, dev->backend && dev->backend->triad_sparse));
  CHECK(l->count >= 0 && l->width > 0, ERR_INTERNAL, "%lld lists of rows of %d numbers",
        (long long)l->count, l->width);
  return OK;
}

int device_triad_sparse(struct device *dev, const struct triad_lists *l, float *out)
{
  TRY(lists_check(dev, l));
  return l->count ? dev->backend->triad_sparse(dev, l, 0, out) : OK;
}

int device_triad_sparse_gradient(struct device *dev, const struct triad_lists *l, float *out)
{
  TRY(lists_check(dev, l));
  return l->count ? dev->backend->triad_sparse(dev, l, 1, out) : OK;
}

int device_triad_dots(struct device *dev, const struct triad_lists *l, const float *rows,
                      float *out)
{
  TRY(lists_check(dev, l));
  return l->count ? dev->backend->triad_dots(dev, l, rows, out) : OK;
}

int device_adam(struct device *dev, const struct adam_state *s, const struct adam_rates *rates)
{
  TRY(device_has(dev, dev->backend && dev->backend->adam));
  return s->count > 0 ? dev->backend->adam(dev, s, rates) : OK;
}
