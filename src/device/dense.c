/* SPDX-License-Identifier: BSD-3-Clause
 * Blocked Cholesky (right-looking over panels of columns) and inverse (by blocks of rows).
 *
 * Both need T <- T L^-T for a panel's small factor L: threads take blocks of rows of T, which stay
 * in the second cache, and halve the columns until LEAF are left, so that nearly all of the work is
 * in tiles.  The rows of an inverse are turned for it: row i of Z is column i of T. */
#include "device/dense.h"

#include <math.h>
#include <string.h>

#include "base/status.h"
#include "device/dense_inside.h"
#include "device/device.h"

enum { SOLVE_ROWS = 192 }; /* a multiple of every tile's rows */

static const struct dense_loops *loops_choose(const char *variant)
{
  int wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq");
  int is_narrow = !strcmp(variant, "avx2") || !strcmp(variant, "baseline");
  return wide && !is_narrow ? &dense_avx512 : &dense_avx2;
}

static gidx own_values(void)
{
  return ((gidx)SOLVE_ROWS + 24 + PANEL_MOST + 8) * DEPTH_MOST;
}

static gidx packed_values(idx n_most)
{
  return ((gidx)n_most + 24) * DEPTH_MOST;
}

gidx dense_bytes(int threads, idx panel, idx n_most)
{
  return (2 * packed_values(n_most) + threads * own_values() + (gidx)panel * n_most) *
         (gidx)sizeof(real);
}

int dense_open(struct dense *d, const char *variant, int threads, idx panel, idx n_most)
{
  *d = (struct dense){.threads = threads, .panel = panel, .n_most = n_most};
  TRY(device_check_fma());
  CHECK(panel >= PANEL_LEAST && panel <= PANEL_MOST && threads >= 1, ERR_INTERNAL,
        "dense work in panels of %d by %d threads", panel, threads);
  d->loops = loops_choose(variant);
  TRY(arena_take(&d->arena, &d->a, packed_values(n_most), sizeof(real)));
  TRY(arena_take(&d->arena, &d->b, packed_values(n_most), sizeof(real)));
  TRY(arena_take(&d->arena, &d->own, threads * own_values(), sizeof(real)));
  return arena_take(&d->arena, &d->turned, (gidx)panel * n_most, sizeof(real));
}

void dense_close(struct dense *d)
{
  arena_free(&d->arena);
  *d = (struct dense){0};
}

const char *dense_variant(const struct dense *d)
{
  return d->loops->name;
}

static idx half_of(idx width)
{
  return (width / 2 + LEAF - 1) / LEAF * LEAF;
}

/* c[m x n] -= a[m x depth] b[n x depth]', all column-major; by one thread, in its own memory. */
struct small {
  const real *a, *b;
  gidx a_stride, b_stride;
  idx depth;
  struct tiles to;
};
static void small_update(const struct dense_loops *loops, const struct small *s, real *own)
{
  real *packed = own + ((gidx)SOLVE_ROWS + 24) * DEPTH_MOST;
  struct dense_operand a = {s->a, 1, s->a_stride, 1, 0}, b = {s->b, 1, s->b_stride, 0, 0};
  struct tiles t = s->to;
  t.loops = loops;
  t.a = own;
  t.b = packed;
  for (idx from = 0; from < s->depth; from += DEPTH_MOST) {
    idx to = from + DEPTH_MOST < s->depth ? from + DEPTH_MOST : s->depth;
    t.depth = to - from;
    operand_pack(&b, 0, t.n, from, to, loops->columns, packed);
    for (idx i = 0; i < s->to.m; i += SOLVE_ROWS) {
      t.m = s->to.m - i < SOLVE_ROWS ? s->to.m - i : SOLVE_ROWS;
      t.c = s->to.c + i;
      t.row = s->to.row + i;
      operand_pack(&a, i, t.m, from, to, loops->rows, own);
      tiles_run(&t, 0, panels_of(t.m, loops->rows), 0, panels_of(t.n, loops->columns));
    }
  }
}

