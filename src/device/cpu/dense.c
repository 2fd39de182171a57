/* SPDX-License-Identifier: BSD-3-Clause
 * Blocked Cholesky (right-looking over panels of columns) and inverse (by blocks of rows).
 *
 * Both compute T <- T L^-T for a tall matrix T and the small factor L of a panel.  Threads take
 * blocks of rows of T, which stay in the second-level cache.  A thread bisects the columns down to
 * DENSE_LEAF columns, so that nearly all of the work is in tiles.  The inverse works on transposed
 * rows: row i of Z is a column of T. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "device/cpu/cpu.h"
#include "device/cpu/dense_impl.h"
#include "device/cpu/dense_product.h"
#include "model/dense.h"

enum { SOLVE_ROWS = 192 }; /* a multiple of every tile's rows */

/* Reals in the packed operands of one thread.  packed_values(): reals in each of the two operands
 * that all threads share. */
static gidx own_values(void)
{
  return ((gidx)SOLVE_ROWS + 24 + DENSE_MAX_PANEL + 8) * DENSE_MAX_DEPTH;
}

static gidx packed_values(idx max_n)
{
  return ((gidx)max_n + 24) * DENSE_MAX_DEPTH;
}

static int arrays_alloc(struct dense_state *s, idx panel, idx max_n)
{
  TRY(arena_alloc(&s->arena, &s->a, packed_values(max_n), sizeof(real)));
  TRY(arena_alloc(&s->arena, &s->b, packed_values(max_n), sizeof(real)));
  TRY(arena_alloc(&s->arena, &s->own, s->threads * own_values(), sizeof(real)));
  return arena_alloc(&s->arena, &s->turned, (gidx)panel * max_n, sizeof(real));
}

gidx cpu_dense_bytes(int threads, idx panel, idx max_n)
{
  struct dense_state dry = {.threads = threads, .arena.is_dry = 1};
  return arrays_alloc(&dry, panel, max_n) ? INT64_MAX : (gidx)dry.arena.bytes;
}

int cpu_dense_open(struct dense *d)
{
  const struct cpu_state *cpu = cpu_of(d->device);
  struct dense_state *s;
  if (!cpu->dense) TRY(device_check_fma());
  s = d->state = calloc(1, sizeof *s);
  CHECK(s, ERR_MEMORY, "cannot allocate %zu bytes", sizeof *s);
  s->loops = cpu->dense;
  s->threads = cpu->options.threads;
  return arrays_alloc(s, d->panel, d->max_n);
}

void cpu_dense_close(struct dense *d)
{
  arena_free(&d->state->arena);
  free(d->state);
}

/* Where a block is bisected: at a multiple of DENSE_LEAF. */
static idx half_of(idx width)
{
  return (width / 2 + DENSE_LEAF - 1) / DENSE_LEAF * DENSE_LEAF;
}

/* c[m x n] -= a[m x depth] b[n x depth]', all column-major, by one thread in its own workspace. */
struct small_product {
  const real *a, *b;
  gidx a_stride, b_stride;
  idx depth;
  struct packed_product to;
};
static void small_update(const struct dense_loops *loops, const struct small_product *s, real *own)
{
  real *packed = own + ((gidx)SOLVE_ROWS + 24) * DENSE_MAX_DEPTH;
  struct dense_operand a = {s->a, 1, s->a_stride, 1, 0}, b = {s->b, 1, s->b_stride, 0, 0};
  struct packed_product t = s->to;
  t.loops = loops;
  t.a = own;
  t.b = packed;
  for (idx from = 0; from < s->depth; from += DENSE_MAX_DEPTH) {
    idx to = from + DENSE_MAX_DEPTH < s->depth ? from + DENSE_MAX_DEPTH : s->depth;
    t.depth = to - from;
    operand_pack(&b, 0, t.n, from, to, loops->columns, packed);
    for (idx i = 0; i < s->to.m; i += SOLVE_ROWS) {
      t.m = s->to.m - i < SOLVE_ROWS ? s->to.m - i : SOLVE_ROWS;
      t.c = s->to.c + i;
      t.row = s->to.row + i;
      operand_pack(&a, i, t.m, from, to, loops->rows, own);
      tiles_multiply(&t, 0, panels_of(t.m, loops->rows), 0, panels_of(t.n, loops->columns));
    }
  }
}

/* t[rows x width] <- t L^-T, for about SOLVE_ROWS rows or fewer. */
static void rows_solve(const struct dense_loops *loops, real *t, gidx stride, idx rows, idx width,
                       const real *l, gidx l_stride, real *own)
{
  if (width <= DENSE_LEAF) {
    loops->solve(t, stride, rows, width, l, l_stride);
    return;
  }
  idx half = half_of(width), rest = width - half;
  rows_solve(loops, t, stride, rows, half, l, l_stride, own);
  struct small_product s = {t, l + half, stride, l_stride, half, {0}};
  s.to = (struct packed_product){.c = t + half * stride, .stride = stride, .m = rows, .n = rest};
  small_update(loops, &s, own);
  rows_solve(loops, t + half * stride, stride, rows, rest, l + half + half * l_stride, l_stride,
             own);
}

