/* SPDX-License-Identifier: BSD-3-Clause
 * Routing by way of the certified filter on a GPU (doc/certified.md).
 *
 * Rows become short operands; the sizes of a sample give each row a guess; one product lists what
 * reaches it; each row's list proves the guess or leaves the row to the exact path; exact chains of
 * what the bound leaves give the support. */
#include <math.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "device/cuda_route.h"

enum { LIST_LEAST = 256, LIST_MOST = 2048, PAIRS_BESIDE = 96 };
enum { PAIRS_MOST = 1 << 30 }; /* of tiles, which the kernel counts */
/* The filter is left for good where one row in so many of a large step took the exact path. */
enum { LEFT_MOST = 4, STEP_LARGE = 256 };
/* A guess is too high for one row in so many. */
#define GUESS_FAILS 2e-6

int cuda_filter_launch(struct device *dev, enum kernel_name name, struct filter_args *a, gidx rows,
                       gidx shared)
{
  struct cuda_launch launch = {
      .name = name, .shared = (int)shared * FILTER_ROW_WARPS, .arguments = a};
  launch.grid = (dim3){(unsigned)((rows + FILTER_ROW_WARPS - 1) / FILTER_ROW_WARPS), 1, 1};
  launch.block = (dim3){FILTER_ROW_WARPS * WARP, 1, 1};
  return cuda_launch(dev, &launch);
}

int cuda_filter_product(struct device *dev, struct filter_args *a, int sample)
{
  struct cuda_state *s = dev->state;
  struct kernel_shape shape = {.wgmma = s->filter.wgmma, .sample = sample, .d = a->d};
  struct filter_form form = filter_form_of(shape.wgmma, shape.d, sample);
  int pairs = a->row_tiles * a->atom_tiles;
  a->blocks = pairs < s->multiprocessors ? pairs : s->multiprocessors;
  struct cuda_launch launch = {.name = KERNEL_FILTER,
                               .shape = shape,
                               .grid = {(unsigned)a->blocks, 1, 1},
                               .block = {(unsigned)filter_threads(form.wgmma), 1, 1},
                               .shared = filter_shared_bytes(form.vectors, form.stages),
                               .arguments = a};
  return cuda_launch(dev, &launch);
}

/* The least rank that hardly any row has more of its best among the sample than: Poisson's law. */
static int rank_of(double expected)
{
  double term = exp(-expected), below = term;
  int rank = 1;
  for (; 1 - below > GUESS_FAILS && rank < 4 * TOP_S_MOST; rank++) {
    term *= expected / rank;
    below += term;
  }
  return rank;
}

/* What guess, and how long lists may be.  No peaks: a sample is too small for so many atoms. */
static void lists_plan(const struct cuda_filter *f, struct filter_args *a, idx vectors_tile)
{
  double part = (double)f->sampled / a->slots;
  a->peaks_row = f->sampled / vectors_tile * FILTER_PEAKS;
  a->peak_rank = rank_of(a->take * part);
  if (2 * a->peak_rank > a->peaks_row) a->peaks_row = 0;
  double wanted = a->peaks_row ? 4 * a->peak_rank / part + 2 * a->take : 0;
  a->capacity = LIST_LEAST;
  while (a->capacity < wanted && a->capacity < LIST_MOST) a->capacity *= 2;
}

/* Arrays one after another in one piece of memory, which is taken when all are known. */
struct room {
  gidx bytes;
  char *base; /* NULL in the first turn */
};
static void *room_take(struct room *r, gidx count, size_t size)
{
  gidx at = r->bytes;
  r->bytes = (at + count * (gidx)size + 255) / 256 * 256;
  return r->base ? r->base + at : NULL;
}

