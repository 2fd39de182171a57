/* SPDX-License-Identifier: BSD-3-Clause
 * Forward, back and gradient are one product of two matrices, read along either side. */
#include "device/cuda/triad.h"

#include "base/num.h"
#include "base/status.h"
#include "device/cuda/load.h"
#include "triad_types.h"

_Static_assert((int)TRIAD_CHUNK_ROWS == (int)TRIAD_CHUNK, "a chunk is a part of the result");

enum { MAX_ADAM_BLOCKS = 1 << 14 };

/* May quads of an operand be read, whose lines, tile by tile, and depths are so many? */
static int operand_whole(const float *at, gidx line, gidx depth)
{
  gidx stride = depth == 1 ? line : depth;
  return stride % 4 == 0 && (uintptr_t)at % 16 == 0;
}

static int tiles_whole(const struct triad_args *a, struct triad_form form)
{
  return a->rows % form.rows == 0 && a->columns % form.columns == 0 &&
         a->depth % TRIAD_STAGE == 0 && operand_whole(a->a, a->a_row, a->a_depth) &&
         operand_whole(a->b, a->b_column, a->b_depth) && operand_whole(a->c, a->c_row, 1);
}

static int tiles_launch(struct device *dev, enum kernel_name name, struct triad_form form,
                        int small, struct triad_args *a)
{
  struct cuda_launch l = {.name = name,
                          .shape = {.small = small,
                                    .deep_a = a->a_depth == 1,
                                    .deep_b = a->b_depth == 1,
                                    .whole = tiles_whole(a, form)},
                          .grid = {(unsigned)ceil_div(a->columns, form.columns),
                                   (unsigned)ceil_div(a->rows, form.rows), 1},
                          .block = {(unsigned)triad_threads(form), 1, 1},
                          .shared = triad_shared_bytes(form, name == KERNEL_TRIAD_GRADIENT),
                          .arguments = a};
  return cuda_launch(dev, &l);
}

int cuda_triad_small(const struct cuda_state *s, gidx rows, gidx columns)
{
  struct triad_form f = triad_product_form(0);
  gidx tiles = ceil_div(rows, f.rows) * ceil_div(columns, f.columns);
  gidx at_once = (gidx)f.beside * s->sizes.multiprocessors;
  return 10 * tiles < 9 * round_up(tiles, at_once); /* the last ones would leave much of it idle */
}

int cuda_triad_tiles(struct device *dev, struct triad_args *a)
{
  int small = cuda_triad_small(dev->state, a->rows, a->columns);
  return tiles_launch(dev, KERNEL_TRIAD_PRODUCT, triad_product_form(small), small, a);
}

struct triad_args triad_product_args(const struct triad_product *p)
{
  return (struct triad_args){.a = p->x,
                             .b = p->w.at,
                             .start = p->bias,
                             .c = p->y,
                             .a_row = p->x_stride,
                             .a_depth = 1,
                             .b_depth = p->w.in,
                             .b_column = p->w.out,
                             .c_row = p->y_stride,
                             .rows = p->m,
                             .columns = p->n,
                             .depth = p->k};
}

int cuda_triad_product(struct device *dev, const struct triad_product *p)
{
  struct triad_args a = triad_product_args(p);
  TRY(cuda_triad_tiles(dev, &a));
  return cuda_finish(dev->state);
}

struct triad_args triad_gradient_args(const struct triad_gradient *g)
{
  return (struct triad_args){.a = g->x,
                             .b = g->dy,
                             .c = g->dw,
                             .a_row = 1,
                             .a_depth = g->x_stride,
                             .b_depth = g->dy_stride,
                             .b_column = 1,
                             .c_row = g->dw_stride,
                             .rows = g->k,
                             .columns = g->n,
                             .depth = g->m};
}

int cuda_triad_gradient(struct device *dev, const struct triad_gradient *g)
{
  struct triad_args a = triad_gradient_args(g);
  TRY(tiles_launch(dev, KERNEL_TRIAD_GRADIENT, triad_gradient_form(), 0, &a));
  return cuda_finish(dev->state);
}

static int lists_launch(struct device *dev, enum kernel_name name, const struct triad_lists *l,
                        struct triad_list_args *a, gidx blocks, int across, int threads)
{
  a->count = l->count;
  a->start = (const long long *)l->start;
  a->index = l->index;
  a->value = l->value;
  a->matrix = l->matrix;
  a->width = l->width;
  struct cuda_launch launch = {
      .name = name,
      .grid = {(unsigned)imin(blocks, TRIAD_MAX_LISTS), (unsigned)across, 1},
      .block = {(unsigned)threads, 1, 1},
      .arguments = a};
  TRY(cuda_launch(dev, &launch));
  return cuda_finish(dev->state);
}

int cuda_triad_sparse(struct device *dev, const struct triad_lists *l, int is_gradient, float *out)
{
  struct triad_list_args a = {.out = out, .is_gradient = is_gradient};
  return lists_launch(dev, KERNEL_TRIAD_SPARSE, l, &a, l->count,
                      (int)ceil_div(l->width, 4 * TRIAD_SPARSE_THREADS), TRIAD_SPARSE_THREADS);
}

int cuda_triad_dots(struct device *dev, const struct triad_lists *l, const float *rows, float *out)
{
  struct triad_list_args a = {.out = out, .rows = rows};
  return lists_launch(dev, KERNEL_TRIAD_DOTS, l, &a, ceil_div(l->count, TRIAD_THREADS / WARP), 1,
                      TRIAD_THREADS);
}

int cuda_adam(struct device *dev, const struct adam_state *s, const struct adam_rates *rates)
{
  struct triad_adam_args a = {s->w, s->m, s->v, s->g, s->count, rates->rate, rates->correction};
  struct cuda_launch l = {
      .name = KERNEL_TRIAD_ADAM,
      .grid = {(unsigned)imin(ceil_div(s->count, TRIAD_THREADS), MAX_ADAM_BLOCKS), 1, 1},
      .block = {TRIAD_THREADS, 1, 1},
      .arguments = &a};
  TRY(cuda_launch(dev, &l));
  return cuda_finish(dev->state);
}
