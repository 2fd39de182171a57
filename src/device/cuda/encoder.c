/* SPDX-License-Identifier: BSD-3-Clause
 * A job takes the windows of the matrix one after another (mostly there is only one), and each
 * window in launches of some rows.  The values (scores) of a launch stay on the GPU.  A value that
 * is in a support is an entry.  Entries are placed in pieces that fit in memory, and copied to the
 * host, which computes codes and merges windows. */
#include "device/cuda/encoder.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "device/cuda/dictionary.h"
#include "device/cuda/load.h"
#include "device/cuda/memory.h"

/* A job, and its current launch. */
struct encoder_launch {
  struct device *dev;
  struct encoder_job *job;
  struct route_form form;
  struct encoder_args args;
  gidx entries; /* entries that are placed at a time */
  idx first;    /* first row of the launch */
  idx slot;     /* first atom of the window */
  int *start;   /* [rows + 1] args.start on the host */
  idx *lengths; /* [n] entries of each row in the current window; `found` has these entries */
  struct entry_list found;
  struct bad_score bad; /* the lowest score of all windows that is not finite */
  int no_memory;        /* 1: the host ran out of memory */
};

/* bias, scale and floor of the window's atoms.  The floor of padding is infinite, so no
 * value of padding is an entry. */
static void vectors_fill(const struct encoder *e, idx slot, idx slots, idx stride, float *all)
{
  float *bias = all, *scale = bias + stride, *floor = scale + stride;
  for (idx i = 0; i < stride; i++) {
    int there = i < slots;
    idx a = slot + i;
    bias[i] = there ? e->bias[a] : 0;
    scale[i] = there && e->rescaled && e->norm ? e->norm[a] : 1;
    floor[i] = !there ? INFINITY : e->threshold && e->threshold[a] > 0 ? e->threshold[a] : 0;
  }
}

static int vectors_put(struct encoder_launch *t)
{
  struct cuda_state *s = t->dev->state;
  struct arena arena = {0};
  idx stride = t->args.stride;
  gidx bytes = 3 * (gidx)stride * (gidx)sizeof(float);
  float *all;
  int status = arena_alloc(&arena, &all, 3 * (gidx)stride, sizeof *all);
  if (status) {
    t->no_memory = 1;
    return OK;
  }
  vectors_fill(t->job->encoder, t->slot, t->args.route.slots, stride, all);
  cudaError_t error =
      cudaMemcpyAsync((void *)t->args.bias, all, (size_t)bytes, cudaMemcpyHostToDevice, s->stream);
  status = error ? cuda_fail(error, __FILE__, __LINE__) : cuda_finish(s);
  cuda_count(&t->dev->counts.put, bytes);
  arena_free(&arena);
  return status;
}

/* Set the geometry of n rows and the window, and lay out the work arrays that plan.encoder
 * counts. */
static int args_make(struct encoder_launch *t, idx n, idx slots)
{
  struct cuda_state *s = t->dev->state;
  idx tile = route_tile_atoms(t->form.atoms_thread);
  struct encoder_args *a = &t->args;
  struct route_args *r = &a->route;
  *a = (struct encoder_args){.stride = (int)round_up(slots, tile), .top = t->job->encoder->top};
  if (t->job->encoder->kind != ENCODER_TOPK) a->top = 0;
  r->n = n;
  t->entries = plan_encoder_entries(a->stride, n);
  TRY(cuda_reserve(s, &s->work.rows,
                   round_up(n, ROUTE_ROWS) * packed_columns(s->options.p) * (gidx)sizeof(float)));
  TRY(cuda_reserve(s, &s->work.values, (gidx)n * a->stride * (gidx)sizeof(float)));
  TRY(cuda_reserve(s, &s->work.encoder, plan_encoder_layout(a, t->entries, NULL)));
  TRY(cuda_reserve(s, &s->work.bad, sizeof *r->bad));
  plan_encoder_layout(a, t->entries, s->work.encoder.at);
  a->values = s->work.values.at;
  r->rows = s->work.rows.at;
  r->atoms = s->work.packed.at;
  r->bad = s->work.bad.at;
  r->slots = slots;
  r->d = 1;
  r->columns = packed_columns(s->options.p);
  r->atom_tiles = a->stride / tile;
  return OK;
}

static int launch(struct encoder_launch *t, enum kernel_name name, gidx rows, void *arguments)
{
  struct cuda_launch l = {.name = name,
                          .grid = {(unsigned)ceil_div(rows, ENCODER_WARPS), 1, 1},
                          .block = {ENCODER_WARPS * WARP, 1, 1},
                          .arguments = arguments};
  return cuda_launch(t->dev, &l);
}

