/* SPDX-License-Identifier: BSD-3-Clause
 * The trial of the matrix unit: sums of products whose exact value is known, with planted and with
 * random operands.  The bound (C.8) allows twice the error that is accepted here.
 *
 * Operands are exact in fp16, so every difference is an error of the unit.  A frame is one vector.
 * All vectors of a tile except SCREEN_PEAKS are zeros, so each peak that is kept is the size of one
 * score. */
#include "device/cuda/screen_probe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/rng.h"
#include "base/status.h"
#include "base/team.h"
#include "device/cuda/memory.h"
#include "device/cuda/screen_launch.h"

enum { TRIAL_ROWS = SCREEN_ROWS, TRIAL_COLUMNS = 256, TRIAL_TILES = 8, KINDS = 10, SEED = 41 };
enum { TRIAL_ATOMS = TRIAL_TILES * SCREEN_PEAKS }; /* atoms that are not zeros */

struct trial {
  idx vectors;                 /* of a tile */
  float *rows, *atoms, *peaks; /* [ROWS][COLUMNS], [TILES vectors][COLUMNS], [ROWS][ATOMS] */
  struct screen_step step;     /* how much a step of the unit may lose */
  double part[TRIAL_ROWS]; /* the largest loss of a sum of the row, divided by the allowed loss */
};

/* +-(1 + m / 1024) 2^power, exact in fp16. */
static float short_number(uint64_t stream, uint64_t i, int power)
{
  float x = 1 + (float)random_below(SEED, stream, i, 1024) / 1024;
  return ldexpf(random_below(SEED, stream + 1, i, 2) ? x : -x, power);
}

enum { ROWS = 1, ATOMS = 11 }; /* streams of random numbers */

/* Column c of vector i.  Each kind of vector provokes another kind of error. */
static float trial_number(uint64_t stream, idx i, idx c)
{
  uint64_t at = (uint64_t)i * TRIAL_COLUMNS + (uint64_t)c;
  float x = short_number(stream, at, 0), size = fabsf(x);
  float subnormal = 0x1p-17f * (float)random_below(SEED, stream + 3, at, 8);
  switch (i % KINDS) {
  case 0: /* like data */
    return x;
  case 1: /* magnitudes from 2^-12 to 2^6 */
    return short_number(stream, at, (int)random_below(SEED, stream + 2, at, 18) - 12);
  case 2: /* one large term first: all later terms are truncated against it */
    return c == 0 ? 64 : ldexpf(size, -7);
  case 3: /* one large term in every sixteen */
    return c % 16 == 0 ? 64 : ldexpf(size, -6);
  case 4: /* one large term last */
    return c == TRIAL_COLUMNS - 1 ? 64 : ldexpf(size, -6);
  case 5: /* two large terms that cancel, around small ones */
    return c == 0 ? 96 : c == TRIAL_COLUMNS - 1 ? -96 : ldexpf(size, -7);
  case 6: /* same sign and nearly equal: truncation errors add up */
    return 2 - 0x1p-10f * (float)(c % 3);
  case 7: /* just too small beside the sum so far */
    return c < 16 ? size : 0x1p-12f * size;
  case 8: /* subnormal in fp16, and a large term that meets a zero of the atoms' kind 8 */
    if (stream == ATOMS) return c == 0 ? 0 : x;
    return c == 0 ? 64 : subnormal;
  default:
    return stream == ATOMS ? subnormal : x;
  }
}

/* The k-th atom that is not zero: the first item of part k % SCREEN_PEAKS of its tile (tile_peaks()
 * of kernels/screen.h). */
static float *trial_atom(const struct trial *t, idx k)
{
  idx peak = k % SCREEN_PEAKS, item = peak / 4 * (t->vectors / 8) + peak % 4 * 2;
  return t->atoms + ((gidx)(k / SCREEN_PEAKS) * t->vectors + item) * TRIAL_COLUMNS;
}