/* t[rows x width] <- t L^-T for any number of rows, by all threads. */
static void panel_solve(const struct dense_state *d, real *t, gidx stride, idx rows, idx width,
                        const real *l, gidx l_stride)
{
  idx blocks = panels_of(rows, SOLVE_ROWS);
  int threads = d->threads < blocks ? d->threads : blocks;
#pragma omp parallel for num_threads(threads) schedule(static, 1) if (threads > 1)
  for (int w = 0; w < threads; w++)
    for (idx i = w; i < blocks; i += threads) {
      idx count = rows - i * SOLVE_ROWS < SOLVE_ROWS ? rows - i * SOLVE_ROWS : SOLVE_ROWS;
      rows_solve(d->loops, t + i * SOLVE_ROWS, stride, count, width, l, l_stride,
                 d->own + w * own_values());
    }
}

/* Factor a block of at most DENSE_LEAF columns.  Returns the first column whose pivot is bad, or
 * width. */
static idx leaf_factor(real *s, idx width, gidx stride, real *pivot)
{
  for (idx j = 0; j < width; j++)
    for (idx i = j; i < width; i++) {
      real acc = s[i + j * stride];
      for (idx k = 0; k < j; k++) acc = fma(-s[i + k * stride], s[j + k * stride], acc);
      if (i == j) {
        pivot[j] = acc;
        if (!(acc > 0 && isfinite(acc))) return j;
      }
      s[i + j * stride] = i == j ? sqrt(acc) : acc / s[j + j * stride];
    }
  return width;
}

/* The same for any width, by one thread. */
static idx block_factor(const struct dense_state *d, real *s, idx width, gidx stride, real *pivot)
{
  if (width <= DENSE_LEAF) return leaf_factor(s, width, stride, pivot);
  idx half = half_of(width), rest = width - half;
  idx done = block_factor(d, s, half, stride, pivot);
  if (done < half) return done;
  real *below = s + half, *corner = below + half * stride;
  rows_solve(d->loops, below, stride, rest, half, s, stride, d->own);
  struct small_product update = {below, below, stride, stride, half, {0}};
  update.to = (struct packed_product){.c = corner, .stride = stride, .m = rest, .n = rest};
  update.to.part = PART_LOWER;
  small_update(d->loops, &update, d->own);
  return half + block_factor(d, corner, rest, stride, pivot + half);
}

int cpu_cholesky(struct dense *d, real *s, idx n, gidx stride, real *pivot, idx *good)
{
  for (idx j = 0; j < n; j += d->panel) {
    idx width = n - j < d->panel ? n - j : d->panel, next = j + width;
    real *block = s + j + j * stride;
    idx done = block_factor(d->state, block, width, stride, pivot + j);
    *good = j + done;
    if (done < width) return OK;
    panel_solve(d->state, block + width, stride, n - next, width, block, stride);
    struct dense_operand minus = {s, 1, stride, 1, 0}, plus = {s, 1, stride, 0, 0};
    struct dense_product p = {
        minus, plus, next, n, next, n, j, next, s + next + next * stride, stride, PART_LOWER};
    cpu_product(d, &p);
  }
  *good = n;
  return OK;
}

/* turned[end][width] <- rows i .. i + width - 1 of Z, transposed.  Column c starts as unit vector
 * i + c; its chain over k < i is subtracted; then it is solved with the block on the diagonal. */
static void rows_invert(struct dense *d, const real *l, idx i, idx width, gidx stride)
{
  real *turned = d->state->turned;
  idx end = i + width;
  memset(turned, 0, (size_t)width * (size_t)end * sizeof(real));
  for (idx c = 0; c < width; c++) turned[i + c + (gidx)c * end] = 1;
  struct dense_operand z = {l, stride, 1, 0, 1}, row = {l, 1, stride, 1, 0};
  struct dense_product p = {z, row, 0, i, i, end, 0, i, turned, end, PART_ALL};
  cpu_product(d, &p);
  panel_solve(d->state, turned, end, end, width, l + i + i * stride, stride);
}

int cpu_inverse(struct dense *d, real *l, idx n, gidx stride)
{
  const real *turned = d->state->turned;
  for (idx i = 0; i < n; i += d->panel) {
    idx width = n - i < d->panel ? n - i : d->panel, end = i + width;
    rows_invert(d, l, i, width, stride);
    for (idx j = 0; j < end; j++)
      for (idx c = j > i ? j - i : 0; c < width; c++)
        l[i + c + j * stride] = turned[j + (gidx)c * end];
  }
  return OK;
}

int cpu_entries(struct dense *d, const struct dense_entries *e)
{
#pragma omp parallel for num_threads(d->state->threads) schedule(static)
  for (gidx i = 0; i < e->count; i++)
    e->out[i] = inverse_entry(e->z, e->n, e->stride, e->pairs[2 * i], e->pairs[2 * i + 1]);
  return OK;
}
