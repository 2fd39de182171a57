/* SPDX-License-Identifier: BSD-3-Clause
 * Operations of a GPU's matrix unit, and a trial of it.  The trial multiplies fixed numbers.  Each
 * sum occurs at many places of the tiles.  It must be close to the exact sum, and must have the
 * same bits at all places. */
#include "device/tensor.h"

#include <math.h>

#include "base/fingerprint.h"
#include "base/memory.h"
#include "base/num.h"
#include "base/rng.h"
#include "base/status.h"
#include "device/backend.h"

int device_tensor_has(const struct device *dev, enum precision precision)
{
  const char *name = precision_name(precision);
  CHECK(precision > PRECISION_F32 && precision < PRECISIONS, ERR_INTERNAL,
        "no matrix unit makes products in %s", name);
  CHECK(dev->backend && dev->backend->tensor_peak, ERR_DEVICE,
        "products in %s are made by the matrix unit of a GPU, and the device is '%s': give "
        "'--device cuda' on a host with one, or '--precision f32'",
        name, dev->backend ? dev->backend->kind : "dry");
  return OK;
}

double device_tensor_peak(const struct device *dev, enum precision precision)
{
  return dev->backend->tensor_peak(dev, precision);
}

static int stored_check(const struct device *dev, enum precision precision,
                        struct tensor_stored stored)
{
  int is_stored = stored.left || stored.right || stored.result;
  TRY(device_tensor_has(dev, precision));
  CHECK(!is_stored || precision != PRECISION_TF32, ERR_INTERNAL, "tf32 is f32 in memory");
  return OK;
}

int device_tensor_product(struct device *dev, enum precision precision,
                          const struct triad_product *p, struct tensor_stored stored, void *work)
{
  TRY(stored_check(dev, precision, stored));
  TRY(device_triad_product_check(p));
  return dev->backend->tensor_product(dev, precision, p, stored, work);
}

int device_tensor_gradient(struct device *dev, enum precision precision,
                           const struct triad_gradient *g, struct tensor_stored stored, void *work)
{
  TRY(stored_check(dev, precision, stored));
  TRY(device_triad_gradient_check(g));
  CHECK(!stored.result, ERR_INTERNAL, "a gradient is f32");
  return dev->backend->tensor_gradient(dev, precision, g, stored, work);
}

gidx device_tensor_product_bytes(const struct device *dev, enum precision precision,
                                 const struct triad_product *p, struct tensor_stored stored)
{
  int has = dev->backend && dev->backend->tensor_product_bytes;
  return has ? dev->backend->tensor_product_bytes(dev, precision, p, stored) : 0;
}

gidx device_tensor_gradient_bytes(const struct device *dev, enum precision precision,
                                  const struct triad_gradient *g, struct tensor_stored stored)
{
  int has = dev->backend && dev->backend->tensor_gradient_bytes;
  return has ? dev->backend->tensor_gradient_bytes(dev, precision, g, stored) : 0;
}

/* Sizes of the trial.  There are only a few different rows and columns, and each is repeated in
 * more than one tile. */
enum {
  TRIAL_ROWS = 300,
  TRIAL_COLUMNS = 600,
  TRIAL_DEPTH = 333,
  ROW_KINDS = 37,
  COLUMN_KINDS = 41
};

struct trial {
  float *x, *w, *y; /* [ROWS][DEPTH], [COLUMNS][DEPTH], [ROWS][COLUMNS] */
  struct buffer on_x, on_w, on_y, work;
  struct arena arena;
};

/* Number c of vector i.  A unit that truncates terms in its sums makes errors of its own kind in
 * each of the cases below. */
static float trial_number(uint64_t stream, idx i, idx c)
{
  uint64_t at = (uint64_t)i * TRIAL_DEPTH + (uint64_t)c;
  float x = (float)random_normal(45, stream, at);
  switch (i % 6) {
  case 0: /* like data */
    return x;
  case 1: /* every size */
    return ldexpf(x, (int)random_below(45, stream + 2, at, 24) - 12);
  case 2: /* one large term first: all later terms are truncated against it */
    return c == 0 ? 512 : fabsf(x);
  case 3: /* one large term last */
    return c == TRIAL_DEPTH - 1 ? 512 : fabsf(x);
  case 4: /* same sign and nearly equal: truncation errors add up */
    return 2 - 0x1p-10f * (float)(c % 3);
  default: /* one large term in every sixteen */
    return c % 16 == 0 ? x : 0x1p-9f * x;
  }
}

