/* SPDX-License-Identifier: BSD-3-Clause
 * Operands are narrowed: rounded to the precision, transposed if needed, and packed in tiles.  This
 * is not necessary if they are stored in the precision and bulk copies can fetch tiles of them.
 * Then blocks loop over the tiles of the result. */
#include "device/cuda/tensor.h"

#include "base/num.h"
#include "base/status.h"
#include "device/cuda/load.h"
#include "device/cuda/tensor_map.h"
#include "device/cuda/triad.h"
#include "tensor_types.h"

_Static_assert((int)TENSOR_BF16 == (int)PRECISION_BF16 && (int)TENSOR_F16 == (int)PRECISION_F16 &&
                   (int)TENSOR_TF32 == (int)PRECISION_TF32,
               "-D PRECISION");

enum {
  /* The widths of column tiles of all forms divide this. */
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

static void narrow_complete(enum precision precision, struct tensor_narrow_args *a)
{
  int aligned = a->is_stored ? 8 : 4; /* numbers in 16 bytes */
  a->tiles = (int)ceil_div(a->lines, a->items);
  a->stages = stages_of(precision, a->depths);
  a->is_aligned = a->depth == 1 && a->line % aligned == 0 && (uintptr_t)a->in % 16 == 0;
}

static int operand_narrow(struct device *dev, enum precision precision,
                          struct tensor_narrow_args *a)
{
  narrow_complete(precision, a);
  gidx pieces = (gidx)a->tiles * a->items * a->stages * TENSOR_PIECES;
  struct cuda_launch l = {
      .name = KERNEL_TENSOR_NARROW,
      .shape = {.precision = (int)precision},
      .grid = {(unsigned)imin(ceil_div(pieces, TENSOR_NARROW_THREADS), NARROW_BLOCKS), 1, 1},
      .block = {TENSOR_NARROW_THREADS, 1, 1},
      .arguments = a};
  return cuda_launch(dev, &l);
}

static struct tensor_narrow_args rows_args(const struct triad_args *t, int is_stored, void *rows)
{
  return (struct tensor_narrow_args){.in = t->a,
                                     .out = rows,
                                     .line = t->a_row,
                                     .depth = t->a_depth,
                                     .lines = t->rows,
                                     .depths = t->depth,
                                     .items = TENSOR_ROWS,
                                     .is_stored = is_stored};
}

static int rows_narrow(struct device *dev, enum precision precision, const struct triad_args *t,
                       int is_stored, void *rows)
{
  struct tensor_narrow_args a = rows_args(t, is_stored, rows);
  return operand_narrow(dev, precision, &a);
}

/* Tiles have `vectors` lines, 256 or 128, as the form of the product needs. */
static int columns_narrow(struct device *dev, enum precision precision, const struct triad_args *t,
                          int is_stored, int vectors, void *columns)
{
  struct tensor_narrow_args a = {.in = t->b,
                                 .out = columns,
                                 .line = t->b_column,
                                 .depth = t->b_depth,
                                 .lines = t->columns,
                                 .depths = t->depth,
                                 .items = vectors,
                                 .is_stored = is_stored};
  return operand_narrow(dev, precision, &a);
}

int cuda_tensor_rows(struct device *dev, enum precision precision, const struct triad_args *t,
                     void *rows)
{
  return rows_narrow(dev, precision, t, 0, rows);
}

int cuda_tensor_columns(struct device *dev, enum precision precision, const struct triad_args *t,
                        void *columns)
{
  const struct cuda_state *s = dev->state;
  return columns_narrow(dev, precision, t, 0, tensor_form_of(s->sizes.wgmma, 0).vectors, columns);
}

/* Launch the tiles of a product or gradient whose operands are set in a. */
static int tiles_launch(struct device *dev, enum precision precision, struct tensor_args *a,
                        int is_gradient)
{
  const struct cuda_state *s = dev->state;
  const struct triad_args *t = &a->t;
  struct tensor_form form = tensor_form_of(s->sizes.wgmma, is_gradient);
  int together = a->is_stored ? 8 : 2; /* numbers that are written at a time */
  a->row_tiles = (int)ceil_div(t->rows, TENSOR_ROWS);
  a->column_tiles = (int)ceil_div(t->columns, form.vectors);
  a->stages = stages_of(precision, t->depth);
  a->is_aligned = t->c_row % together == 0 && (uintptr_t)t->c % (a->is_stored ? 16 : 8) == 0;
  gidx groups = ceil_div(a->row_tiles, form.cluster) * a->column_tiles;
  gidx at_once = imax(s->sizes.multiprocessors / form.cluster, 1);
  int is_stored = !a->rows, narrows = tensor_narrows(form.wgmma, (int)precision, is_stored);
  CHECK(groups * form.cluster <= INT32_MAX, ERR_INPUT,
        "a product of %d rows and %d columns is too large", t->rows, t->columns);
  struct cuda_launch l = {.name = is_gradient ? KERNEL_TENSOR_GRADIENT : KERNEL_TENSOR_PRODUCT,
                          .shape = {.wgmma = form.wgmma,
                                    .precision = (int)precision,
                                    .stored = is_stored,
                                    .deep_a = t->a_depth == 1,
                                    .deep_b = t->b_depth == 1},
                          .grid = {(unsigned)(form.cluster * imin(groups, at_once)), 1, 1},
                          .block = {(unsigned)tensor_threads(form.wgmma), 1, 1},
                          .cluster = form.cluster > 1 ? form.cluster : 0,
                          .shared = tensor_shared_bytes(form.vectors, form.stages, narrows),
                          .arguments = a};
  return cuda_launch(dev, &l);
}

int cuda_tensor_tiles(struct device *dev, enum precision precision, const struct triad_args *t,
                      const void *rows, const void *columns)
{
  struct tensor_args a = {.t = *t, .rows = rows, .columns = columns};
  return tiles_launch(dev, precision, &a, 0);
}

/* A stored operand as a matrix in memory.  If it is contiguous along its depth, boxes have `box` of
 * its lines. */
static struct tensor_matrix matrix_of(const void *at, gidx line, gidx depth, gidx lines,
                                      gidx depths, int box)
{
  int is_deep = depth == 1;
  return (struct tensor_matrix){.at = at,
                                .inner = is_deep ? depths : lines,
                                .outer = is_deep ? lines : depths,
                                .stride = is_deep ? line : depth,
                                .box = is_deep ? box : TENSOR_BOX};
}

static struct tensor_matrix rows_of(const struct triad_args *t)
{
  return matrix_of(t->a, t->a_row, t->a_depth, t->rows, t->depth, TENSOR_ROWS);
}

static struct tensor_matrix columns_of(const struct triad_args *t, struct tensor_form form)
{
  return matrix_of(t->b, t->b_column, t->b_depth, t->columns, t->depth,
                   form.vectors / form.cluster);
}

/* Can bulk copies fetch tiles of both operands from where they are stored? */
static int operands_stay(const struct device *dev, const struct triad_args *t,
                         struct tensor_stored stored)
{
  const struct cuda_state *s = dev->state;
  struct tensor_matrix rows = rows_of(t);
  struct tensor_matrix columns = columns_of(t, tensor_form_of(s->sizes.wgmma, 0));
  return s->sizes.wgmma && stored.left && stored.right && cuda_tensor_mappable(&rows) &&
         cuda_tensor_mappable(&columns);
}

/* Can rows be narrowed inside the product (tensor_beside.h)?  Tiles and stages must be whole, and
 * operands contiguous as the kernel expects. */
static int rows_narrow_beside(const struct cuda_state *s, enum precision precision,
                              const struct triad_args *t, struct tensor_stored stored,
                              int is_gradient)
{
  int is_deep = t->a_depth == 1;
  gidx stride = is_deep ? t->a_row : t->a_depth;
  return tensor_narrows(s->sizes.wgmma, (int)precision, 0) && !stored.left &&
         is_deep == !is_gradient && t->rows % TENSOR_ROWS == 0 && t->depth % TENSOR_BOX == 0 &&
         stride % 4 == 0 && (uintptr_t)t->a % 16 == 0;
}

/* Rows of a band, which is narrowed while the band before it is multiplied.  A band has as many
 * rows as fill the GPU once.  0: all rows are narrowed first, because they are few, or because the
 * product cannot narrow them. */
static gidx band_rows(const struct device *dev, enum precision precision,
                      const struct triad_args *t, struct tensor_stored stored, int is_gradient)
{
  enum { LEAST = 1 << 24 /* numbers */ };
  const struct cuda_state *s = dev->state;
  const struct device_test *test = s->options.test;
  struct tensor_form form = tensor_form_of(s->sizes.wgmma, is_gradient);
  if (!rows_narrow_beside(s, precision, t, stored, is_gradient)) return 0;
  if (test && test->band) return test->band;
  if ((gidx)t->rows * t->depth < LEAST) return 0;
  gidx clusters = s->sizes.multiprocessors / form.cluster;
  gidx rows = imax(clusters / ceil_div(t->columns, form.vectors), 1) * form.cluster * TENSOR_ROWS;
  return rows < t->rows ? rows : 0;
}

/* The product of the band of rows that begins at `first`; is_stored: the result is stored in 16
 * bits. */
static struct triad_args band_of(const struct triad_args *t, gidx first, gidx rows, int is_stored)
{
  gidx item = is_stored ? (gidx)sizeof(uint16_t) : (gidx)sizeof(float);
  struct triad_args band = *t;
  band.a = t->a + first * t->a_row;
  band.c = (float *)((char *)t->c + first * t->c_row * item);
  band.rows = (int)imin(rows, t->rows - first);
  return band;
}

/* Multiply each band while the next one is narrowed. */
static int bands_run(struct device *dev, enum precision precision, struct tensor_args *a,
                     const struct triad_args *t, gidx rows, int is_gradient, char *work)
{
  struct triad_args band = band_of(t, 0, rows, a->is_stored);
  TRY(rows_narrow(dev, precision, &band, 0, work));
  for (gidx first = 0; first < t->rows; first += rows) {
    a->t = band;
    a->rows = work;
    a->next = (struct tensor_narrow_args){0};
    if (first + rows < t->rows) {
      work += cuda_tensor_rows_bytes(precision, rows, t->depth);
      band = band_of(t, first + rows, rows, a->is_stored);
      a->next = rows_args(&band, 0, work);
      narrow_complete(precision, &a->next);
    }
    TRY(tiles_launch(dev, precision, a, is_gradient));
  }
  return cuda_finish(dev->state);
}

/* The whole product; waits for it. */
static int tiles_run(struct device *dev, enum precision precision, const struct triad_args *t,
                     struct tensor_stored stored, int is_gradient, void *work)
{
  struct cuda_state *s = dev->state;
  struct tensor_form form = tensor_form_of(s->sizes.wgmma, is_gradient);
  struct tensor_args a = {.t = *t, .is_stored = stored.result};
  if (operands_stay(dev, t, stored)) {
    struct tensor_matrix rows = rows_of(t), columns = columns_of(t, form);
    TRY(cuda_tensor_map(s, precision, &rows, &a.rows_map));
    TRY(cuda_tensor_map(s, precision, &columns, &a.columns_map));
  } else {
    char *columns = (char *)work + cuda_tensor_rows_bytes(precision, t->rows, t->depth);
    gidx rows = band_rows(dev, precision, t, stored, is_gradient);
    a.columns = columns;
    TRY(columns_narrow(dev, precision, t, stored.right, form.vectors, columns));
    if (rows) return bands_run(dev, precision, &a, t, rows, is_gradient, work);
    TRY(rows_narrow(dev, precision, t, stored.left, work));
    a.rows = work;
  }
  TRY(tiles_launch(dev, precision, &a, is_gradient));
  return cuda_finish(s);
}

static gidx work_bytes(const struct device *dev, enum precision precision,
                       const struct triad_args *t, struct tensor_stored stored)
{
  return operands_stay(dev, t, stored)
             ? 0
             : cuda_tensor_rows_bytes(precision, t->rows, t->depth) +
                   cuda_tensor_columns_bytes(precision, t->columns, t->depth);
}

int cuda_tensor_product(struct device *dev, enum precision precision, const struct triad_product *p,
                        struct tensor_stored stored, void *work)
{
  struct triad_args t = triad_product_args(p);
  return tiles_run(dev, precision, &t, stored, 0, work);
}

int cuda_tensor_gradient(struct device *dev, enum precision precision,
                         const struct triad_gradient *g, struct tensor_stored stored, void *work)
{
  struct triad_args t = triad_gradient_args(g);
  return tiles_run(dev, precision, &t, stored, 1, work);
}

gidx cuda_tensor_product_bytes(const struct device *dev, enum precision precision,
                               const struct triad_product *p, struct tensor_stored stored)
{
  struct triad_args t = triad_product_args(p);
  return work_bytes(dev, precision, &t, stored);
}

gidx cuda_tensor_gradient_bytes(const struct device *dev, enum precision precision,
                                const struct triad_gradient *g, struct tensor_stored stored)
{
  struct triad_args t = triad_gradient_args(g);
  return work_bytes(dev, precision, &t, stored);
}

/* Multiply-adds of a multiprocessor per cycle: m64n256k16 takes 128 cycles. */
double cuda_tensor_peak(const struct device *dev, enum precision precision)
{
  const struct cuda_state *s = dev->state;
  double each = precision == PRECISION_TF32 ? 1024 : 2048;
  return s->sizes.wgmma ? s->sizes.multiprocessors * each * s->clock : nan_canonical();
}
