/* SPDX-License-Identifier: BSD-3-Clause
 * Both operands are narrowed, which turns them where their depths are not beside each other; then
 * blocks walk over the tiles of the result. */
#include "device/cuda/tensor.h"

#include "base/num.h"
#include "base/status.h"
#include "device/cuda/load.h"
#include "device/cuda/triad.h"
#include "tensor_types.h"

_Static_assert((int)TENSOR_BF16 == (int)PRECISION_BF16 && (int)TENSOR_F16 == (int)PRECISION_F16 &&
                   (int)TENSOR_TF32 == (int)PRECISION_TF32,
               "-D PRECISION");

enum {
  /* Tiles of columns of any form divide it. */
  COLUMNS_MOST = 256,
  NARROW_BLOCKS = 1 << 15,
  ALIGN = 1024
};

static int stages_of(enum precision precision, gidx depth)
{
  return (int)ceil_div(depth, tensor_depth((int)precision));
}

static gidx operand_bytes(enum precision precision, gidx lines, gidx tile, gidx depth)
{
  return round_up(round_up(lines, tile) * stages_of(precision, depth) * TENSOR_ITEM, ALIGN);
}

gidx cuda_tensor_rows_bytes(enum precision precision, gidx rows, gidx depth)
{
  return operand_bytes(precision, rows, TENSOR_ROWS, depth);
}

gidx cuda_tensor_columns_bytes(enum precision precision, gidx columns, gidx depth)
{
  return operand_bytes(precision, columns, COLUMNS_MOST, depth);
}

gidx cuda_tensor_bytes(enum precision precision, idx rows, idx columns, idx depth)
{
  return cuda_tensor_rows_bytes(precision, rows, depth) +
         cuda_tensor_columns_bytes(precision, columns, depth);
}

static int operand_narrow(struct device *dev, enum precision precision,
                          struct tensor_narrow_args *a)
{
  a->tiles = (int)ceil_div(a->lines, a->items);
  a->stages = stages_of(precision, a->depths);
  a->is_aligned = a->depth == 1 && a->line % 4 == 0 && (uintptr_t)a->in % 16 == 0;
  gidx pieces = (gidx)a->tiles * a->items * a->stages * TENSOR_PIECES;
  struct cuda_launch l = {
      .name = KERNEL_TENSOR_NARROW,
      .shape = {.precision = (int)precision},
      .grid = {(unsigned)imin(ceil_div(pieces, TENSOR_NARROW_THREADS), NARROW_BLOCKS), 1, 1},
      .block = {TENSOR_NARROW_THREADS, 1, 1},
      .arguments = a};
  return cuda_launch(dev, &l);
}

int cuda_tensor_rows(struct device *dev, enum precision precision, const struct triad_args *t,
                     void *rows)
{
  struct tensor_narrow_args a = {.in = t->a,
                                 .out = rows,
                                 .line = t->a_row,
                                 .depth = t->a_depth,
                                 .lines = t->rows,
                                 .depths = t->depth,
                                 .items = TENSOR_ROWS};
  return operand_narrow(dev, precision, &a);
}

/* Tiles of 256 lines are, to a form with tiles of 128, other ones: each is narrowed for its own. */
static int columns_narrow(struct device *dev, enum precision precision, const struct triad_args *t,
                          int vectors, void *columns)
{
  struct tensor_narrow_args a = {.in = t->b,
                                 .out = columns,
                                 .line = t->b_column,
                                 .depth = t->b_depth,
                                 .lines = t->columns,
                                 .depths = t->depth,
                                 .items = vectors};
  return operand_narrow(dev, precision, &a);
}

int cuda_tensor_columns(struct device *dev, enum precision precision, const struct triad_args *t,
                        void *columns)
{
  const struct cuda_state *s = dev->state;
  return columns_narrow(dev, precision, t, tensor_form_of(s->sizes.wgmma, 0).vectors, columns);
}

static int tiles_launch(struct device *dev, enum precision precision, const struct triad_args *t,
                        const void *rows, const void *columns, int is_gradient)
{
  const struct cuda_state *s = dev->state;
  struct tensor_form form = tensor_form_of(s->sizes.wgmma, is_gradient);
  struct tensor_args a = {.t = *t,
                          .rows = rows,
                          .columns = columns,
                          .row_tiles = (int)ceil_div(t->rows, TENSOR_ROWS),
                          .column_tiles = (int)ceil_div(t->columns, form.vectors),
                          .stages = stages_of(precision, t->depth),
                          .is_aligned = t->c_row % 2 == 0 && (uintptr_t)t->c % 8 == 0};
  gidx tiles = (gidx)a.row_tiles * a.column_tiles;
  CHECK(tiles <= INT32_MAX, ERR_INPUT, "a product of %d rows and %d columns is too large", t->rows,
        t->columns);
  struct cuda_launch l = {.name = is_gradient ? KERNEL_TENSOR_GRADIENT : KERNEL_TENSOR_PRODUCT,
                          .shape = {.wgmma = form.wgmma, .precision = (int)precision},
                          .grid = {(unsigned)imin(tiles, s->sizes.multiprocessors), 1, 1},
                          .block = {(unsigned)tensor_threads(form.wgmma), 1, 1},
                          .shared = tensor_shared_bytes(form.vectors, form.stages),
                          .arguments = &a};
  return cuda_launch(dev, &l);
}

int cuda_tensor_tiles(struct device *dev, enum precision precision, const struct triad_args *t,
                      const void *rows, const void *columns)
{
  return tiles_launch(dev, precision, t, rows, columns, 0);
}

int cuda_tensor_product(struct device *dev, enum precision precision, const struct triad_args *t,
                        void *work)
{
  char *columns = (char *)work + cuda_tensor_rows_bytes(precision, t->rows, t->depth);
  TRY(cuda_tensor_rows(dev, precision, t, work));
  TRY(cuda_tensor_columns(dev, precision, t, columns));
  TRY(tiles_launch(dev, precision, t, work, columns, 0));
  return cuda_finish(dev->state);
}

int cuda_tensor_gradient(struct device *dev, enum precision precision, const struct triad_args *t,
                         void *work)
{
  const struct cuda_state *s = dev->state;
  char *columns = (char *)work + cuda_tensor_rows_bytes(precision, t->rows, t->depth);
  TRY(cuda_tensor_rows(dev, precision, t, work));
  TRY(columns_narrow(dev, precision, t, tensor_form_of(s->sizes.wgmma, 1).vectors, columns));
  TRY(tiles_launch(dev, precision, t, work, columns, 1));
  return cuda_finish(dev->state);
}

/* Multiply-adds of a multiprocessor in a cycle: m64n256k16 takes 128 cycles there. */
double cuda_tensor_peak(const struct device *dev, enum precision precision)
{
  const struct cuda_state *s = dev->state;
  double each = precision == PRECISION_TF32 ? 1024 : 2048;
  return s->sizes.wgmma ? s->sizes.multiprocessors * each * s->clock : nan_canonical();
}
