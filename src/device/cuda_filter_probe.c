/* SPDX-License-Identifier: BSD-3-Clause
 * The matrix unit on trial: sums of products whose exact value is known, planted against it and
 * drawn at random.  The bound allows for twice what is asked of it here.
 *
 * Operands are exact in fp16, so that every difference is the unit's.  All frames are one vector,
 * and all but 32 of a tile are zeros: each kept peak is then the size of one score. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/status.h"
#include "device/cuda.h"

enum { TRIAL_ROWS = FILTER_ROWS, TRIAL_COLUMNS = 256, TRIAL_TILES = 8, KINDS = 10, SEED = 41 };

struct trial {
  idx vectors;                 /* items of a tile */
  float *rows, *atoms, *peaks; /* [ROWS][COLUMNS], [TILES vectors][COLUMNS], [ROWS][TILES PEAKS] */
};

/* +-(1 + m / 1024) 2^power, exact in fp16. */
static float short_number(uint64_t stream, uint64_t i, int power)
{
  float x = 1 + (float)random_below(SEED, stream, i, 1024) / 1024;
  return ldexpf(random_below(SEED, stream + 1, i, 2) ? x : -x, power);
}

enum { ROWS = 1, ATOMS = 11 }; /* streams of random numbers */

/* Column c of vector i: kinds of vectors, each of which wants to lose something else. */
static float trial_number(uint64_t stream, idx i, idx c)
{
  uint64_t at = (uint64_t)i * TRIAL_COLUMNS + (uint64_t)c;
  float x = short_number(stream, at, 0), size = fabsf(x);
  float subnormal = 0x1p-17f * (float)random_below(SEED, stream + 3, at, 8);
  switch (i % KINDS) {
  case 0: /* like data */
    return x;
  case 1: /* every size that there is */
    return short_number(stream, at, (int)random_below(SEED, stream + 2, at, 18) - 12);
  case 2: /* one large term first: all others are cut against it */
    return c == 0 ? 64 : ldexpf(size, -7);
  case 3: /* one in every sixteen */
    return c % 16 == 0 ? 64 : ldexpf(size, -6);
  case 4: /* one last */
    return c == TRIAL_COLUMNS - 1 ? 64 : ldexpf(size, -6);
  case 5: /* large ones that cancel around small ones */
    return c == 0 ? 96 : c == TRIAL_COLUMNS - 1 ? -96 : ldexpf(size, -7);
  case 6: /* all of one sign and nearly alike: cuts add up */
    return 2 - 0x1p-10f * (float)(c % 3);
  case 7: /* just too small beside the sum so far */
    return c < 16 ? size : 0x1p-12f * size;
  case 8: /* subnormal in fp16, beside a term that the other side's kind 8 takes out */
    if (stream == ATOMS) return c == 0 ? 0 : x;
    return c == 0 ? 64 : subnormal;
  default:
    return stream == ATOMS ? subnormal : x;
  }
}

/* Which item of its tile has peak i. */
static idx item_of(const struct trial *t, idx peak)
{
  return peak / 4 * (t->vectors / 8) + peak % 4 * 2;
}

static void trial_fill(struct trial *t)
{
  for (idx i = 0; i < TRIAL_ROWS; i++)
    for (idx c = 0; c < TRIAL_COLUMNS; c++)
      t->rows[i * TRIAL_COLUMNS + c] = trial_number(ROWS, i, c);
  for (idx k = 0; k < TRIAL_TILES * FILTER_PEAKS; k++)
    for (idx c = 0; c < TRIAL_COLUMNS; c++) {
      idx vector = k / FILTER_PEAKS * t->vectors + item_of(t, k % FILTER_PEAKS);
      float x = trial_number(ATOMS, k / 3, c); /* all kinds meet */
      t->atoms[(gidx)vector * TRIAL_COLUMNS + c] = ldexpf(x, -FILTER_ATOM_POWER);
    }
}

/* The largest part of the allowance that a sum used; infinity where one used more. */
static double trial_part(const struct trial *t, double allowance)
{
  double most = 0;
  for (idx i = 0; i < TRIAL_ROWS; i++) {
    const float *x = t->rows + (gidx)i * TRIAL_COLUMNS;
    float large = 0;
    for (idx c = 0; c < TRIAL_COLUMNS; c++) large = fmaxf(large, fabsf(x[c]));
    double unit = ldexp(1, FILTER_ROW_POWER - ilogbf(large) + FILTER_ATOM_POWER);
    for (idx k = 0; k < TRIAL_TILES * FILTER_PEAKS; k++) {
      idx vector = k / FILTER_PEAKS * t->vectors + item_of(t, k % FILTER_PEAKS);
      const float *d = t->atoms + (gidx)vector * TRIAL_COLUMNS;
      double sum = 0, sizes = 0;
      for (idx c = 0; c < TRIAL_COLUMNS; c++) {
        sum += (double)x[c] * d[c];
        sizes += fabs((double)x[c] * d[c]);
      }
      double found = t->peaks[(gidx)i * TRIAL_TILES * FILTER_PEAKS + k] / unit;
      double part = fabs(found - fabs(sum)) / (allowance * sizes);
      if (!(part <= 1)) return INFINITY; /* or not a number */
      most = fmax(most, part);
    }
  }
  return most;
}

/* What the trial takes on the device; `rest` has the peaks, then what else the kernels write. */
struct trial_room {
  struct cuda_work in, halves, rows, rest;
};
enum { REST_PART = 1024, REST_PARTS = 5 };

