/* SPDX-License-Identifier: BSD-3-Clause
 * Forward, backward and gradient are one product of two matrices, each read along rows or columns.
 * The kernel copies an operand as it is if its lines are adjacent in memory.  In a product of
 * whole tiles, an operand whose depths are adjacent is transposed first if the other one has many
 * lines. */
#include "device/cuda/triad.h"

#include "base/num.h"
#include "base/status.h"
#include "device/cuda/cuda.h"
#include "device/cuda/load.h"
#include "device/cuda/memory.h"
#include "device/cuda/tensor.h"
#include "triad_types.h"

_Static_assert((int)TRIAD_CHUNK_ROWS == (int)TRIAD_CHUNK, "a chunk is a part of the result");

enum {
  MAX_ADAM_BLOCKS = 1 << 14,
  MAX_FOLD_BLOCKS = 1 << 14,
  MOST_CHUNKS = 64, /* the most chunks that are products of their own */
  MOST_PARTS = 1 << 26,
  TURN_OTHERS = 4096, /* with at least this many lines of the other operand, transposing pays */
  MOST_TEAM = 16      /* blocks of a team; with more, whole tiles divide evenly enough */
};

/* Can quads (four floats) of an operand be read?  They must be aligned to 16 bytes. */
static int operand_whole(const float *at, gidx line, gidx depth)
{
  gidx stride = depth == 1 ? line : depth;
  return stride % 4 == 0 && (uintptr_t)at % 16 == 0;
}

static int tiles_whole(const struct triad_args *a, struct triad_form form)
{
  return a->rows % form.rows == 0 && a->columns % form.columns == 0 &&
         a->depth % TRIAD_DEPTHS == 0 && operand_whole(a->a, a->a_row, a->a_depth) &&
         operand_whole(a->b, a->b_column, a->b_depth) && operand_whole(a->c, a->c_row, 1);
}

/* The form depends on `whole`: a gradient has another one if some tile is not whole. */
static struct cuda_launch tiles_of(enum kernel_name name, struct triad_form form, int whole,
                                   struct triad_args *a)
{
  return (struct cuda_launch){
      .name = name,
      .shape = {.deep_a = a->a_depth == 1, .deep_b = a->b_depth == 1, .whole = whole},
      .grid = {(unsigned)ceil_div(a->columns, form.columns), (unsigned)ceil_div(a->rows, form.rows),
               1},
      .block = {(unsigned)triad_threads(form), 1, 1},
      .shared = triad_shared(form),
      .arguments = a};
}

/* The largest number of outputs that a multiprocessor gets, for `chunks` chunks of all outputs. */
static gidx most_outputs(const struct cuda_state *s, struct triad_form f, gidx rows, gidx columns,
                         gidx chunks)
{
  gidx tiles = ceil_div(rows, f.rows) * ceil_div(columns, f.columns) * chunks;
  return ceil_div(tiles, s->sizes.multiprocessors) * f.rows * f.columns;
}

/* Do tiles of 64 x 192 divide the outputs so much more evenly that they are faster? */
static int middle_pays(gidx middle, gidx other)
{
  return 20 * middle < 17 * other;
}

int cuda_triad_small(const struct cuda_state *s, gidx rows, gidx columns)
{
  struct triad_form f = triad_product_form(TRIAD_LARGE);
  gidx tiles = ceil_div(rows, f.rows) * ceil_div(columns, f.columns);
  gidx at_once = (gidx)f.beside * s->sizes.multiprocessors;
  return 10 * tiles < 9 * round_up(tiles, at_once); /* the last large tiles leave the GPU idle */
}

static int product_tiles(const struct cuda_state *s, gidx rows, gidx columns)
{
  int tiles = cuda_triad_small(s, rows, columns) ? TRIAD_SMALL : TRIAD_LARGE;
  gidx own = most_outputs(s, triad_product_form(tiles), rows, columns, 1);
  gidx middle = most_outputs(s, triad_product_form(TRIAD_MIDDLE), rows, columns, 1);
  return middle_pays(middle, own) ? TRIAD_MIDDLE : tiles;
}

/* Teams (triad_teams.h) for tiles that are divided by stages, if that is faster; otherwise none.  A
 * team has at least one tile, so a tile is in at most two teams. */