/* A task: the numbers of row i; for i from TRIAL_ROWS on, the numbers of an atom. */
static void vector_fill(void *self, gidx i)
{
  const struct trial *t = self;
  idx row = (idx)i, k = row - TRIAL_ROWS;
  float *atom = k < 0 ? NULL : trial_atom(t, k);
  for (idx c = 0; c < TRIAL_COLUMNS; c++)
    if (k < 0)
      t->rows[i * TRIAL_COLUMNS + c] = trial_number(ROWS, row, c);
    else /* so that all kinds meet */
      atom[c] = ldexpf(trial_number(ATOMS, k / 3, c), -SCREEN_ATOM_POWER);
}

/* The unit computed `found` for row x and atom d.  Returns its error, divided by the loss that
 * (C.8) allows its steps. */
static double sum_part(const float *x, const float *d, double found, struct screen_step step)
{
  double sum = 0, lost = 0;
  for (idx first = 0; first < TRIAL_COLUMNS; first += step.group) {
    double sizes = fabs(sum) + lost; /* a bound on the unit's sum so far */
    for (idx c = first; c < first + step.group; c++) {
      sum += (double)x[c] * d[c];
      sizes += fabs((double)x[c] * d[c]);
    }
    lost += step.loss * sizes;
  }
  return fabs(found - fabs(sum)) / lost;
}

/* A task: t->part[i] <- the largest sum_part() of row i; infinity if a sum lost more than allowed,
 * or is NaN. */
static void row_part(void *self, gidx i)
{
  struct trial *t = self;
  const float *x = t->rows + i * TRIAL_COLUMNS, *peaks = t->peaks + i * TRIAL_ATOMS;
  float large = 0;
  for (idx c = 0; c < TRIAL_COLUMNS; c++) large = fmaxf(large, fabsf(x[c]));
  double unit = ldexp(1, SCREEN_ROW_POWER - ilogbf(large) + SCREEN_ATOM_POWER), max = 0;
  for (idx k = 0; k < TRIAL_ATOMS; k++) {
    double part = sum_part(x, trial_atom(t, k), peaks[k] / unit, t->step);
    max = part <= 1 ? fmax(max, part) : INFINITY;
  }
  t->part[i] = max;
}

/* Device memory of the trial; `rest` has the peaks, then everything else that the kernels write. */
struct trial_works {
  struct cuda_work in, f16, rows, rest;
};
enum { REST_PART = 1024, REST_PARTS = 5 };

static gidx peaks_bytes(void)
{
  return (gidx)TRIAL_ROWS * TRIAL_ATOMS * (gidx)sizeof(float);
}

static void *rest_part(const struct trial_works *w, int part)
{
  return (char *)w->rest.at + peaks_bytes() + part * REST_PART;
}

/* At most PLAN_TRIAL_BYTES: tiles have 256 vectors or fewer. */
static int trial_upload(struct cuda_state *s, const struct trial *t, struct trial_works *w)
{
  gidx vectors = TRIAL_TILES * t->vectors, stages = screen_stages(TRIAL_COLUMNS);
  gidx bytes = (TRIAL_ROWS + vectors) * TRIAL_COLUMNS * (gidx)sizeof(float);
  TRY(cuda_reserve(s, &w->in, bytes));
  TRY(cuda_reserve(s, &w->f16, vectors * stages * SCREEN_ITEM));
  TRY(cuda_reserve(s, &w->rows, TRIAL_ROWS * stages * SCREEN_ITEM));
  TRY(cuda_reserve(s, &w->rest, peaks_bytes() + REST_PARTS * REST_PART));
  TRY_CU(cudaMemsetAsync(rest_part(w, 0), 0, REST_PARTS * REST_PART, s->stream));
  TRY_CU(cudaMemcpyAsync(w->in.at, t->rows, (size_t)bytes, cudaMemcpyHostToDevice, s->stream));
  return OK;
}

