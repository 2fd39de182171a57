/* SPDX-License-Identifier: BSD-3-Clause
 * Products of packed operands.  The depth is divided into pieces of ascending k.  For each piece
 * both operands are packed, for all threads; then the threads share blocks of tiles. */
#include "device/cpu/dense_product.h"

#include <string.h>

#include "base/status.h"
#include "device/cpu/cpu.h"
#include "device/cpu/dense_impl.h"

enum { BLOCK_ROWS = 8, BLOCK_COLUMNS = 16 }; /* panels of a task; its rows stay in the L2 cache */

static real operand_entry(const struct dense_operand *o, idx i, idx k)
{
  if (o->is_triangular && k < i) return 0;
  real x = o->at[i * o->row + k * o->depth];
  return o->negative ? -x : x;
}

/* Pack a whole panel of a matrix that is contiguous along its rows (row stride 1). */
static void panel_copy(const struct dense_operand *o, idx row, idx from, idx to, idx width,
                       real *out)
{
  for (idx k = from; k < to; k++, out += width) {
    const real *at = o->at + row + k * o->depth;
    if (o->negative)
      for (idx i = 0; i < width; i++) out[i] = -at[i];
    else
      memcpy(out, at, (size_t)width * sizeof *out);
  }
}

/* Pack a whole panel of a matrix that is contiguous along its depth (depth stride 1). */
static void panel_transpose(const struct dense_operand *o, idx row, idx from, idx to, idx width,
                            real *out)
{
  real sign = o->negative ? -1 : 1;
  for (idx k0 = from; k0 < to; k0 += 8) {
    idx k1 = k0 + 8 < to ? k0 + 8 : to;
    for (idx i = 0; i < width; i++) {
      const real *at = o->at + (row + i) * o->row;
      for (idx k = k0; k < k1; k++) out[(gidx)(k - from) * width + i] = sign * at[k];
    }
  }
}

static void panel_pack(const struct dense_operand *o, idx row, idx end, idx from, idx to, idx width,
                       real *out)
{
  int is_whole = row + width <= end && !(o->is_triangular && from < row + width - 1);
  if (is_whole && o->row == 1)
    panel_copy(o, row, from, to, width, out);
  else if (is_whole && o->depth == 1)
    panel_transpose(o, row, from, to, width, out);
  else
    for (idx k = from; k < to; k++)
      for (idx i = 0; i < width; i++) *out++ = row + i < end ? operand_entry(o, row + i, k) : 0;
}

void operand_pack(const struct dense_operand *o, idx first, idx count, idx from, idx to, idx width,
                  real *out)
{
  for (idx p = 0; p < panels_of(count, width); p++)
    panel_pack(o, first + p * width, first + count, from, to, width,
               out + (gidx)p * width * (to - from));
}

/* Does a block of rows x columns belong to the part of C that is written?  1: all of its entries
 * do; 0: some may; -1: none. */
static int part_has(const struct packed_product *t, idx i, idx j, idx rows, idx columns)
{
  gidx low = (gidx)t->row + i - (t->column + j); /* row - column of the first entry */
  gidx min = low - (columns - 1), max = low + rows - 1;
  if (t->part == PART_LOWER) return min >= 0 ? 1 : max < 0 ? -1 : 0;
  if (t->part == PART_UPPER) return max < 0 ? 1 : min >= 0 ? -1 : 0;
  return 1;
}

/* Copy the entries of C that are written into a full tile, or back from it. */
static void tile_copy(const struct packed_product *t, idx i, idx j, real *whole, int back)
{
  idx rows = t->m - i < t->loops->rows ? t->m - i : t->loops->rows;
  idx columns = t->n - j < t->loops->columns ? t->n - j : t->loops->columns;
  for (idx q = 0; q < columns; q++)
    for (idx p = 0; p < rows; p++) {
      real *at = t->c + i + p + (j + q) * t->stride, *in = whole + q * t->loops->rows + p;
      if (part_has(t, i + p, j + q, 1, 1) < 0) continue;
      *(back ? at : in) = *(back ? in : at);
    }
}

static void tile_multiply(const struct packed_product *t, idx i, idx j)
{
  idx rows = t->loops->rows, columns = t->loops->columns;
  const real *a = t->a + (gidx)i * t->depth, *b = t->b + (gidx)j * t->depth;
  int has = part_has(t, i, j, rows, columns);
  if (has < 0) return;
  if (has > 0 && i + rows <= t->m && j + columns <= t->n) {
    t->loops->tile(t->depth, a, b, t->c + i + j * t->stride, t->stride);
    return;
  }
  real whole[DENSE_MAX_TILE] = {0};
  tile_copy(t, i, j, whole, 0);
  t->loops->tile(t->depth, a, b, whole, rows);
  tile_copy(t, i, j, whole, 1);
}

void tiles_multiply(const struct packed_product *t, idx first, idx end, idx begin, idx stop)
{
  for (idx j = begin; j < stop; j++)
    for (idx i = first; i < end; i++) tile_multiply(t, i * t->loops->rows, j * t->loops->columns);
}

/* Multiply one piece of the depth. */
static void piece_multiply(const struct dense_state *d, const struct dense_product *p, idx from,
                           idx to)
{
  const struct dense_loops *loops = d->loops;
  idx depth = to - from, m = p->row_end - p->row_begin, n = p->column_end - p->column_begin;
  idx rows = panels_of(m, loops->rows), columns = panels_of(n, loops->columns);
  struct packed_product t = {loops, depth, d->a,    d->b,         p->c,           p->stride,
                             m,     n,     p->part, p->row_begin, p->column_begin};
  idx row_blocks = panels_of(rows, BLOCK_ROWS), column_blocks = panels_of(columns, BLOCK_COLUMNS);
#pragma omp parallel num_threads(d->threads) if (d->threads > 1)
  {
#pragma omp for schedule(static) nowait
    for (idx i = 0; i < rows; i++)
      panel_pack(&p->a, p->row_begin + i * loops->rows, p->row_end, from, to, loops->rows,
                 d->a + (gidx)i * loops->rows * depth);
#pragma omp for schedule(static)
    for (idx j = 0; j < columns; j++)
      panel_pack(&p->b, p->column_begin + j * loops->columns, p->column_end, from, to,
                 loops->columns, d->b + (gidx)j * loops->columns * depth);
#pragma omp for schedule(dynamic)
    for (idx task = 0; task < row_blocks * column_blocks; task++) {
      idx i = task % row_blocks * BLOCK_ROWS, j = task / row_blocks * BLOCK_COLUMNS;
      tiles_multiply(&t, i, i + BLOCK_ROWS < rows ? i + BLOCK_ROWS : rows, j,
                     j + BLOCK_COLUMNS < columns ? j + BLOCK_COLUMNS : columns);
    }
  }
}

int cpu_product(struct dense *d, const struct dense_product *p)
{
  for (idx from = p->depth_begin; from < p->depth_end; from += DENSE_MAX_DEPTH) {
    struct dense_product piece = *p;
    idx to = from + DENSE_MAX_DEPTH < p->depth_end ? from + DENSE_MAX_DEPTH : p->depth_end;
    if (p->a.is_triangular && to < p->row_end) piece.row_end = to; /* the other rows are zero */
    if (p->b.is_triangular && to < p->column_end) piece.column_end = to;
    if (piece.row_end > p->row_begin && piece.column_end > p->column_begin)
      piece_multiply(d->state, &piece, from, to);
  }
  return OK;
}
