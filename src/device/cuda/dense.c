/* SPDX-License-Identifier: BSD-3-Clause
 * The factor is made in panels of FACTOR_WIDTH columns.  One product applies earlier columns to a
 * panel, and then dense_factor finishes the panel.  Up to FACTOR_OUTER finished columns are applied
 * together to all columns on their right: on the stream of panels to the columns that come next,
 * and at the same time on the computing stream to all others.  The inverse is made on the computing
 * stream alone, in blocks of FACTOR_OUTER rows from the first one on.  No launch waits for the
 * host. */
#include "device/cuda/dense.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "device/cuda/load.h"

enum { THREADS = 256 }; /* of a block, for kernels whose speed hardly depends on it */

struct dense_state {
  struct buffer work;   /* columns of a factor that is inverted; diagonal blocks of a new factor */
  struct buffer pivots; /* [max_n] */
  struct buffer good;   /* int */
  cudaStream_t panels;
  /* panel: some columns are finished.  rest: they are applied to all columns on their right except
   * the outer_of() columns that come next. */
  cudaEvent_t panel, rest;
};

static int state_alloc(struct dense *d)
{
  struct dense_state *s = d->state;
  int least, greatest;
  TRY(buffer_alloc_device(d->device, &s->work, plan_dense_work(d->max_n)));
  TRY(buffer_alloc(d->device, &s->pivots, (gidx)d->max_n * (gidx)sizeof(real)));
  TRY(buffer_alloc(d->device, &s->good, (gidx)sizeof(int)));
  TRY_CU(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  TRY_CU(cudaStreamCreateWithPriority(&s->panels, cudaStreamNonBlocking, greatest));
  TRY_CU(cudaEventCreateWithFlags(&s->panel, cudaEventDisableTiming));
  TRY_CU(cudaEventCreateWithFlags(&s->rest, cudaEventDisableTiming));
  return OK;
}

int cuda_dense_open(struct dense *d)
{
  d->state = calloc(1, sizeof *d->state);
  CHECK(d->state, ERR_MEMORY, "cannot allocate %zu bytes", sizeof *d->state);
  return state_alloc(d);
}

void cuda_dense_close(struct dense *d)
{
  struct dense_state *s = d->state;
  if (s->panels) cudaStreamDestroy(s->panels);
  if (s->panel) cudaEventDestroy(s->panel);
  if (s->rest) cudaEventDestroy(s->rest);
  buffer_free(d->device, &s->work);
  buffer_free(d->device, &s->pivots);
  buffer_free(d->device, &s->good);
  free(s);
}

/* 0: tiles of 128 x 128, if these occupy most multiprocessors.  Otherwise 1: 128 x 64, or 2: 64 x
 * 64. */
static int narrow_of(const struct device *dev, gidx rows, gidx columns)
{
  const struct cuda_state *s = dev->state;
  gidx enough = s->sizes.multiprocessors * 2 / 3, down = ceil_div(rows, PRODUCT_ROWS);
  if (columns > FACTOR_WIDTH && down * ceil_div(columns, PRODUCT_ROWS) >= enough) return 0;
  return down * ceil_div(columns, PRODUCT_ROWS / 2) >= enough ? 1 : 2;
}

static int product_launch(struct device *dev, struct product_args *a, cudaStream_t stream)
{
  const struct cuda_state *s = dev->state;
  idx rows = a->row_end - a->row_begin, columns = a->column_end - a->column_begin;
  struct kernel_shape shape = {.mma = s->architecture == 90,
                               .deep_a = a->a.row != 1,
                               .deep_b = a->b.row != 1,
                               .narrow = narrow_of(dev, imax(rows, 0), imax(columns, 0)),
                               .large = s->shared >= PRODUCT_LARGE};
  struct product_form form = product_form_of(shape.deep_a, shape.deep_b, shape.narrow, shape.large);
  gidx tiles = ceil_div(imax(rows, 0), form.rows) * ceil_div(imax(columns, 0), form.columns);
  struct cuda_launch l = {.name = KERNEL_DENSE_PRODUCT,
                          .shape = shape,
                          .grid = {(unsigned)tiles, 1, 1},
                          .block = {WARP, PRODUCT_WARPS, 1},
                          .shared = product_shared_bytes(form),
                          .arguments = a,
                          .stream = stream};
  return tiles > 0 && a->depth_end > a->depth_begin ? cuda_launch(dev, &l) : OK;
}

/* Launch a one-dimensional grid. */
static int launch(struct device *dev, enum kernel_name name, gidx blocks, int threads, int shared,
                  void *arguments, cudaStream_t stream)
{
  struct cuda_launch l = {.name = name,
                          .grid = {(unsigned)blocks, 1, 1},
                          .block = {(unsigned)threads, 1, 1},
                          .shared = shared,
                          .arguments = arguments,
                          .stream = stream};
  return blocks > 0 ? cuda_launch(dev, &l) : OK;
}

/* Apply columns from .. to - 1 of the factor to columns first .. end - 1, from row `first` down. */
static int columns_apply(struct dense *d, const struct factor_args *f, idx first, idx end, idx from,
                         idx to, cudaStream_t stream)
{
  struct product_args a = {.a = {f->s, 1, f->stride, 0},
                           .b = {f->s, 1, f->stride, 0},
                           .c = f->s + first + first * f->stride,
                           .c_row = 1,
                           .c_column = f->stride,
                           .row_begin = first,
                           .row_end = f->n,
                           .column_begin = first,
                           .column_end = end,
                           .depth_begin = from,
                           .depth_end = to,
                           .is_negative = 1,
                           .most = INT_MAX};
  return product_launch(d->device, &a, stream);
}

/* Finish columns begin .. end - 1, panel by panel. */
static int panels_factor(struct dense *d, struct factor_args *f, idx begin, idx end)
{
  cudaStream_t stream = d->state->panels;
  for (f->first = begin; f->first < end; f->first += FACTOR_WIDTH) {
    idx next = (idx)imin(f->first + FACTOR_WIDTH, end);
    gidx blocks = imax(ceil_div(f->n - next, FACTOR_ROWS), 1);
    TRY(columns_apply(d, f, f->first, next, begin, f->first, stream));
    TRY(launch(d->device, KERNEL_DENSE_FACTOR, blocks, FACTOR_THREADS, FACTOR_SHARED, f, stream));
  }
  return OK;
}

/* Columns that are applied together.  Fewer for a small matrix, where the columns on their right
 * are needed soon. */
static idx outer_of(idx n)
{
  return n <= 4096 ? FACTOR_OUTER / 4 : n <= 8192 ? FACTOR_OUTER / 2 : FACTOR_OUTER;
}

/* Apply the finished columns begin .. end - 1 to everything on their right.  The columns that come
 * next wait until all columns before them have been applied. */
static int outer_apply(struct dense *d, const struct factor_args *f, idx begin, idx end)
{
  struct dense_state *s = d->state;
  cudaStream_t others = ((struct cuda_state *)d->device->state)->stream;
  idx next = (idx)imin(end + outer_of(f->n), f->n);
  TRY_CU(cudaEventRecord(s->panel, s->panels));
  TRY_CU(cudaStreamWaitEvent(s->panels, s->rest, 0));
  TRY(columns_apply(d, f, end, next, begin, end, s->panels));
  TRY_CU(cudaStreamWaitEvent(others, s->panel, 0));
  TRY(columns_apply(d, f, next, f->n, begin, end, NULL));
  TRY_CU(cudaEventRecord(s->rest, others));
  return OK;
}

static int factor_launch(struct dense *d, struct factor_args *f)
{
  struct dense_state *s = d->state;
  cudaStream_t others = ((struct cuda_state *)d->device->state)->stream;
  TRY_CU(cudaEventRecord(s->rest, others));
  TRY_CU(cudaStreamWaitEvent(s->panels, s->rest, 0));
  for (idx begin = 0; begin < f->n; begin += outer_of(f->n)) {
    idx end = (idx)imin(begin + outer_of(f->n), f->n);
    TRY(panels_factor(d, f, begin, end));
    if (end < f->n) TRY(outer_apply(d, f, begin, end));
  }
  TRY_CU(cudaEventRecord(s->panel, s->panels));
  TRY_CU(cudaStreamWaitEvent(others, s->panel, 0));
  return launch(d->device, KERNEL_DENSE_CORNERS, ceil_div(f->n, FACTOR_WIDTH), THREADS, 0, f, NULL);
}

int cuda_cholesky(struct dense *d, real *s, idx n, gidx stride, real *pivot, idx *good)
{
  struct dense_state *w = d->state;
  struct factor_args f = {.s = s,
                          .stride = stride,
                          .n = n,
                          .corners = w->work.device,
                          .pivots = w->pivots.device,
                          .good = w->good.device};
  *good = n;
  if (n == 0) return OK;
  *(int *)w->good.host = n;
  TRY(device_put(d->device, &w->good, 0, (gidx)sizeof(int)));
  TRY(factor_launch(d, &f));
  TRY(device_get(d->device, &w->good, 0, (gidx)sizeof(int)));
  *good = *(int *)w->good.host;
  gidx known = imin(*good + 1, n);
  TRY(device_get(d->device, &w->pivots, 0, known * (gidx)sizeof(real)));
  memcpy(pivot, w->pivots.host, (size_t)known * sizeof *pivot);
  return OK;
}

/* Rows begin .. end - 1 of an inverse.  The columns begin .. end - 1 of the factor have been moved
 * to `work`, and unit vectors stand in their place. */
struct rows_block {
  real *z, *work;
  gidx stride, work_stride;
  idx begin, end;
};

/* Apply rows from .. to - 1 to rows first .. last - 1, in columns 0 .. to - 1.  Rows, columns and
 * depths count from `begin`.  The rows of the product are columns of Z. */
static int rows_apply(struct dense *d, const struct rows_block *b, idx first, idx last, idx from,
                      idx to)
{
  real *corner = b->z + b->begin + b->begin * b->stride;
  struct product_args a = {.a = {corner, b->stride, 1, 1},
                           .b = {b->work, 1, b->work_stride, 0},
                           .c = b->z + first,
                           .c_row = b->stride,
                           .c_column = 1,
                           .row_begin = -b->begin,
                           .row_end = to - b->begin,
                           .column_begin = first - b->begin,
                           .column_end = last - b->begin,
                           .depth_begin = from - b->begin,
                           .depth_end = to - b->begin,
                           .is_negative = 1,
                           .least = INT_MIN,
                           .most = INT_MAX};
  return product_launch(d->device, &a, NULL);
}

static int unit_launch(struct dense *d, const struct rows_block *b, idx n)
{
  struct unit_args a = {b->z, b->stride, n, b->begin, b->end - b->begin, b->work, b->work_stride};
  struct cuda_launch l = {.name = KERNEL_DENSE_UNIT,
                          .grid = {(unsigned)ceil_div(n - b->begin, THREADS), (unsigned)a.width, 1},
                          .block = {THREADS, 1, 1},
                          .arguments = &a};
  return cuda_launch(d->device, &l);
}

static int rows_solve(struct dense *d, const struct rows_block *b, idx first, idx last)
{
  gidx at = first - b->begin;
  struct solve_args a = {
      b->z, b->stride, first, last - first, b->work + at * (b->work_stride + 1), b->work_stride};
  return launch(d->device, KERNEL_DENSE_SOLVE, ceil_div(last, FACTOR_THREADS), FACTOR_THREADS,
                SOLVE_SHARED, &a, NULL);
}

int cuda_inverse(struct dense *d, real *l, idx n, gidx stride)
{
  struct rows_block b = {.z = l, .work = d->state->work.device, .stride = stride};
  for (; b.begin < n; b.begin = b.end) {
    b.end = (idx)imin(b.begin + FACTOR_OUTER, n);
    b.work_stride = round_up(n - b.begin, 2);
    TRY(unit_launch(d, &b, n));
    for (idx first = b.begin; first < b.end; first += FACTOR_WIDTH) {
      idx last = (idx)imin(first + FACTOR_WIDTH, b.end);
      TRY(rows_apply(d, &b, first, last, b.begin, first));
      TRY(rows_solve(d, &b, first, last));
    }
    TRY(rows_apply(d, &b, b.end, n, b.begin, b.end));
  }
  return cuda_finish(d->device->state);
}

int cuda_product(struct dense *d, const struct dense_product *p)
{
  struct product_args a = {.a = {p->a.at, p->a.row, p->a.depth, p->a.is_triangular},
                           .b = {p->b.at, p->b.row, p->b.depth, p->b.is_triangular},
                           .c = p->c,
                           .c_row = 1,
                           .c_column = p->stride,
                           .row_begin = p->row_begin,
                           .row_end = p->row_end,
                           .column_begin = p->column_begin,
                           .column_end = p->column_end,
                           .depth_begin = p->depth_begin,
                           .depth_end = p->depth_end,
                           .is_negative = p->a.negative != p->b.negative,
                           .least = p->part == PART_LOWER ? 0 : INT_MIN,
                           .most = p->part == PART_UPPER ? -1 : INT_MAX};
  CHECK((p->a.row == 1 || p->a.depth == 1) && (p->b.row == 1 || p->b.depth == 1), ERR_INTERNAL,
        "an operand has contiguous entries neither in rows nor in columns");
  TRY(product_launch(d->device, &a, NULL));
  return cuda_finish(d->device->state);
}

int cuda_entries(struct dense *d, const struct dense_entries *e)
{
  struct buffer pairs = {0}, out = {0};
  struct device *dev = d->device;
  gidx bytes = (gidx)e->count * (gidx)sizeof(real);
  int status = buffer_wrap(dev, &pairs, (void *)e->pairs, 2 * e->count * (gidx)sizeof(idx));
  if (!status) status = buffer_wrap(dev, &out, e->out, bytes);
  if (!status) status = device_put(dev, &pairs, 0, pairs.bytes);
  struct entries_args a = {e->z, e->stride, e->n, (int)e->count, pairs.device, out.device};
  if (!status)
    status = launch(dev, KERNEL_DENSE_ENTRIES, ceil_div(e->count, ENTRIES_THREADS), ENTRIES_THREADS,
                    0, &a, NULL);
  if (!status) status = device_get(dev, &out, 0, bytes);
  buffer_free(dev, &pairs);
  buffer_free(dev, &out);
  return status;
}