static struct triad_teams teams_of(const struct cuda_state *s, struct triad_form f,
                                   const struct triad_args *a)
{
  gidx down = ceil_div(a->rows, f.rows), across = ceil_div(a->columns, f.columns);
  gidx blocks = imin(down, across), tiles = imax(down, across);
  gidx at_once = (gidx)f.beside * s->sizes.multiprocessors, count = at_once / blocks;
  gidx turns = ceil_div(blocks * tiles, at_once);
  int is_whole =
      a->rows % f.rows == 0 && a->columns % f.columns == 0 && a->depth % TRIAD_DEPTHS == 0;
  int pays = blocks <= MOST_TEAM && tiles >= count && 100 * tiles < 99 * turns * count;
  if (!is_whole || !pays) return (struct triad_teams){0};
  return (struct triad_teams){
      .count = (int)count, .blocks = (int)blocks, .tiles = (int)tiles, .are_rows = across <= down};
}

/* Bytes of the chains that teams pass on: one tile for each block.  teams_bytes(): these bytes, and
 * those of the flags that say which chains are there. */
static gidx chains_bytes(const struct triad_teams *t, struct triad_form f)
{
  return (gidx)t->count * t->blocks * f.rows * f.columns * (gidx)sizeof(float);
}

static gidx teams_bytes(const struct triad_teams *t, struct triad_form f)
{
  return chains_bytes(t, f) + round_up((gidx)t->count * t->blocks * (gidx)sizeof(int), 256);
}

/* Set the grid to one block for each block of the teams, and clear the flags. */
static int teams_set(const struct cuda_state *s, struct cuda_launch *l, struct triad_teams *teams,
                     struct triad_form f, void *passed)
{
  size_t bytes = (size_t)(teams->count * teams->blocks) * sizeof *teams->is_passed;
  teams->passed = passed;
  teams->is_passed = (int *)((char *)passed + chains_bytes(teams, f));
  l->grid = (dim3){(unsigned)(teams->count * teams->blocks), 1, 1};
  TRY_CU(cudaMemsetAsync(teams->is_passed, 0, bytes, s->stream));
  return OK;
}

/* Launch a product: one chunk of all depths, or the chunks of a gradient as products of their own.
 * passed: space for the chains that teams pass on; NULL: no teams. */
static int product_launch(struct device *dev, struct triad_args *a, int tiles, gidx chunks,
                          void *passed)
{
  struct cuda_state *s = dev->state;
  struct triad_form form = triad_product_form(tiles);
  a->chunk = chunks > 1 ? TRIAD_CHUNK_ROWS : a->depth;
  struct cuda_launch l = tiles_of(KERNEL_TRIAD_PRODUCT, form, tiles_whole(a, form), a);
  l.shape.tiles = tiles;
  l.grid.z = (unsigned)chunks;
  if (passed && l.shape.whole) a->teams = teams_of(s, form, a);
  l.shape.teams = a->teams.count > 0;
  if (l.shape.teams) TRY(teams_set(s, &l, &a->teams, form, passed));
  return cuda_launch(dev, &l);
}

int cuda_triad_tiles(struct device *dev, struct triad_args *a)
{
  int small = cuda_triad_small(dev->state, a->rows, a->columns);
  return product_launch(dev, a, small ? TRIAD_SMALL : TRIAD_LARGE, 1, NULL);
}

/* Bytes for transposed lines of one operand; 0: it is not transposed.  `others`: the lines of the
 * other operand. */
static gidx turned_bytes(const struct triad_args *a, gidx depth, gidx lines, gidx others)
{
  struct triad_form f = triad_product_form(TRIAD_LARGE);
  int is_whole =
      a->rows % f.rows == 0 && a->columns % f.columns == 0 && a->depth % TRIAD_DEPTHS == 0;
  return depth == 1 && is_whole && others >= TURN_OTHERS
             ? round_up(lines * a->depth * (gidx)sizeof(float), 256)
             : 0;
}

gidx cuda_triad_rows_bytes(const struct triad_args *a)
{
  return turned_bytes(a, a->a_depth, a->rows, a->columns);
}

gidx cuda_triad_columns_bytes(const struct triad_args *a)
{
  return turned_bytes(a, a->b_depth, a->columns, a->rows);
}

