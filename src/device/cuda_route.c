/* SPDX-License-Identifier: BSD-3-Clause
 * Routing on a GPU: rows packed, scored against the resident tiles with the selection fused, lists
 * merged; scores never leave the chip.
 *
 * Where memory is short the rows of a launch are halved, then the atoms, and the step is
 * repeated. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "device/cuda_route.h"
#include "plan.h"

enum { STEP_ROWS = 1 << 19 }; /* of a step: what its kernels count fits 31 bits */

/* The geometry that all three kernels share (kernels/README). */
static struct route_args args_make(const struct cuda_step *t)
{
  const struct cuda_state *s = t->dev->state;
  const struct exclusions *excluded = &t->job->excluded;
  idx atoms = route_tile_atoms(t->form.atoms_thread);
  struct route_args a = {.n = t->n,
                         .slots = t->slots,
                         .columns = packed_columns(s->options.p),
                         .d = s->options.d,
                         .take = t->job->take,
                         .row_tiles = (t->n + ROUTE_ROWS - 1) / ROUTE_ROWS,
                         .atom_tiles = (t->slots + atoms - 1) / atoms,
                         .ascending = s->ascending,
                         .excluded_count = excluded->count,
                         .excluded_stride = excluded->stride,
                         .row_of = t->row_of,
                         .out = t->out};
  gidx pairs = (gidx)a.row_tiles * a.atom_tiles;
  a.blocks = pairs < s->multiprocessors ? (int)pairs : s->multiprocessors;
  for (int r = 0; r < a.row_tiles; r++) {
    int parts = route_parts_of(r, a.row_tiles, a.atom_tiles, a.blocks);
    if (parts > a.parts) a.parts = parts;
  }
  return a;
}

static int work_take(struct cuda_state *s, const struct cuda_step *t, struct route_args *a)
{
  gidx rows = (gidx)a->row_tiles * ROUTE_ROWS, lists = rows * a->parts;
  TRY(cuda_reserve(s, &s->rows, rows * a->columns * (gidx)sizeof(float)));
  TRY(cuda_reserve(s, &s->lists, lists * t->form.capacity * (gidx)sizeof(struct candidate)));
  TRY(cuda_reserve(s, &s->counts, lists * (gidx)sizeof(int)));
  TRY(cuda_reserve(s, &s->bad, sizeof *a->bad));
  a->rows = s->rows.at;
  a->atoms = s->packed.at;
  a->atom_of = s->atom_of.at;
  a->excluded = s->excluded.at;
  a->lists = s->lists.at;
  a->counts = s->counts.at;
  a->bad = s->bad.at;
  TRY_CU(cudaMemsetAsync(a->bad, 0xff, sizeof *a->bad, s->stream));
  return OK;
}

int cuda_step_exclude(struct cuda_step *t)
{
  struct cuda_state *s = t->dev->state;
  const struct exclusions *e = &t->job->excluded;
  gidx bytes = (gidx)t->n * e->stride * (gidx)sizeof(idx);
  if (e->count == 0) return OK;
  TRY(cuda_reserve(s, &s->excluded, bytes));
  TRY_CU(cudaMemcpyAsync(s->excluded.at, e->atoms + (gidx)t->first * e->stride, (size_t)bytes,
                         cudaMemcpyHostToDevice, s->stream));
  cuda_count(&t->dev->counts.put, bytes);
  return OK;
}

static int rows_pack(const struct cuda_step *t, const struct route_args *a)
{
  const struct cuda_state *s = t->dev->state;
  idx padded = a->row_tiles * ROUTE_ROWS, p = s->options.p;
  struct pack_args args = {.in = (const float *)t->job->rows->device + (gidx)t->first * p,
                           .row_of = t->row_of,
                           .out = s->rows.at,
                           .count = t->n,
                           .padded = padded,
                           .d = 1,
                           .p = p,
                           .columns = a->columns,
                           .width = ROUTE_ROWS};
  struct cuda_launch launch = {.name = KERNEL_PACK, .arguments = &args};
  launch.grid = (dim3){(unsigned)(a->columns + WARP - 1) / WARP, (unsigned)padded / WARP, 1};
  launch.block = (dim3){WARP, 8, 1};
  return cuda_launch(t->dev, &launch);
}

static int tiles_score(const struct cuda_step *t, struct route_args *a)
{
  const struct route_form *f = &t->form;
  struct cuda_launch launch = {.name = KERNEL_ROUTE,
                               .shape = t->shape,
                               .grid = {(unsigned)a->blocks, 1, 1},
                               .block = {(unsigned)route_threads(t->form.bulk), 1, 1},
                               .shared = route_shared_bytes(f->atoms_thread, f->columns, f->stages),
                               .arguments = a};
  return cuda_launch(t->dev, &launch);
}

static int lists_finish(const struct cuda_step *t, struct route_args *a)
{
  struct cuda_launch launch = {.name = KERNEL_MERGE,
                               .shape = t->shape,
                               .grid = {((unsigned)a->n + MERGE_WARPS - 1) / MERGE_WARPS, 1, 1},
                               .block = {MERGE_WARPS * WARP, 1, 1},
                               .arguments = a};
  return cuda_launch(t->dev, &launch);
}

int cuda_step_exact(struct cuda_step *t)
{
  struct cuda_state *s = t->dev->state;
  struct route_args a = args_make(t);
  TRY(work_take(s, t, &a));
  TRY(rows_pack(t, &a));
  if (t->job->scores_only) a.n = 0; /* as if all rows were padding */
  TRY(tiles_score(t, &a));
  if (!t->job->scores_only) TRY(lists_finish(t, &a));
  TRY_CU(cudaMemcpyAsync(&t->bad, a.bad, sizeof t->bad, cudaMemcpyDeviceToHost, s->stream));
  return cuda_finish(s);
}