static int trial_to_f16(struct device *dev, const struct trial *t, const struct trial_works *w)
{
  idx vectors = TRIAL_TILES * t->vectors;
  struct to_f16_args h = {.in = (float *)w->in.at + TRIAL_ROWS * TRIAL_COLUMNS,
                          .out = w->f16.at,
                          .frames = vectors,
                          .turn = 1,
                          .padded = vectors,
                          .d = 1,
                          .p = TRIAL_COLUMNS,
                          .pitch = TRIAL_COLUMNS,
                          .items = t->vectors,
                          .frame = 1,
                          .norms = rest_part(w, 0)};
  return cuda_screen_to_f16(dev, &h);
}

static int trial_score(struct device *dev, struct trial *t, struct trial_works *w)
{
  struct cuda_state *s = dev->state;
  TRY(trial_upload(s, t, w));
  TRY(trial_to_f16(dev, t, w));
  struct screen_args a = {.x = w->in.at,
                          .n = TRIAL_ROWS,
                          .slots = TRIAL_TILES * t->vectors,
                          .p = TRIAL_COLUMNS,
                          .d = 1,
                          .rows = w->rows.at,
                          .atoms = w->f16.at,
                          .stages = screen_stages(TRIAL_COLUMNS),
                          .row_tiles = 1,
                          .atom_tiles = TRIAL_TILES,
                          .norms = rest_part(w, 0),
                          .reach = rest_part(w, 1),
                          .threshold = rest_part(w, 2),
                          .path = rest_part(w, 3),
                          .counts = rest_part(w, 4),
                          .peaks = w->rest.at,
                          .peaks_row = TRIAL_ATOMS};
  TRY(cuda_screen_launch(dev, KERNEL_TO_F16_ROWS, &a, TRIAL_ROWS, 0));
  TRY(cuda_screen_product(dev, &a, 1));
  TRY_CU(cudaMemcpyAsync(t->peaks, w->rest.at, (size_t)peaks_bytes(), cudaMemcpyDeviceToHost,
                         s->stream));
  return cuda_finish(s);
}

static int trial_run(struct device *dev, struct arena *arena, double *part)
{
  struct cuda_state *s = dev->state;
  struct trial_works w = {0};
  struct trial t = {.vectors = screen_form_of(s->sizes.wgmma, 1, 1).vectors,
                    .step = cuda_screen_step(s->architecture)};
  gidx vectors = TRIAL_TILES * t.vectors;
  TRY(arena_alloc(arena, &t.rows, (TRIAL_ROWS + vectors) * TRIAL_COLUMNS, sizeof *t.rows));
  TRY(arena_alloc(arena, &t.peaks, TRIAL_ROWS * TRIAL_ATOMS, sizeof *t.peaks));
  t.atoms = t.rows + TRIAL_ROWS * TRIAL_COLUMNS;
  team_run(s->options.threads, TRIAL_ROWS + TRIAL_ATOMS, vector_fill, &t);
  int status = trial_score(dev, &t, &w);
  struct cuda_work *const works[] = {&w.in, &w.f16, &w.rows, &w.rest};
  for (int i = 0; i < LENGTH(works); i++) cuda_release(works[i]);
  TRY(status);
  team_run(s->options.threads, TRIAL_ROWS, row_part, &t);
  *part = 0;
  for (idx i = 0; i < TRIAL_ROWS; i++) *part = fmax(*part, t.part[i]);
  return OK;
}

int cuda_screen_probe(struct device *dev, int *good)
{
  struct cuda_state *s = dev->state;
  struct arena arena = {0};
  double part = INFINITY;
  int status = trial_run(dev, &arena, &part);
  arena_free(&arena);
  TRY(status);
  log_debug("the matrix unit of GPU %d has %.2f of the error that the certified filter allows it",
            s->number, part);
  *good = part <= 1 && !(s->options.test && s->options.test->distrust);
  return OK;
}
