/* SPDX-License-Identifier: BSD-3-Clause
 * Rows become fp16.  A sample of the atoms gives each row a threshold estimate.  The product lists
 * the atoms whose size reaches the estimate.  If the sizes of the sample are kept, threshold.cu
 * lists the atoms of the sample, and the product takes only the others.  If a row's list does not
 * prove the estimate, the row takes the direct path.  Exact scores of the atoms that the bound does
 * not exclude give the support. */
#include "device/cuda/screen.h"

#include <string.h>

#include "base/log.h"
#include "base/num.h"
#include "base/status.h"
#include "device/cuda/dictionary.h"
#include "device/cuda/load.h"
#include "device/cuda/memory.h"
#include "device/cuda/screen_launch.h"

enum { MAX_TILE_PAIRS = 1 << 30 }; /* so that the kernel can count them */
/* An automatic filter is turned off for good if more than one row in MAX_LEFT of a large launch
 * took the direct path. */
enum { MAX_LEFT = 4, LAUNCH_LARGE = 256 };
/* rescore.cu adds only some columns at a time if the vectors are much larger than the cache and
 * pairs share them.  A piece is these columns of all vectors.  It has at most RESCORE_BYTES, since
 * some warps are already at the next piece, but at least RESCORE_COLUMNS columns.  All columns are
 * added at once for frames (d > 1), if a piece would have more than RESCORE_MOST bytes, if rows
 * have fewer columns than RESCORE_GAIN pieces, or if all supports together have fewer than
 * RESCORE_GAIN entries for each vector. */
enum { RESCORE_BYTES = 16 << 20, RESCORE_MOST = 32 << 20, RESCORE_COLUMNS = 64, RESCORE_GAIN = 4 };

/* The arguments, without the memory of a launch. */
static void args_make(const struct route_launch *t, struct screen_args *a)
{
  const struct cuda_state *s = t->dev->state;
  const struct cuda_screen *f = &s->screen;
  const struct device_test *test = s->options.test;
  const struct exclusions *excluded = &t->job->excluded;
  struct screen_form form = screen_form_of(s->sizes.wgmma, s->options.d, 0);
  struct plan_lists lists =
      plan_lists_of(s->sizes.wgmma, s->options.d, s->options.p, t->job->top_k, t->slots);
  *a = (struct screen_args){.x = t->rows + (gidx)t->first * s->options.p,
                            .frames = s->work.frames.at,
                            .atom_of = s->work.atom_of.at,
                            .excluded = t->excluded,
                            .excluded_count = excluded->count,
                            .excluded_stride = excluded->stride,
                            .n = t->n,
                            .slots = t->slots,
                            .turn = f->turn,
                            .p = s->options.p,
                            .pitch = cuda_frames_pitch(s->options.p),
                            .d = s->options.d,
                            .top_k = t->job->top_k,
                            .positive = s->options.nonnegative,
                            .atoms = s->work.f16.at,
                            .stages = screen_stages(s->options.p),
                            .row_tiles = (int)ceil_div(t->n, SCREEN_ROWS),
                            .atom_tiles = (int)ceil_div(t->slots, form.vectors / form.frame),
                            .norms = s->work.norms.at,
                            .gamma = f->gamma,
                            .peaks_row = lists.peaks_row,
                            .sizes_row = lists.sizes_row,
                            .peak_rank = lists.peak_rank,
                            .capacity = lists.capacity,
                            .pairs_capacity = plan_pairs(t->n, t->job->top_k),
                            .out = t->out};
  if (test && test->columns && a->d == 1 && a->peaks_row) a->sizes_row = lists.sampled;
  if (test) a->test = (struct screen_test){(float)test->bound, (float)test->threshold};
}

/* Reserve the workspaces of a launch.  plan_screen_bytes() counts them, except sizes that a test
 * asks for. */
static int work_alloc(struct cuda_state *s, struct screen_args *a)
{
  gidx f16 = (gidx)a->row_tiles * a->stages * SCREEN_ROWS * SCREEN_ITEM;
  TRY(cuda_reserve(s, &s->work.screen_rows, f16));
  TRY(cuda_reserve(s, &s->work.screen, plan_screen_layout(a, NULL)));
  plan_screen_layout(a, s->work.screen.at);
  a->rows = s->work.screen_rows.at;
  return OK;
}

static int mark(struct cuda_state *s, int which)
{
  TRY_CU(cudaEventRecord(s->screen.marks[which], s->stream));
  return OK;
}

/* Make the threshold estimate of every row, from the product with the sample.  If the sizes of the
 * sample are kept, its atoms are in the lists, and only the other atoms remain. */
static int rows_estimate(struct route_launch *t, struct screen_args *a)
{
  struct cuda_state *s = t->dev->state;
  struct screen_args sample = *a;
  struct screen_form form = screen_form_of(s->sizes.wgmma, a->d, 1);
  idx tile = form.vectors / form.frame;
  sample.slots = plan_lists_of(s->sizes.wgmma, a->d, a->p, a->top_k, a->slots).sampled;
  sample.atom_tiles = sample.slots / tile;
  TRY(cuda_screen_product(t->dev, &sample, 1));
  TRY(cuda_screen_launch(t->dev, KERNEL_THRESHOLD, a, a->n, 0));
  a->first_tile = a->sizes_row ? sample.atom_tiles : 0;
  a->atom_tiles -= a->first_tile;
  return OK;
}

