/* SPDX-License-Identifier: BSD-3-Clause
 * Products, gradients and sparse forms on the CPU.  In a product, a thread takes panels of
 * outputs, and packs their weights once for all rows.  In sparse forms, a thread takes lists. */
#include "device/triad.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "device/cpu/cpu.h"
#include "device/cpu/triad_loops.h"

enum { MAX_TILE_ROWS = 8, ADAM_PIECE = 16384 };

static gidx panel_floats_of(idx depth)
{
  return round_up((gidx)depth * TRIAD_MAX_WIDTH, CACHE_LINE);
}

gidx cpu_triad_bytes(int threads, idx k)
{
  gidx gradient = panel_floats_of(TRIAD_CHUNK) * (gidx)sizeof(float) +
                  (gidx)k * TRIAD_MAX_WIDTH * (gidx)sizeof(real);
  return threads * imax(panel_floats_of(k) * (gidx)sizeof(float), gradient);
}

/* Allocate `bytes` of workspace for each thread. */
static int work_alloc(const struct cpu_state *cpu, gidx bytes, char **work)
{
  gidx all = round_up(bytes, CACHE_LINE) * cpu->options.threads;
  if (!cpu->triad) TRY(device_check_fma());
  *work = memory_zeroed((size_t)all);
  CHECK(*work, ERR_MEMORY, "cannot allocate %.1f MB", 1e-6 * (double)all);
  return OK;
}

static void settle(float *x, idx n)
{
  float nan = triad_nan();
  for (idx i = 0; i < n; i++) x[i] = isnan(x[i]) ? nan : x[i];
}

/* panel[depth][width] <- the weights of outputs first .. first + n - 1; the other columns are 0. */
static void weights_pack(const struct triad_product *p, idx first, idx n, idx width, float *panel)
{
  for (idx i = 0; i < p->k; i++) {
    const float *from = p->w.at + i * p->w.in + first * p->w.out;
    float *to = panel + (gidx)i * width;
    for (idx j = 0; j < n; j++) to[j] = from[j * p->w.out];
    for (idx j = n; j < width; j++) to[j] = 0;
  }
}

/* Outputs first .. first + n - 1 of all rows. */
static void product_panel(const struct triad_loops *loops, const struct triad_product *p, idx first,
                          idx n, float *panel)
{
  float start[TRIAD_MAX_WIDTH] = {0}, tile[MAX_TILE_ROWS * TRIAD_MAX_WIDTH];
  idx width = loops->width;
  weights_pack(p, first, n, width, panel);
  if (p->bias) memcpy(start, p->bias + first, (size_t)n * sizeof *start);
  for (idx r = 0, rows; r < p->m; r += rows) {
    rows = p->m - r >= loops->rows ? loops->rows : 1;
    loops->tile(p->x + r * p->x_stride, p->x_stride, 1, rows, panel, p->k, start, tile, width);
    for (idx i = 0; i < rows; i++) {
      float *y = p->y + (r + i) * p->y_stride + first;
      memcpy(y, tile + (gidx)i * width, (size_t)n * sizeof *y);
      settle(y, n);
    }
  }
}

int cpu_triad_product(struct device *dev, enum precision precision, const struct triad_product *p,
                      void *spare)
{
  (void)precision, (void)spare;
  const struct cpu_state *cpu = cpu_of(dev);
  const struct triad_loops *loops = cpu->triad;
  gidx bytes = round_up(panel_floats_of(p->k) * (gidx)sizeof(float), CACHE_LINE);
  char *work;
  TRY(work_alloc(cpu, bytes, &work));
  int threads = cpu->options.threads;
  idx panels = (idx)ceil_div(p->n, loops->width);
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (int t = 0; t < threads; t++)
    for (idx i = t; i < panels; i += threads) {
      idx first = i * loops->width, n = (idx)imin(p->n - first, loops->width);
      product_panel(loops, p, first, n, (float *)(work + t * bytes));
    }
  free(work);
  return OK;
}

/* sums[k][width] <- sums + the chains of a chunk of rows; the panel has columns of dy. */
static void chunk_add(const struct triad_loops *loops, const struct triad_gradient *g, idx row,
                      idx rows, const float *panel, real *sums)
{
  static const float zero[TRIAD_MAX_WIDTH];
  float tile[MAX_TILE_ROWS * TRIAD_MAX_WIDTH];
  idx width = loops->width;
  for (idx i = 0, inputs; i < g->k; i += inputs) {
    inputs = g->k - i >= loops->rows ? loops->rows : 1;
    loops->tile(g->x + row * g->x_stride + i, 1, g->x_stride, inputs, panel, rows, zero, tile,
                width);
    for (idx j = 0; j < inputs * width; j++) sums[(gidx)i * width + j] += tile[j];
  }
}