/* t[rows x width] <- t L^-T; rows <= SOLVE_ROWS or so. */
static void rows_solve(const struct dense_loops *loops, real *t, gidx stride, idx rows, idx width,
                       const real *l, gidx l_stride, real *own)
{
  if (width <= LEAF) {
    loops->solve(t, stride, rows, width, l, l_stride);
    return;
  }
  idx half = half_of(width), rest = width - half;
  rows_solve(loops, t, stride, rows, half, l, l_stride, own);
  struct small s = {t, l + half, stride, l_stride, half, {0}};
  s.to = (struct tiles){.c = t + half * stride, .stride = stride, .m = rows, .n = rest};
  small_update(loops, &s, own);
  rows_solve(loops, t + half * stride, stride, rows, rest, l + half + half * l_stride, l_stride,
             own);
}

/* The same for any number of rows, by all threads. */
static void panel_solve(struct dense *d, real *t, gidx stride, idx rows, idx width, const real *l,
                        gidx l_stride)
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

/* The first column whose pivot is bad, or width. */
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

static idx block_factor(const struct dense *d, real *s, idx width, gidx stride, real *pivot)
{
  if (width <= LEAF) return leaf_factor(s, width, stride, pivot);
  idx half = half_of(width), rest = width - half;
  idx done = block_factor(d, s, half, stride, pivot);
  if (done < half) return done;
  real *below = s + half, *corner = below + half * stride;
  rows_solve(d->loops, below, stride, rest, half, s, stride, d->own);
  struct small update = {below, below, stride, stride, half, {0}};
  update.to = (struct tiles){.c = corner, .stride = stride, .m = rest, .n = rest};
  update.to.part = PART_LOWER;
  small_update(d->loops, &update, d->own);
  return half + block_factor(d, corner, rest, stride, pivot + half);
}

idx dense_cholesky(struct dense *d, real *s, idx n, gidx stride, real *pivot)
{
  for (idx j = 0; j < n; j += d->panel) {
    idx width = n - j < d->panel ? n - j : d->panel, next = j + width;
    real *block = s + j + j * stride;
    idx done = block_factor(d, block, width, stride, pivot + j);
    if (done < width) return j + done;
    panel_solve(d, block + width, stride, n - next, width, block, stride);
    struct dense_operand minus = {s, 1, stride, 1, 0}, plus = {s, 1, stride, 0, 0};
    struct dense_product p = {
        minus, plus, next, n, next, n, j, next, s + next + next * stride, stride, PART_LOWER};
    dense_product(d, &p);
  }
  return n;
}

/* turned[end][width] <- rows i .. i + width - 1 of Z, each a column; column c of it starts as unit
 * vector i + c, loses its chain over k < i, then is solved with the block on the diagonal. */
static void rows_invert(struct dense *d, const real *l, idx i, idx width, gidx stride)
{
  idx end = i + width;
  memset(d->turned, 0, (size_t)width * (size_t)end * sizeof(real));
  for (idx c = 0; c < width; c++) d->turned[i + c + (gidx)c * end] = 1;
  for (idx k = 0; k < i; k += DEPTH_MOST) { /* rows of Z before `to` have no columns after it */
    idx to = k + DEPTH_MOST < i ? k + DEPTH_MOST : i;
    struct dense_operand z = {l, stride, 1, 0, 1}, row = {l, 1, stride, 1, 0};
    struct dense_product p = {z, row, 0, to, i, end, k, to, d->turned, end, PART_ALL};
    dense_product(d, &p);
  }
  panel_solve(d, d->turned, end, end, width, l + i + i * stride, stride);
}

void dense_inverse(struct dense *d, real *l, idx n, gidx stride)
{
  for (idx i = 0; i < n; i += d->panel) {
    idx width = n - i < d->panel ? n - i : d->panel, end = i + width;
    rows_invert(d, l, i, width, stride);
    for (idx j = 0; j < end; j++)
      for (idx c = j > i ? j - i : 0; c < width; c++)
        l[i + c + j * stride] = d->turned[j + (gidx)c * end];
  }
}