static gidx peaks_bytes(void)
{
  return (gidx)TRIAL_ROWS * TRIAL_TILES * FILTER_PEAKS * (gidx)sizeof(float);
}

static void *rest_part(const struct trial_room *w, int part)
{
  return (char *)w->rest.at + peaks_bytes() + part * REST_PART;
}

static int trial_bring(struct cuda_state *s, const struct trial *t, struct trial_room *w)
{
  gidx vectors = TRIAL_TILES * t->vectors, stages = filter_stages(TRIAL_COLUMNS);
  gidx bytes = (TRIAL_ROWS + vectors) * TRIAL_COLUMNS * (gidx)sizeof(float);
  TRY(cuda_reserve(s, &w->in, bytes));
  TRY(cuda_reserve(s, &w->halves, vectors * stages * FILTER_ITEM));
  TRY(cuda_reserve(s, &w->rows, TRIAL_ROWS * stages * FILTER_ITEM));
  TRY(cuda_reserve(s, &w->rest, peaks_bytes() + REST_PARTS * REST_PART));
  TRY_CU(cudaMemsetAsync(rest_part(w, 0), 0, REST_PARTS * REST_PART, s->stream));
  TRY_CU(cudaMemcpyAsync(w->in.at, t->rows, (size_t)bytes, cudaMemcpyHostToDevice, s->stream));
  return OK;
}

static int trial_halve(struct device *dev, const struct trial *t, const struct trial_room *w)
{
  idx vectors = TRIAL_TILES * t->vectors;
  struct halve_args h = {.in = (float *)w->in.at + TRIAL_ROWS * TRIAL_COLUMNS,
                         .out = w->halves.at,
                         .frames = vectors,
                         .turn = 1,
                         .padded = vectors,
                         .d = 1,
                         .p = TRIAL_COLUMNS,
                         .pitch = TRIAL_COLUMNS,
                         .items = t->vectors,
                         .frame = 1,
                         .most = rest_part(w, 0)};
  struct cuda_launch launch = {.name = KERNEL_HALVE_ATOMS, .arguments = &h};
  launch.grid = (dim3){(unsigned)vectors / FILTER_ROW_WARPS, 1, 1};
  launch.block = (dim3){FILTER_ROW_WARPS * WARP, 1, 1};
  return cuda_launch(dev, &launch);
}

static int trial_score(struct device *dev, struct trial *t, struct trial_room *w)
{
  struct cuda_state *s = dev->state;
  TRY(trial_bring(s, t, w));
  TRY(trial_halve(dev, t, w));
  struct filter_args a = {.x = w->in.at,
                          .n = TRIAL_ROWS,
                          .slots = TRIAL_TILES * t->vectors,
                          .p = TRIAL_COLUMNS,
                          .d = 1,
                          .rows = w->rows.at,
                          .atoms = w->halves.at,
                          .stages = filter_stages(TRIAL_COLUMNS),
                          .row_tiles = 1,
                          .atom_tiles = TRIAL_TILES,
                          .most = rest_part(w, 0),
                          .reach = rest_part(w, 1),
                          .least = rest_part(w, 2),
                          .path = rest_part(w, 3),
                          .counts = rest_part(w, 4),
                          .peaks = w->rest.at,
                          .peaks_row = TRIAL_TILES * FILTER_PEAKS};
  TRY(cuda_filter_launch(dev, KERNEL_HALVE_ROWS, &a, TRIAL_ROWS, 0));
  TRY(cuda_filter_product(dev, &a, 1));
  TRY_CU(cudaMemcpyAsync(t->peaks, w->rest.at, (size_t)peaks_bytes(), cudaMemcpyDeviceToHost,
                         s->stream));
  return cuda_finish(s);
}

static int trial_run(struct device *dev, struct arena *arena, double *part)
{
  struct cuda_state *s = dev->state;
  struct trial_room w = {0};
  struct trial t = {.vectors = filter_form_of(s->filter.wgmma, 1, 1).vectors};
  gidx vectors = TRIAL_TILES * t.vectors;
  TRY(arena_take(arena, &t.rows, (TRIAL_ROWS + vectors) * TRIAL_COLUMNS, sizeof *t.rows));
  TRY(arena_take(arena, &t.peaks, TRIAL_ROWS * TRIAL_TILES * FILTER_PEAKS, sizeof *t.peaks));
  t.atoms = t.rows + TRIAL_ROWS * TRIAL_COLUMNS;
  trial_fill(&t);
  int status = trial_score(dev, &t, &w);
  struct cuda_work *const works[] = {&w.in, &w.halves, &w.rows, &w.rest};
  for (int i = 0; i < LENGTH(works); i++) cuda_release(works[i]);
  TRY(status);
  *part = trial_part(&t, cuda_filter_gamma(s->architecture, TRIAL_COLUMNS) / 2);
  return OK;
}

int cuda_filter_probe(struct device *dev, int *good)
{
  struct cuda_state *s = dev->state;
  struct arena arena = {0};
  double part = INFINITY;
  int status = trial_run(dev, &arena, &part);
  arena_free(&arena);
  TRY(status);
  log_debug("the matrix unit of GPU %d uses %.2f of what the certified filter allows it", s->number,
            part);
  *good = part <= 1 && !s->options.filter_distrust;
  return OK;
}
