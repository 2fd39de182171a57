/* SPDX-License-Identifier: BSD-3-Clause
 * A job takes the windows of the dictionary one after another, and each window in launches of as
 * many rows as the plan has memory for. */
#include "device/cuda/route.h"

#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "device/cuda/dictionary.h"
#include "device/cuda/exact.h"
#include "device/cuda/load.h"
#include "device/cuda/memory.h"
#include "device/cuda/screen.h"
#include "device/cuda/screen_window.h"

/* Replace the job's bad score by that of the launch, if its row is lower, or its atom in the same
 * row. */
static void bad_note(struct route_job *job, const struct route_launch *t)
{
  if (t->bad == ~0ull) return;
  struct bad_score found = {t->first + (idx)(t->bad >> 32), (idx)(t->bad & 0xffffffffu)};
  struct bad_score *bad = &job->bad;
  if (bad->row < 0 || found.row < bad->row || (found.row == bad->row && found.atom < bad->atom))
    *bad = found;
}

/* The rows of a launch that the plan allows. */
static idx launch_rows(const struct route_launch *t)
{
  const struct cuda_state *s = t->dev->state;
  const struct exclusions *e = &t->job->excluded;
  struct plan_route r = {t->job->n, t->job->top_k, t->slots, e->count ? e->stride : 0};
  return plan_route_rows(&s->sizes, &s->plan, &r);
}

/* Merge the lists of this window with those of earlier windows, on the host. */
static int window_merge(struct cuda_state *s, struct route_job *job, struct entry *both, idx window)
{
  gidx entries = (gidx)job->n * job->top_k;
  TRY_CU(cudaMemcpyAsync(both + (window ? entries : 0), s->work.out.at,
                         (size_t)entries * sizeof *both, cudaMemcpyDeviceToHost, s->stream));
  TRY(cuda_finish(s));
  struct entry merged[MAX_TOP_S];
  for (idx i = 0; window && i < job->n; i++) {
    struct entry *own = both + (gidx)i * job->top_k;
    lists_merge(own, 2, entries, job->top_k, merged);
    memcpy(own, merged, (size_t)job->top_k * sizeof *own);
  }
  return OK;
}

/* Bring the window that begins at the launch's slot, in the forms that both ways of routing
 * need. */
static int window_upload(struct route_launch *t)
{
  struct cuda_state *s = t->dev->state;
  TRY(cuda_window(t->dev, t->slot, route_tile_atoms(t->form.atoms_thread), &t->slots));
  return s->screen.is_on ? cuda_screen_prepare(t->dev) : OK;
}

/* Set the rows of the next launch, and where in `out` its lists are written. */
static void launch_set(struct route_launch *t, struct candidate *out)
{
  const struct route_job *job = t->job;
  idx rows = launch_rows(t); /* this changes when the filter is turned off */
  t->n = job->n - t->first < rows ? job->n - t->first : rows;
  t->out = out + (gidx)t->first * job->top_k;
}

/* Route the rows over all windows, each in launches.  both: space for two lists per row, on the
 * host, to merge the lists of windows; NULL: there is one window, whose lists are made in place. */
static int windows_route(struct route_launch *t, struct entry *both)
{
  struct cuda_state *s = t->dev->state;
  struct route_job *job = t->job;
  idx number = 0;
  for (t->slot = 0; t->slot < t->dev->atoms; t->slot += t->slots, number++) {
    TRY(window_upload(t));
    for (t->first = 0; t->first < job->n; t->first += t->n) {
      launch_set(t, both ? s->work.out.at : job->lists->device);
      TRY(cuda_launch_exclude(t));
      TRY(s->screen.is_on && !job->scores_only ? cuda_launch_screen(t) : cuda_launch_exact(t));
      bad_note(job, t);
    }
    if (both) TRY(window_merge(s, job, both, number));
  }
  if (!both) return OK;
  gidx bytes = (gidx)job->n * job->top_k * (gidx)sizeof *both;
  TRY_CU(
      cudaMemcpyAsync(job->lists->device, both, (size_t)bytes, cudaMemcpyHostToDevice, s->stream));
  return cuda_finish(s);
}

/* Are rows multiplied by powers of two? */
static int scales(const struct route_launch *t)
{
  return t->dev->d > 1 && t->job->power;
}