static gidx rooms_take(struct filter_args *a, char *base)
{
  struct room r = {0, base};
  gidx rows = (gidx)a->row_tiles * FILTER_ROWS;
  a->totals = room_take(&r, 1, sizeof *a->totals);
  a->reach = room_take(&r, rows, sizeof *a->reach);
  a->least = room_take(&r, rows, sizeof *a->least);
  a->path = room_take(&r, rows, sizeof *a->path);
  a->counts = room_take(&r, rows, sizeof *a->counts);
  a->start = room_take(&r, rows, sizeof *a->start);
  a->held = room_take(&r, rows, sizeof *a->held);
  a->left = room_take(&r, rows, sizeof *a->left);
  a->peaks = room_take(&r, rows * a->peaks_row, sizeof *a->peaks);
  a->lists = room_take(&r, rows * a->capacity, sizeof *a->lists);
  a->pairs = room_take(&r, a->pairs_room, sizeof *a->pairs);
  a->values = room_take(&r, a->pairs_room, sizeof *a->values);
  return r.bytes;
}

static void args_make(const struct cuda_step *t, struct filter_args *a)
{
  struct cuda_state *s = t->dev->state;
  struct cuda_filter *f = &s->filter;
  const struct exclusions *excluded = &t->job->excluded;
  struct filter_form form = filter_form_of(f->wgmma, s->options.d, 0);
  idx tile = form.vectors / form.frame;
  *a =
      (struct filter_args){.x = (const float *)t->job->rows->device + (gidx)t->first * s->options.p,
                           .frames = f->frames.at,
                           .atom_of = s->atom_of.at,
                           .excluded = s->excluded.at,
                           .excluded_count = excluded->count,
                           .excluded_stride = excluded->stride,
                           .n = t->n,
                           .slots = t->slots,
                           .turn = f->turn,
                           .p = s->options.p,
                           .pitch = cuda_filter_pitch(s->options.p),
                           .d = s->options.d,
                           .take = t->job->take,
                           .atoms = f->halves.at,
                           .stages = filter_stages(s->options.p),
                           .row_tiles = (t->n + FILTER_ROWS - 1) / FILTER_ROWS,
                           .atom_tiles = (t->slots + tile - 1) / tile,
                           .most = f->most.at,
                           .gamma = f->gamma,
                           .less = (float)s->options.filter_less,
                           .high = (float)s->options.filter_high,
                           .out = t->out};
  lists_plan(f, a, tile);
  gidx room = (gidx)t->n * (2 * a->take + PAIRS_BESIDE);
  a->pairs_room = room < 1 << 30 ? (int)room : 1 << 30;
}

static int work_take(struct cuda_state *s, struct filter_args *a)
{
  struct cuda_filter *f = &s->filter;
  TRY(cuda_reserve(s, &f->rows, (gidx)a->row_tiles * a->stages * FILTER_ROWS * FILTER_ITEM));
  TRY(cuda_reserve(s, &f->work, rooms_take(a, NULL)));
  rooms_take(a, f->work.at);
  a->rows = f->rows.at;
  return OK;
}

static int mark(struct cuda_state *s, int which)
{
  TRY_CU(cudaEventRecord(s->filter.marks[which], s->stream));
  return OK;
}

/* The guess of every row. */
static int rows_guess(struct cuda_step *t, struct filter_args *a)
{
  struct cuda_state *s = t->dev->state;
  struct filter_args sample = *a;
  struct filter_form form = filter_form_of(s->filter.wgmma, a->d, 1);
  idx tile = form.vectors / form.frame;
  sample.atom_tiles = s->filter.sampled / tile;
  sample.slots = s->filter.sampled;
  TRY(cuda_filter_product(t->dev, &sample, 1));
  return cuda_filter_launch(t->dev, KERNEL_GUESS, a, a->n, 0);
}

