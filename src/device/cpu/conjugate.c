/* SPDX-License-Identifier: BSD-3-Clause
 * Conjugate gradients on the CPU, tile after tile of columns. */
#include "device/conjugate.h"

#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "base/sums.h"
#include "device/cpu/cpu.h"

/* Columns of a tile: all columns divided by the number of threads, rounded up to a multiple of
 * CONJUGATE_LANES, and at most CONJUGATE_WIDTH. */
static idx tile_width(int threads, idx columns)
{
  gidx share = ceil_div(ceil_div(columns, threads), CONJUGATE_LANES) * CONJUGATE_LANES;
  return (idx)imax(imin(share, CONJUGATE_WIDTH), CONJUGATE_LANES);
}

/* Reals of a tile's arrays, and of its sums: chain, total, alpha, beta, gain and a tree. */
static gidx tile_reals(gidx n, idx k, idx width)
{
  return (2 * n + 3 * (gidx)k + 5 + TREE_LEVELS) * width;
}

static int tiles_at_once(int threads, idx columns)
{
  return (int)imin(threads, ceil_div(columns, tile_width(threads, columns)));
}

gidx cpu_conjugate_bytes(int threads, gidx n, idx k, idx columns)
{
  gidx each = tile_reals(n, k, tile_width(threads, columns)) * (gidx)sizeof(real);
  return tiles_at_once(threads, columns) * each;
}

/* A tile on which a thread works. */
struct tile {
  struct conjugate_tile t;
  const struct conjugate_job *job;
  const struct conjugate_loops *loops;
  idx first, columns; /* of the job */
  real *chain, *total, *alpha, *beta, *gain, *tree;
  gidx blocks; /* sum blocks of the present sum so far */
};

static void tile_carve(struct tile *w, real *from)
{
  struct conjugate_tile *t = &w->t;
  gidx width = t->width;
  real **const arrays[] = {&t->r,     &t->q,     &t->d,    &t->g,    &t->p,   &w->chain,
                           &w->total, &w->alpha, &w->beta, &w->gain, &w->tree};
  const gidx counts[] = {t->n, t->n, t->k, t->k, t->k, 1, 1, 1, 1, 1, TREE_LEVELS};
  for (int i = 0; i < LENGTH(arrays); from += counts[i++] * width) *arrays[i] = from;
}

static void tile_fill(const struct tile *w)
{
  const struct conjugate_job *job = w->job;
  const struct conjugate_tile *t = &w->t;
  memset(t->r, 0, (size_t)(t->n * t->width) * sizeof *t->r);
  memset(t->d, 0, (size_t)t->k * (size_t)t->width * sizeof *t->d);
  memset(t->p, 0, (size_t)t->k * (size_t)t->width * sizeof *t->p);
  memset(w->gain, 0, (size_t)t->width * sizeof *w->gain);
  for (gidx i = 0; i < t->n; i++)
    for (idx c = 0; c < w->columns; c++)
      t->r[i * t->width + c] = job->x[i * job->x_stride + w->first + c];
  for (gidx a = 0; a < t->k; a++)
    memcpy(t->d + a * t->width, job->before + a * job->before_stride + w->first,
           (size_t)w->columns * sizeof *t->d);
}

/* Set the numbers from which the chains of the gradient start: what earlier minibatches contribute
 * to it. */
static void gradient_begin(const struct tile *w)
{
  const struct conjugate_job *job = w->job;
  const struct conjugate_tile *t = &w->t;
  memset(t->g, 0, (size_t)t->k * (size_t)t->width * sizeof *t->g);
  for (gidx a = 0; a < t->k; a++) {
    const real *before = job->before + a * job->before_stride + w->first;
    if (t->held[a] == 0) continue;
    for (idx c = 0; c < w->columns; c++)
      t->g[a * t->width + c] = t->held[a] * (before[c] - t->d[a * t->width + c]);
  }
}

static void sum_begin(struct tile *w)
{
  w->blocks = 0;
  memset(w->chain, 0, (size_t)w->t.width * sizeof *w->chain);
}

static void sum_push(struct tile *w)
{
  block_sum_push(w->tree, &w->blocks, w->t.width, w->chain);
  memset(w->chain, 0, (size_t)w->t.width * sizeof *w->chain);
}

static real over(real a, real b)
{
  return b > 0 ? a / b : 0;
}

/* Scale the gradient.  Then find the directions, with beta = gain of this step / gain of the step
 * before. */
static void direction_find(struct tile *w)
{
  const struct conjugate_tile *t = &w->t;
  sum_begin(w);
  for (idx a = 0; a < t->k; a += ROW_BLOCK, sum_push(w))
    w->loops->scale(t, a, (idx)imin(a + (gidx)ROW_BLOCK, t->k), w->chain);
  block_sum_total(w->tree, w->blocks, t->width, w->total);
  for (idx c = 0; c < t->width; c++) {
    w->beta[c] = over(w->total[c], w->gain[c]);
    w->gain[c] = w->total[c];
  }
  sum_begin(w);
  for (idx a = 0; a < t->k; a += ROW_BLOCK, sum_push(w))
    w->loops->combine(t, a, (idx)imin(a + (gidx)ROW_BLOCK, t->k), w->beta, w->chain);
  block_sum_total(w->tree, w->blocks, t->width, w->alpha); /* p'H p */
}

/* alpha <- the step length of each column. */
static void step_find(struct tile *w)
{
  const struct conjugate_tile *t = &w->t;
  sum_begin(w);
  for (gidx i = 0; i < t->n; i += ROW_BLOCK, sum_push(w))
    w->loops->forward(t, i, imin(i + ROW_BLOCK, t->n), w->chain);
  block_sum_total(w->tree, w->blocks, t->width, w->total);
  for (idx c = 0; c < t->width; c++) w->alpha[c] = over(w->gain[c], w->total[c] + w->alpha[c]);
}

static void tile_run(struct tile *w)
{
  const struct conjugate_tile *t = &w->t;
  tile_fill(w);
  for (idx step = 0; step < w->job->steps; step++) {
    gradient_begin(w);
    if (step == 0)
      w->loops->begin(t, 0, t->n);
    else
      w->loops->back(t, 0, t->n, w->alpha);
    direction_find(w);
    step_find(w);
    w->loops->move(t, w->alpha);
  }
  for (gidx a = 0; a < t->k; a++)
    memcpy(w->job->after + a * w->job->columns + w->first, t->d + a * t->width,
           (size_t)w->columns * sizeof *t->d);
}

int cpu_conjugate(struct device *dev, const struct conjugate_job *job)
{
  const struct cpu_state *cpu = cpu_of(dev);
  const idx width = tile_width(cpu->options.threads, job->columns);
  const int areas = tiles_at_once(cpu->options.threads, job->columns);
  if (!cpu->normal) TRY(device_check_fma());
#pragma omp parallel for num_threads(cpu->options.threads) schedule(static, 1)
  for (int i = 0; i < areas; i++) {
    struct tile w = {.job = job, .loops = cpu->normal->conjugate};
    w.t = (struct conjugate_tile){.n = job->n,
                                  .s = job->s,
                                  .k = job->k,
                                  .width = width,
                                  .atoms = job->atoms,
                                  .codes = job->codes,
                                  .held = job->held,
                                  .weight = job->weight};
    tile_carve(&w, (real *)job->work + i * tile_reals(job->n, job->k, width));
    for (w.first = i * width; w.first < job->columns; w.first += areas * width) {
      w.columns = (idx)imin(width, job->columns - w.first);
      tile_run(&w);
    }
  }
  return OK;
}