/* Compute the values of the launch's rows. */
static int rows_score(struct encoder_launch *t)
{
  struct cuda_state *s = t->dev->state;
  struct route_args *r = &t->args.route;
  const struct route_form *f = &t->form;
  idx p = s->options.p, padded;
  r->row_tiles = (int)ceil_div(r->n, ROUTE_ROWS);
  r->blocks = (int)imin((gidx)r->row_tiles * r->atom_tiles, s->sizes.multiprocessors);
  padded = r->row_tiles * ROUTE_ROWS;
  struct pack_args pack = {.in = (const float *)t->job->rows->device + (gidx)t->first * p,
                           .out = s->work.rows.at,
                           .count = r->n,
                           .padded = padded,
                           .d = 1,
                           .p = p,
                           .columns = r->columns,
                           .width = ROUTE_ROWS};
  struct cuda_launch rows = {.name = KERNEL_PACK, .arguments = &pack};
  rows.grid = (dim3){(unsigned)ceil_div(r->columns, WARP), (unsigned)padded / WARP, 1};
  rows.block = (dim3){WARP, 8, 1};
  struct cuda_launch scores = {.name = KERNEL_ENCODER_SCORES,
                               .shape = {.bulk = s->sizes.bulk, .d = 1, .top_k = 1},
                               .grid = {(unsigned)r->blocks, 1, 1},
                               .block = {(unsigned)route_threads(s->sizes.bulk), 1, 1},
                               .shared = route_shared_bytes(f->atoms_thread, f->columns, f->stages),
                               .arguments = &t->args};
  TRY(cuda_launch(t->dev, &rows));
  TRY_CU(cudaMemsetAsync(r->bad, 0xff, sizeof *r->bad, s->stream));
  return cuda_launch(t->dev, &scores);
}

/* Find where the entries of each row begin, for host and device, and the lowest bad score. */
static int rows_count(struct encoder_launch *t)
{
  struct cuda_state *s = t->dev->state;
  struct encoder_args *a = &t->args;
  struct normal_args starts = {.start = a->start, .k = a->route.n};
  struct cuda_launch l = {
      .name = KERNEL_NORMAL_STARTS, .grid = {1, 1, 1}, .block = {1024, 1, 1}, .arguments = &starts};
  gidx bytes = ((gidx)a->route.n + 1) * (gidx)sizeof *a->start;
  unsigned long long bad;
  TRY(launch(t, KERNEL_ENCODER_COUNT, a->route.n, a));
  TRY(cuda_launch(t->dev, &l));
  TRY_CU(cudaMemcpyAsync(t->start, a->start, (size_t)bytes, cudaMemcpyDeviceToHost, s->stream));
  TRY_CU(cudaMemcpyAsync(&bad, a->route.bad, sizeof bad, cudaMemcpyDeviceToHost, s->stream));
  cuda_count(&t->dev->counts.got, bytes + (gidx)sizeof bad);
  TRY(cuda_finish(s));
  idx row = t->first + (idx)(bad >> 32), atom = t->slot + (idx)(bad & 0xffffffffu);
  if (bad != ~0ull && (t->bad.row < 0 || row < t->bad.row)) t->bad = (struct bad_score){row, atom};
  return OK;
}

/* Place the entries of rows args.first .. args.end - 1, and append them to the list on the host. */
static int piece_take(struct encoder_launch *t)
{
  struct cuda_state *s = t->dev->state;
  struct encoder_args a = t->args;
  struct entry_list *to = &t->found;
  idx n = t->start[a.end] - t->start[a.first];
  size_t bytes = (size_t)n * sizeof *to->atoms;
  t->no_memory = !entries_reserve(to, n);
  if (n == 0 || t->no_memory) return OK;
  if (!a.top) {
    a.placed_atoms = a.atoms;
    a.placed_score = a.score;
  }
  TRY(launch(t, KERNEL_ENCODER_SCATTER, a.end - a.first, &a));
  if (a.top) TRY(launch(t, KERNEL_ENCODER_ORDER, a.end - a.first, &a));
  TRY_CU(cudaMemcpyAsync(to->atoms + to->n, a.atoms, bytes, cudaMemcpyDeviceToHost, s->stream));
  TRY_CU(cudaMemcpyAsync(to->score + to->n, a.score, bytes, cudaMemcpyDeviceToHost, s->stream));
  cuda_count(&t->dev->counts.got, 2 * (gidx)bytes);
  TRY(cuda_finish(s));
  for (gidx j = to->n; j < to->n + n; j++) to->atoms[j] += t->slot;
  for (gidx j = to->n; j < to->n + n; j++)
    to->codes[j] = encoder_code(t->job->encoder, to->score[j], to->atoms[j]);
  to->n += n;
  return OK;
}