static int pairs_evaluate(struct cuda_step *t, struct filter_args *a)
{
  struct cuda_state *s = t->dev->state;
  struct cuda_launch launch = {.name = KERNEL_CHAINS,
                               .grid = {(unsigned)s->multiprocessors * 6, 1, 1},
                               .block = {CHAIN_WARPS * WARP, 1, 1},
                               .arguments = a};
  TRY(cuda_launch(t->dev, &launch));
  return cuda_filter_launch(t->dev, KERNEL_CHOOSE, a, a->n, 0);
}

static int stages_run(struct cuda_step *t, struct filter_args *a)
{
  struct cuda_state *s = t->dev->state;
  TRY_CU(cudaMemsetAsync(a->totals, 0, sizeof *a->totals, s->stream));
  TRY(mark(s, FILTER_CONVERT));
  TRY(cuda_filter_launch(t->dev, KERNEL_HALVE_ROWS, a, (gidx)a->row_tiles * FILTER_ROWS, 0));
  TRY(mark(s, FILTER_SAMPLE));
  TRY(rows_guess(t, a));
  TRY(mark(s, FILTER_PRODUCT));
  TRY(cuda_filter_product(t->dev, a, 0));
  TRY(mark(s, FILTER_CUT));
  TRY(cuda_filter_launch(t->dev, KERNEL_CUT, a, a->n, 4 * a->capacity));
  TRY(mark(s, FILTER_CHAIN));
  TRY(pairs_evaluate(t, a));
  return mark(s, FILTER_LEFT);
}

static int counts_add(struct cuda_step *t, const struct filter_totals *totals)
{
  struct cuda_state *s = t->dev->state;
  struct filter_counts *c = &t->dev->filter;
  for (int i = 0; i < FILTER_PATHS; i++) c->rows[i] += totals->rows[i];
  c->rows[FILTER_CERTIFIED] -= totals->crowded;
  c->rows[FILTER_LIST] += totals->crowded;
  c->candidates += totals->pairs - totals->no_room;
  if (totals->most > c->most) c->most = totals->most;
  for (int i = 0; i < FILTER_LEFT; i++) {
    float ms;
    TRY_CU(cudaEventElapsedTime(&ms, s->filter.marks[i], s->filter.marks[i + 1]));
    c->seconds[i] += 1e-3 * (double)ms;
  }
  return OK;
}

/* Rows left to the exact path. */
static int left_route(struct cuda_step *t, const struct filter_args *a, idx n)
{
  struct cuda_step part = *t;
  double begun = log_seconds();
  part.n = n;
  part.row_of = a->left;
  if (n) TRY(cuda_step_exact(&part));
  if (n) t->bad = part.bad;
  t->dev->filter.seconds[FILTER_LEFT] += log_seconds() - begun;
  return OK;
}

_Static_assert((int)FILTER_PATHS == (int)PATHS && (int)FILTER_SMALL == (int)PATH_SMALL &&
                   (int)FILTER_GUESS == (int)PATH_GUESS && (int)FILTER_SCORE == (int)PATH_SCORE,
               "kernels/filter_types.h");

int cuda_filter_step(struct cuda_step *t)
{
  struct cuda_state *s = t->dev->state;
  struct filter_args a;
  struct filter_totals totals;
  t->bad = ~0ull;
  args_make(t, &a);
  if (!a.peaks_row || (gidx)a.row_tiles * a.atom_tiles > PAIRS_MOST) return cuda_step_exact(t);
  TRY(work_take(s, &a));
  TRY(stages_run(t, &a));
  TRY_CU(cudaMemcpyAsync(&totals, a.totals, sizeof totals, cudaMemcpyDeviceToHost, s->stream));
  TRY(cuda_finish(s));
  TRY(left_route(t, &a, totals.left));
  TRY(counts_add(t, &totals));
  if (s->filter.is_automatic && t->n >= STEP_LARGE && (gidx)totals.left * LEFT_MOST > t->n) {
    log_debug("the filter certifies %d of %d rows: it is not used any more", t->n - totals.left,
              t->n);
    cuda_filter_stop(s);
  }
  return OK;
}