static int operand_transpose(struct device *dev, const float *in, gidx stride, gidx lines,
                             gidx depths, float *out)
{
  struct triad_transpose_args t = {in, out, stride, (int)lines, (int)depths};
  struct cuda_launch l = {
      .name = KERNEL_TRIAD_TRANSPOSE,
      .grid = {(unsigned)ceil_div(depths, WARP), (unsigned)ceil_div(lines, WARP), 1},
      .block = {TRIAD_TRANSPOSE_THREADS, 1, 1},
      .arguments = &t};
  return cuda_launch(dev, &l);
}

int cuda_triad_rows(struct device *dev, struct triad_args *a, void *to)
{
  if (!cuda_triad_rows_bytes(a)) return OK;
  TRY(operand_transpose(dev, a->a, a->a_row, a->rows, a->depth, to));
  a->a = to, a->a_row = 1, a->a_depth = a->rows;
  return OK;
}

int cuda_triad_columns(struct device *dev, struct triad_args *a, void *to)
{
  if (!cuda_triad_columns_bytes(a)) return OK;
  TRY(operand_transpose(dev, a->b, a->b_column, a->columns, a->depth, to));
  a->b = to, a->b_column = 1, a->b_depth = a->columns;
  return OK;
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

/* A product has teams only if its tiles are large. */
static gidx product_teams_bytes(const struct device *dev, const struct triad_args *a)
{
  const struct cuda_state *s = dev->state;
  struct triad_form f = triad_product_form(TRIAD_LARGE);
  struct triad_teams teams = teams_of(s, f, a);
  int is_large = product_tiles(s, a->rows, a->columns) == TRIAD_LARGE;
  return is_large && teams.count ? teams_bytes(&teams, f) : 0;
}

gidx cuda_triad_product_bytes(const struct device *dev, enum precision precision,
                              const struct triad_product *p)
{
  struct triad_args a = triad_product_args(p);
  if (precision != PRECISION_F32)
    return cuda_tensor_product_bytes(dev, precision, p, (struct tensor_stored){0});
  return cuda_triad_rows_bytes(&a) + cuda_triad_columns_bytes(&a) + product_teams_bytes(dev, &a);
}

/* *work <- a workspace of the device, if the caller gives none. */
static int work_find(struct device *dev, gidx bytes, void **work)
{
  struct cuda_state *s = dev->state;
  if (*work || !bytes) return OK;
  TRY(cuda_reserve(s, &s->work.triad, bytes));
  *work = s->work.triad.at;
  return OK;
}

int cuda_triad_product(struct device *dev, enum precision precision, const struct triad_product *p,
                       void *work)
{
  struct triad_args a = triad_product_args(p);
  TRY(work_find(dev, cuda_triad_product_bytes(dev, precision, p), &work));
  if (precision != PRECISION_F32)
    return cuda_tensor_product(dev, precision, p, (struct tensor_stored){0}, work);
  char *columns = (char *)work + cuda_triad_rows_bytes(&a);
  char *passed = product_teams_bytes(dev, &a) ? columns + cuda_triad_columns_bytes(&a) : NULL;
  TRY(cuda_triad_columns(dev, &a, columns));
  TRY(cuda_triad_rows(dev, &a, work));
  TRY(product_launch(dev, &a, product_tiles(dev->state, a.rows, a.columns), 1, passed));
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

/* Blocks of a gradient; each holds the sums of one tile. */
static gidx gradient_blocks(const struct device *dev, const struct triad_args *a,
                            struct triad_form f)
{
  const struct cuda_state *s = dev->state;
  gidx tiles = ceil_div(a->rows, f.rows) * ceil_div(a->columns, f.columns);
  return imin(tiles, (gidx)f.beside * s->sizes.multiprocessors);
}

static gidx sums_bytes(gidx blocks, struct triad_form f)
{
  return blocks * f.rows * f.columns * (gidx)sizeof(double);
}

/* Bytes for chunks that are products of their own and are added at the end; 0: a tile takes its
 * chunks one after another.  With many tiles the GPU is full without this, and the chunks of all
 * tiles would take much memory. */
static gidx parts_bytes(const struct device *dev, const struct triad_args *a)
{
  const struct cuda_state *s = dev->state;
  gidx chunks = ceil_div(a->depth, TRIAD_CHUNK_ROWS), own = INT64_MAX;
  gidx bytes = chunks * a->rows * a->columns * (gidx)sizeof(float);
  for (int whole = 0; whole < 2; whole++)
    own = imin(own, chunks * most_outputs(s, triad_gradient_form(whole), a->rows, a->columns, 1));
  gidx middle = most_outputs(s, triad_product_form(TRIAD_MIDDLE), a->rows, a->columns, chunks);
  int pays = chunks <= MOST_CHUNKS && bytes <= MOST_PARTS && middle_pays(middle, own);
  return pays ? bytes : 0;
}

static int gradient_parts(struct device *dev, const struct triad_args *a, void *parts)
{
  struct triad_args of_parts = *a;
  of_parts.c = parts;
  of_parts.c_row = a->columns;
  of_parts.part = (gidx)a->rows * a->columns;
  int chunks = (int)ceil_div(a->depth, TRIAD_CHUNK_ROWS);
  TRY(product_launch(dev, &of_parts, TRIAD_MIDDLE, chunks, NULL));
  struct triad_fold_args f = {parts, a->c, a->c_row, a->rows, a->columns, chunks};
  struct cuda_launch l = {.name = KERNEL_TRIAD_FOLD,
                          .grid = {(unsigned)imin(a->rows, MAX_FOLD_BLOCKS), 1, 1},
                          .block = {TRIAD_TRANSPOSE_THREADS, 1, 1},
                          .arguments = &f};
  TRY(cuda_launch(dev, &l));
  return cuda_finish(dev->state);
}

/* Bytes for the sums of tiles that blocks hold, for the sums that teams pass on, and for their
 * chains and flags. */
static gidx gradient_teams_bytes(const struct device *dev, const struct triad_args *a)
{
  struct triad_form f = triad_gradient_form(1);
  struct triad_teams t = teams_of(dev->state, f, a);
  return t.count ? 2 * sums_bytes(t.count * t.blocks, f) + teams_bytes(&t, f) : 0;
}

/* Enough for either form, because the arrays may have other addresses when the gradient runs. */
gidx cuda_triad_gradient_bytes(const struct device *dev, enum precision precision,
                               const struct triad_gradient *g)
{
  struct triad_args a = triad_gradient_args(g);
  gidx bytes = gradient_teams_bytes(dev, &a);
  if (precision != PRECISION_F32)
    return cuda_tensor_gradient_bytes(dev, precision, g, (struct tensor_stored){0});
  gidx parts = parts_bytes(dev, &a);
  if (parts) return parts;
  for (int whole = 0; whole < 2; whole++) {
    struct triad_form f = triad_gradient_form(whole);
    bytes = imax(bytes, sums_bytes(gradient_blocks(dev, &a, f), f));
  }
  return bytes;
}

int cuda_triad_gradient(struct device *dev, enum precision precision,
                        const struct triad_gradient *g, void *work)
{
  struct triad_args a = triad_gradient_args(g);
  TRY(work_find(dev, cuda_triad_gradient_bytes(dev, precision, g), &work));
  if (precision != PRECISION_F32)
    return cuda_tensor_gradient(dev, precision, g, (struct tensor_stored){0}, work);
  if (parts_bytes(dev, &a)) return gradient_parts(dev, &a, work);
  int whole = tiles_whole(&a, triad_gradient_form(1));
  struct triad_form f = triad_gradient_form(whole);
  struct cuda_launch l = tiles_of(KERNEL_TRIAD_GRADIENT, f, whole, &a);
  gidx tiles = (gidx)l.grid.x * l.grid.y;
  CHECK(tiles <= INT32_MAX, ERR_INPUT, "a gradient of %d rows and %d columns is too large", g->k,
        g->n);
  a.tiles = (int)tiles;
  a.across = (int)l.grid.x;
  a.sums = work;
  l.shared = triad_gradient_shared(f);
  l.grid = (dim3){(unsigned)gradient_blocks(dev, &a, f), 1, 1};
  if (whole) a.teams = teams_of(dev->state, f, &a);
  char *passed = (char *)work + 2 * sums_bytes((gidx)a.teams.count * a.teams.blocks, f);
  if (a.teams.count) TRY(teams_set(dev->state, &l, &a.teams, f, passed));
  TRY(cuda_launch(dev, &l));
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
  return cuda_launch(dev, &launch);
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
  return cuda_launch(dev, &l);
}