/* One launch, from rows to entries. */
static int launch_run(struct encoder_launch *t)
{
  struct encoder_args *a = &t->args;
  TRY(rows_score(t));
  TRY(rows_count(t));
  for (a->first = 0; a->first < a->route.n && !t->no_memory; a->first = a->end) {
    for (a->end = a->first + 1; a->end < a->route.n; a->end++)
      if ((gidx)t->start[a->end + 1] - t->start[a->first] > t->entries) break;
    TRY(piece_take(t));
  }
  for (idx i = 0; i < a->route.n; i++) t->lengths[t->first + i] = t->start[i + 1] - t->start[i];
  return OK;
}

/* All rows over the window from t->slot on, which has *slots atoms; stops at a bad score. */
static int window_run(struct encoder_launch *t, idx *slots)
{
  struct cuda_state *s = t->dev->state;
  idx n = t->job->n, rows = (idx)imin(plan_encoder_rows(&s->plan), n);
  TRY(cuda_window(t->dev, t->slot, route_tile_atoms(t->form.atoms_thread), slots));
  TRY(args_make(t, rows, *slots));
  TRY(vectors_put(t));
  t->found.n = 0;
  memset(t->lengths, 0, (size_t)n * sizeof *t->lengths);
  for (t->first = 0; t->first < n && !t->no_memory; t->first += rows) {
    if (t->bad.row >= 0 && t->bad.row < t->first) break;
    t->args.route.n = (idx)imin(rows, n - t->first);
    TRY(launch_run(t));
  }
  return OK;
}

/* The entries of the first window become the entries of the job. */
static void window_take(struct encoder_launch *t)
{
  struct entry_list other = *t->job->found;
  *t->job->found = t->found;
  t->found = other;
  memcpy(t->job->lengths, t->lengths, (size_t)t->job->n * sizeof *t->lengths);
}

/* Run the whole job from its start. */
static int job_run(struct encoder_launch *t)
{
  const struct device *dev = t->dev;
  struct encoder_job *job = t->job;
  idx slots, top = job->encoder->kind == ENCODER_TOPK ? job->encoder->top : 0;
  job->found->n = 0;
  memset(job->lengths, 0, (size_t)job->n * sizeof *job->lengths);
  t->bad = (struct bad_score){-1, -1};
  t->no_memory = 0;
  for (t->slot = 0; t->slot < dev->atoms && !t->no_memory; t->slot += slots) {
    TRY(window_run(t, &slots));
    if (t->slot == 0)
      window_take(t);
    else if (!t->no_memory)
      t->no_memory = !entries_merge(job->found, job->lengths, &t->found, t->lengths, job->n, top);
  }
  return OK;
}

/* job->bad <- as encoder.h says.  All rows up to that of the bad score have all their entries. */
static void bad_find(const struct encoder_launch *t)
{
  struct encoder_job *job = t->job;
  gidx j = values_bad(job->found->codes, job->found->n), end = 0;
  job->bad = t->bad;
  if (j < 0) return;
  idx row = -1;
  while (end <= j) end += job->lengths[++row];
  if (t->bad.row < 0 || row < t->bad.row) job->bad = (struct bad_score){row, job->found->atoms[j]};
}

int cuda_encoder(struct device *dev, struct encoder_job *job)
{
  const struct cuda_state *s = dev->state;
  struct encoder_launch t = {.dev = dev, .job = job, .form = route_form_of(s->sizes.bulk, 1, 1)};
  struct arena arena = {0};
  int status = arena_alloc(&arena, &t.start, (gidx)job->n + 1, sizeof *t.start);
  if (!status) status = arena_alloc(&arena, &t.lengths, job->n, sizeof *t.lengths);
  if (!status) {
    do status = job_run(&t);
    while (cuda_replan(dev, 0, &status));
  }
  if (!status && !t.no_memory) bad_find(&t);
  entries_free(&t.found);
  arena_free(&arena);
  if (!status && t.no_memory)
    FAIL(ERR_MEMORY, "cannot allocate the codes of %d rows: give a smaller --block", job->n);
  return status;
}