static int frame_rows_launch(struct device *dev, struct frame_rows_args *a)
{
  struct cuda_launch launch = {.name = KERNEL_FRAME_ROWS, .arguments = a};
  gidx blocks = imin(ceil_div(a->n, FRAME_ROWS_WARPS), FRAME_ROWS_BLOCKS);
  launch.grid = (dim3){(unsigned)blocks, 1, 1};
  launch.block = (dim3){FRAME_ROWS_WARPS * WARP, 1, 1};
  return cuda_launch(dev, &launch);
}

/* Find the powers of two of rows of frames (N.2), for host and device.  If one is not 0, multiply
 * the rows by them. */
static int rows_scale(struct route_launch *t)
{
  struct cuda_state *s = t->dev->state;
  const struct route_job *job = t->job;
  gidx values = (gidx)job->n * s->options.p, bytes = job->n * (gidx)sizeof(idx);
  struct frame_rows_args a = {
      .rows = t->rows, .power = job->power->device, .n = job->n, .p = s->options.p};
  const idx *power = job->power->host;
  idx any = 0;
  TRY(frame_rows_launch(t->dev, &a));
  TRY_CU(
      cudaMemcpyAsync(job->power->host, a.power, (size_t)bytes, cudaMemcpyDeviceToHost, s->stream));
  cuda_count(&t->dev->counts.got, bytes);
  TRY(cuda_finish(s));
  for (idx i = 0; i < job->n; i++) any |= power[i];
  if (!any) return OK;
  TRY(cuda_reserve(s, &s->work.scaled, values * (gidx)sizeof(float)));
  a.out = s->work.scaled.at;
  t->rows = a.out;
  return frame_rows_launch(t->dev, &a);
}

/* Start a job.  *both <- space for two lists per row, on the host; NULL: one window has all atoms,
 * so lists are made in place. */
static int job_start(struct route_launch *t, struct entry **both)
{
  struct cuda_state *s = t->dev->state;
  struct route_job *job = t->job;
  gidx entries = (gidx)job->n * job->top_k;
  *both = NULL;
  job->bad = (struct bad_score){-1, -1};
  t->rows = job->rows->device;
  if (scales(t)) TRY(rows_scale(t));
  if (s->plan.window >= t->dev->atoms) return OK;
  *both = malloc(2 * (size_t)entries * sizeof **both);
  CHECK(*both, ERR_MEMORY, "cannot allocate lists of %d rows", job->n);
  return cuda_reserve(s, &s->work.out, entries * (gidx)sizeof **both);
}

/* Without atoms every entry is ENTRY_NONE. */
static int lists_clear(struct device *dev, struct route_job *job)
{
  struct entry *lists = job->lists->host;
  gidx entries = (gidx)job->n * job->top_k;
  for (gidx i = 0; i < entries; i++) lists[i] = ENTRY_NONE;
  return cuda_put(dev, job->lists, 0, entries * (gidx)sizeof *lists);
}

int cuda_route(struct device *dev, struct route_job *job)
{
  const struct cuda_state *s = dev->state;
  struct route_launch t = {.dev = dev, .job = job};
  t.shape = (struct kernel_shape){.bulk = s->sizes.bulk,
                                  .positive = s->options.nonnegative,
                                  .d = s->options.d,
                                  .top_k = job->top_k};
  t.form = route_form_of(s->sizes.bulk, s->options.d, job->top_k);
  if (dev->atoms == 0) return lists_clear(dev, job);
  gidx scaled = scales(&t) ? (gidx)job->n * s->options.p * (gidx)sizeof(float) : 0;
  struct screen_counts before = dev->filter;
  struct entry *both;
  int status;
  do {
    dev->filter = before; /* count all rows again */
    status = job_start(&t, &both);
    if (!status) status = windows_route(&t, both);
    free(both);
  } while (cuda_replan(dev, scaled, &status));
  return status;
}

int cuda_scatter(struct device *dev, const struct scatter_job *job)
{
  gidx entries = (gidx)job->n * job->top_k;
  struct lists_scatter_args a = {.lists = job->lists->device,
                                 .atoms = job->atoms->device,
                                 .score = job->score->device,
                                 .entries = entries,
                                 .top_k = job->top_k,
                                 .at = job->at,
                                 .s = job->s,
                                 .gates = dev->d > 1,
                                 .power = job->power ? job->power->device : NULL};
  struct cuda_launch launch = {.name = KERNEL_LISTS_SCATTER, .arguments = &a};
  launch.grid = (dim3){(unsigned)imin(ceil_div(entries, PLACE_THREADS), PLACE_BLOCKS), 1, 1};
  launch.block = (dim3){PLACE_THREADS, 1, 1};
  return entries ? cuda_launch(dev, &launch) : OK;
}