/* Outputs first .. first + n - 1 of the gradient. */
static void gradient_panel(const struct triad_loops *loops, const struct triad_gradient *g,
                           idx first, idx n, float *panel, real *sums)
{
  idx width = loops->width;
  memset(sums, 0, (size_t)g->k * (size_t)width * sizeof *sums);
  for (idx row = 0; row < g->m; row += TRIAD_CHUNK) {
    idx rows = (idx)imin(g->m - row, TRIAD_CHUNK);
    for (idx r = 0; r < rows; r++) {
      memset(panel + (gidx)r * width, 0, (size_t)width * sizeof *panel);
      memcpy(panel + (gidx)r * width, g->dy + (row + r) * g->dy_stride + first,
             (size_t)n * sizeof *panel);
    }
    chunk_add(loops, g, row, rows, panel, sums);
  }
  for (idx i = 0; i < g->k; i++) {
    float *dw = g->dw + i * g->dw_stride + first;
    for (idx j = 0; j < n; j++) dw[j] += (float)sums[(gidx)i * width + j];
    settle(dw, n);
  }
}

int cpu_triad_gradient(struct device *dev, enum precision precision, const struct triad_gradient *g,
                       void *spare)
{
  (void)precision, (void)spare;
  const struct cpu_state *cpu = cpu_of(dev);
  const struct triad_loops *loops = cpu->triad;
  gidx panel = panel_floats_of(TRIAD_CHUNK) * (gidx)sizeof(float);
  gidx bytes = round_up(panel + (gidx)g->k * TRIAD_MAX_WIDTH * (gidx)sizeof(real), CACHE_LINE);
  char *work;
  TRY(work_alloc(cpu, bytes, &work));
  int threads = cpu->options.threads;
  idx panels = (idx)ceil_div(g->n, loops->width);
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (int t = 0; t < threads; t++)
    for (idx i = t; i < panels; i += threads) {
      idx first = i * loops->width, n = (idx)imin(g->n - first, loops->width);
      char *own = work + t * bytes;
      gradient_panel(loops, g, first, n, (float *)own, (real *)(own + panel));
    }
  free(work);
  return OK;
}

/* The number of entries from e on that belong to the same chunk of rows; without a gradient,
 * all. */
static gidx run_of(const struct triad_lists *l, gidx e, gidx end, int is_gradient)
{
  if (!is_gradient) return end - e;
  idx chunk = l->index[e] / TRIAD_CHUNK;
  gidx n = 1;
  while (e + n < end && l->index[e + n] / TRIAD_CHUNK == chunk) n++;
  return n;
}

/* out <- out + the gradient of list i; chain, sums: workspace for a row. */
static void list_gradient(const struct triad_loops *loops, const struct triad_lists *l, gidx i,
                          float *chain, real *sums, float *out)
{
  gidx end = l->start[i + 1];
  memset(sums, 0, (size_t)l->width * sizeof *sums);
  for (gidx e = l->start[i], n; e < end; e += n) {
    n = run_of(l, e, end, 1);
    loops->sum(l->index + e, l->value + e, n, l->matrix, l->width, chain);
    for (idx c = 0; c < l->width; c++) sums[c] += chain[c];
  }
  for (idx c = 0; c < l->width; c++) out[c] += (float)sums[c];
}

int cpu_triad_sparse(struct device *dev, const struct triad_lists *l, int is_gradient, float *out)
{
  const struct cpu_state *cpu = cpu_of(dev);
  const struct triad_loops *loops = cpu->triad;
  gidx row = round_up((gidx)l->width * (gidx)sizeof(real), CACHE_LINE), bytes = 2 * row;
  char *work;
  TRY(work_alloc(cpu, bytes, &work));
  int threads = cpu->options.threads;
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (int t = 0; t < threads; t++)
    for (gidx i = t; i < l->count; i += threads) {
      char *own = work + t * bytes;
      float *to = out + i * l->width;
      gidx from = l->start[i];
      if (is_gradient)
        list_gradient(loops, l, i, (float *)own, (real *)(own + row), to);
      else
        loops->sum(l->index + from, l->value + from, l->start[i + 1] - from, l->matrix, l->width,
                   to);
    }
  free(work);
  return OK;
}

int cpu_triad_dots(struct device *dev, const struct triad_lists *l, const float *rows, float *out)
{
  const struct cpu_state *cpu = cpu_of(dev);
  if (!cpu->triad) TRY(device_check_fma());
#pragma omp parallel for num_threads(cpu->options.threads)
  for (gidx i = 0; i < l->count; i++) {
    gidx from = l->start[i];
    cpu->triad->dots(rows + i * l->width, l->index + from, l->start[i + 1] - from, l->matrix,
                     l->width, out + from);
  }
  return OK;
}

int cpu_adam(struct device *dev, const struct adam_state *s, const struct adam_rates *rates)
{
  const struct cpu_state *cpu = cpu_of(dev);
  if (!cpu->triad) TRY(device_check_fma());
#pragma omp parallel for num_threads(cpu->options.threads)
  for (gidx i = 0; i < s->count; i += ADAM_PIECE) {
    struct adam_state part = {s->w + i, s->m + i, s->v + i, s->g + i,
                              imin(s->count - i, ADAM_PIECE)};
    cpu->triad->adam(&part, rates);
  }
  return OK;
}