static int step_run(struct cuda_step *t)
{
  struct cuda_state *s = t->dev->state;
  TRY(cuda_step_exclude(t));
  return s->filter.is_on && !t->job->scores_only ? cuda_filter_step(t) : cuda_step_exact(t);
}

static void bad_note(struct route_job *job, const struct cuda_step *t)
{
  if (t->bad == ~0ull) return;
  struct bad_score found = {t->first + (idx)(t->bad >> 32), (idx)(t->bad & 0xffffffffu)};
  struct bad_score *bad = &job->bad;
  if (bad->row < 0 || found.row < bad->row || (found.row == bad->row && found.atom < bad->atom))
    *bad = found;
}

/* All rows over the window that is on the device; out[n][take] on the device. */
static int rows_route(struct cuda_step *t, struct candidate *out)
{
  struct cuda_state *s = t->dev->state;
  struct route_job *job = t->job;
  for (t->first = 0; t->first < job->n; t->first += t->n) {
    t->n = job->n - t->first;
    if (t->n > STEP_ROWS) t->n = STEP_ROWS;
    if (s->rows_most && t->n > s->rows_most) t->n = s->rows_most;
    t->out = out + (gidx)t->first * job->take;
    int status = step_run(t);
    while (status == ERR_MEMORY && t->n > ROUTE_ROWS) {
      t->n = s->rows_most = (t->n / 2 + ROUTE_ROWS - 1) / ROUTE_ROWS * ROUTE_ROWS;
      log_rank("memory of GPU %d is short: %d rows at a time", s->number, t->n);
      status_clear();
      status = step_run(t);
    }
    TRY(status);
    bad_note(job, t);
  }
  return OK;
}

/* Merge each row's list of this window into what earlier windows gave, on the host. */
static int window_merge(struct cuda_state *s, struct route_job *job, struct entry *both, idx window)
{
  gidx entries = (gidx)job->n * job->take;
  TRY_CU(cudaMemcpyAsync(both + (window ? entries : 0), s->out.at, (size_t)entries * sizeof *both,
                         cudaMemcpyDeviceToHost, s->stream));
  TRY(cuda_finish(s));
  struct entry merged[TOP_S_MOST];
  for (idx i = 0; window && i < job->n; i++) {
    struct entry *own = both + (gidx)i * job->take;
    lists_merge(own, 2, entries, job->take, merged);
    memcpy(own, merged, (size_t)job->take * sizeof *own);
  }
  return OK;
}

/* The window from the step's slot on, as both ways of routing need it. */
static int window_bring(struct cuda_step *t)
{
  struct cuda_state *s = t->dev->state;
  TRY(cuda_window(t->dev, t->slot, route_tile_atoms(t->form.atoms_thread), &t->slots));
  return s->filter.is_on ? cuda_filter_prepare(t->dev) : OK;
}

static int windows_route(struct cuda_step *t, struct entry *both)
{
  struct cuda_state *s = t->dev->state;
  struct route_job *job = t->job;
  size_t bytes = (size_t)job->n * (size_t)job->take * sizeof *both;
  TRY(cuda_reserve(s, &s->out, (gidx)bytes));
  idx number = 0;
  for (t->slot = 0; t->slot < t->dev->atoms; t->slot += t->slots, number++) {
    TRY(window_bring(t));
    TRY(rows_route(t, s->out.at));
    TRY(window_merge(s, job, both, number));
  }
  TRY_CU(cudaMemcpyAsync(job->lists->device, both, bytes, cudaMemcpyHostToDevice, s->stream));
  return cuda_finish(s);
}

/* With the whole share on the device lists are made in place. */
static int job_route(struct cuda_step *t)
{
  struct cuda_state *s = t->dev->state;
  struct route_job *job = t->job;
  t->slot = 0;
  job->bad = (struct bad_score){-1, -1};
  if (s->window >= t->dev->atoms) {
    TRY(window_bring(t));
    return rows_route(t, job->lists->device);
  }
  struct entry *both = malloc(2 * (size_t)job->n * (size_t)job->take * sizeof *both);
  CHECK(both, ERR_MEMORY, "cannot allocate lists of %d rows", job->n);
  int status = windows_route(t, both);
  free(both);
  return status;
}

/* No atoms: every entry is ENTRY_NONE. */
static int lists_clear(struct device *dev, struct route_job *job)
{
  struct entry *lists = job->lists->host;
  gidx entries = (gidx)job->n * job->take;
  for (gidx i = 0; i < entries; i++) lists[i] = ENTRY_NONE;
  return cuda_put(dev, job->lists, 0, entries * (gidx)sizeof *lists);
}

int cuda_route(struct device *dev, struct route_job *job)
{
  struct cuda_state *s = dev->state;
  struct cuda_step t = {.dev = dev, .job = job};
  t.shape = (struct kernel_shape){.bulk = s->bulk, .d = s->options.d, .take = job->take};
  t.form = route_form_of(s->bulk, s->options.d, job->take);
  if (dev->atoms == 0) return lists_clear(dev, job);
  struct filter_counts before = dev->filter;
  int status = job_route(&t);
  while (status == ERR_MEMORY) {
    TRY(cuda_window_halve(dev));
    dev->filter = before; /* all rows are routed again */
    status = job_route(&t);
  }
  return status;
}