static void trial_fill(struct trial *t)
{
  for (idx i = 0; i < TRIAL_ROWS; i++)
    for (idx c = 0; c < TRIAL_DEPTH; c++)
      t->x[i * TRIAL_DEPTH + c] = trial_number(1, i % ROW_KINDS, c);
  for (idx j = 0; j < TRIAL_COLUMNS; j++)
    for (idx c = 0; c < TRIAL_DEPTH; c++)
      t->w[j * TRIAL_DEPTH + c] = trial_number(2, j % COLUMN_KINDS, c);
}

static struct triad_product trial_product(const struct trial *t)
{
  return (struct triad_product){t->on_x.device, {t->on_w.device, 1, TRIAL_DEPTH},
                                NULL,           t->on_y.device,
                                TRIAL_DEPTH,    TRIAL_COLUMNS,
                                TRIAL_ROWS,     TRIAL_DEPTH,
                                TRIAL_COLUMNS};
}

static int trial_open(struct trial *t, struct device *dev, enum precision precision)
{
  gidx item = (gidx)sizeof(float);
  TRY(arena_alloc(&t->arena, &t->x, TRIAL_ROWS * TRIAL_DEPTH, sizeof *t->x));
  TRY(arena_alloc(&t->arena, &t->w, TRIAL_COLUMNS * TRIAL_DEPTH, sizeof *t->w));
  TRY(arena_alloc(&t->arena, &t->y, TRIAL_ROWS * TRIAL_COLUMNS, sizeof *t->y));
  trial_fill(t);
  TRY(buffer_wrap(dev, &t->on_x, t->x, TRIAL_ROWS * TRIAL_DEPTH * item));
  TRY(buffer_wrap(dev, &t->on_w, t->w, TRIAL_COLUMNS * TRIAL_DEPTH * item));
  TRY(buffer_wrap(dev, &t->on_y, t->y, TRIAL_ROWS * TRIAL_COLUMNS * item));
  struct triad_product p = trial_product(t);
  return buffer_alloc_device(dev, &t->work, device_triad_product_bytes(dev, precision, &p));
}

static int trial_run(struct trial *t, struct device *dev, enum precision precision)
{
  struct triad_product p = trial_product(t);
  TRY(device_put(dev, &t->on_x, 0, t->on_x.bytes));
  TRY(device_put(dev, &t->on_w, 0, t->on_w.bytes));
  TRY(device_triad_product(dev, precision, &p, t->work.device));
  return device_get(dev, &t->on_y, 0, t->on_y.bytes);
}

/* Is the sum of row i and column j as close to the exact one as (N.45) demands? */
static int sum_near(const struct trial *t, enum precision precision, idx i, idx j)
{
  double sum = 0, sizes = 0;
  for (idx c = 0; c < TRIAL_DEPTH; c++) {
    double product = (double)precision_round(t->x[i * TRIAL_DEPTH + c], precision) *
                     (double)precision_round(t->w[j * TRIAL_DEPTH + c], precision);
    sum += product;
    sizes += fabs(product);
  }
  return fabs((double)t->y[i * TRIAL_COLUMNS + j] - sum) <= TRIAL_DEPTH * 0x1p-23 * sizes;
}

static int trial_evaluate(const struct trial *t, enum precision precision)
{
  for (idx i = 0; i < ROW_KINDS; i++)
    for (idx j = 0; j < COLUMN_KINDS; j++)
      CHECK(sum_near(t, precision, i, j), ERR_DEVICE,
            "the GPU's matrix unit adds %s otherwise than this build knows: use '--precision f32'",
            precision_name(precision));
  for (idx i = 0; i < TRIAL_ROWS; i++)
    for (idx j = 0; j < TRIAL_COLUMNS; j++) {
      float first = t->y[i % ROW_KINDS * TRIAL_COLUMNS + j % COLUMN_KINDS];
      CHECK(t->y[i * TRIAL_COLUMNS + j] == first, ERR_DEVICE,
            "the GPU's matrix unit gives other sums in %s at other places of a tile: use "
            "'--precision f32'",
            precision_name(precision));
    }
  return OK;
}

int device_tensor_probe(struct device *dev, enum precision precision, uint64_t *unit)
{
  struct trial t = {0};
  TRY(device_tensor_has(dev, precision));
  int status = trial_open(&t, dev, precision);
  if (!status) status = trial_run(&t, dev, precision);
  if (!status) status = trial_evaluate(&t, precision);
  if (!status) *unit = fingerprint(t.y, TRIAL_ROWS * TRIAL_COLUMNS, sizeof *t.y, 0) | 1;
  buffer_free(dev, &t.on_x);
  buffer_free(dev, &t.on_w);
  buffer_free(dev, &t.on_y);
  buffer_free(dev, &t.work);
  arena_free(&t.arena);
  return status;
}