/* The number of columns that rescore.cu adds at a time.  It is less than p if a piece then stays in
 * the second-level cache, and enough pairs share it. */
static idx rescore_columns(const struct cuda_state *s, const struct screen_args *a)
{
  const struct device_test *test = s->options.test;
  gidx column = (gidx)a->slots * (gidx)sizeof(float);
  gidx fit = RESCORE_BYTES / column / RESCORE_COLUMNS * RESCORE_COLUMNS;
  if (a->d > 1) return a->p;
  if (test && test->columns) return test->columns;
  if (fit == 0) fit = RESCORE_COLUMNS;
  int is_shared = (gidx)a->n * a->top_k >= RESCORE_GAIN * (gidx)a->slots;
  if (fit * column > RESCORE_MOST || a->p < RESCORE_GAIN * fit || !is_shared) return a->p;
  return (idx)fit;
}

/* Compute the exact scores of the pairs, and from them the lists of the certified rows. */
static int pairs_rescore(struct route_launch *t, struct screen_args *a)
{
  struct cuda_state *s = t->dev->state;
  struct cuda_launch launch = {.name = KERNEL_RESCORE,
                               .grid = {(unsigned)s->sizes.multiprocessors * 6, 1, 1},
                               .block = {RESCORE_WARPS * WARP, 1, 1},
                               .arguments = a};
  a->piece = rescore_columns(s, a);
  TRY(cuda_launch(t->dev, &launch));
  return cuda_screen_launch(t->dev, KERNEL_SELECT_TOPK, a, a->n, 0);
}

/* Launch the kernels of the filter in their order, with event marks between its stages. */
static int kernels_launch(struct route_launch *t, struct screen_args *a)
{
  struct cuda_state *s = t->dev->state;
  TRY_CU(cudaMemsetAsync(a->totals, 0, sizeof *a->totals, s->stream));
  TRY(mark(s, SCREEN_CONVERT));
  TRY(cuda_screen_launch(t->dev, KERNEL_TO_F16_ROWS, a, (gidx)a->row_tiles * SCREEN_ROWS, 0));
  TRY(mark(s, SCREEN_SAMPLE));
  TRY(rows_estimate(t, a));
  TRY(mark(s, SCREEN_PRODUCT));
  TRY(cuda_screen_product(t->dev, a, 0));
  TRY(mark(s, SCREEN_PRUNE));
  TRY(cuda_screen_launch(t->dev, KERNEL_PRUNE, a, a->n, 4 * a->capacity));
  TRY(mark(s, SCREEN_RESCORE));
  TRY(pairs_rescore(t, a));
  return mark(s, SCREEN_LEFT);
}

static int counts_add(struct route_launch *t, const struct screen_totals *totals)
{
  struct cuda_state *s = t->dev->state;
  struct screen_counts *c = &t->dev->filter;
  for (int i = 0; i < SCREEN_PATHS; i++) c->rows[i] += totals->rows[i];
  c->rows[SCREEN_CERTIFIED] -= totals->crowded;
  c->rows[SCREEN_LIST] += totals->crowded;
  c->candidates += totals->pairs - totals->crowded_pairs;
  if (totals->max_pairs > c->max) c->max = totals->max_pairs;
  for (int i = 0; i < SCREEN_LEFT; i++) {
    float ms;
    TRY_CU(cudaEventElapsedTime(&ms, s->screen.marks[i], s->screen.marks[i + 1]));
    c->seconds[i] += 1e-3 * (double)ms;
  }
  return OK;
}

/* Route the rows that are left to the direct path. */
static int left_route(struct route_launch *t, const struct screen_args *a, idx n)
{
  struct route_launch part = *t;
  double begun = log_seconds();
  part.n = n;
  part.row_of = a->left;
  if (n) TRY(cuda_launch_exact(&part));
  if (n) t->bad = part.bad;
  t->dev->filter.seconds[SCREEN_LEFT] += log_seconds() - begun;
  return OK;
}

_Static_assert((int)SCREEN_PATHS == (int)PATHS && (int)SCREEN_SMALL == (int)PATH_SMALL &&
                   (int)SCREEN_ESTIMATE == (int)PATH_ESTIMATE &&
                   (int)SCREEN_SCORE == (int)PATH_SCORE,
               "kernels/screen_types.h");

int cuda_launch_screen(struct route_launch *t)
{
  struct cuda_state *s = t->dev->state;
  struct screen_args a;
  struct screen_totals totals;
  t->bad = ~0ull;
  args_make(t, &a);
  if (!a.peaks_row || (gidx)a.row_tiles * a.atom_tiles > MAX_TILE_PAIRS)
    return cuda_launch_exact(t);
  TRY(work_alloc(s, &a));
  TRY(kernels_launch(t, &a));
  TRY_CU(cudaMemcpyAsync(&totals, a.totals, sizeof totals, cudaMemcpyDeviceToHost, s->stream));
  TRY(cuda_finish(s));
  TRY(left_route(t, &a, totals.left));
  TRY(counts_add(t, &totals));
  if (s->screen.is_automatic && t->n >= LAUNCH_LARGE && (gidx)totals.left * MAX_LEFT > t->n) {
    log_debug("the filter certifies only %d of %d rows, so it is not used any more",
              t->n - totals.left, t->n);
    cuda_screen_stop(s);
  }
  return OK;
}
