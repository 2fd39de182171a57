/* SPDX-License-Identifier: BSD-3-Clause
 * Rows are packed; scores and selection are one kernel; then the lists of a row are merged.  Only
 * scores of candidates leave the chip. */
#include "device/cuda/exact.h"

#include "base/num.h"
#include "base/status.h"
#include "device/cuda/load.h"
#include "device/cuda/memory.h"

/* The geometry that pack, route and merge share; the heads of kernels/pack.cu, route.cu and
 * merge.cu explain it. */
static struct route_args args_make(const struct route_launch *t)
{
  const struct cuda_state *s = t->dev->state;
  const struct exclusions *excluded = &t->job->excluded;
  idx atoms = route_tile_atoms(t->form.atoms_thread);
  struct route_args a = {.n = t->n,
                         .slots = t->slots,
                         .columns = packed_columns(s->options.p),
                         .d = s->options.d,
                         .top_k = t->job->top_k,
                         .row_tiles = (int)ceil_div(t->n, ROUTE_ROWS),
                         .atom_tiles = (int)ceil_div(t->slots, atoms),
                         .ascending = s->ascending,
                         .excluded_count = excluded->count,
                         .excluded_stride = excluded->stride,
                         .row_of = t->row_of,
                         .out = t->out};
  gidx pairs = (gidx)a.row_tiles * a.atom_tiles;
  a.blocks = (int)imin(pairs, s->sizes.multiprocessors);
  for (int r = 0; r < a.row_tiles; r++)
    a.parts = (int)imax(a.parts, route_parts_of(r, a.row_tiles, a.atom_tiles, a.blocks));
  return a;
}

/* Reserve the workspaces of a launch, which plan_exact_bytes() counts. */
static int work_alloc(struct cuda_state *s, const struct route_launch *t, struct route_args *a)
{
  gidx rows = (gidx)a->row_tiles * ROUTE_ROWS, lists = rows * a->parts;
  TRY(cuda_reserve(s, &s->work.rows, rows * a->columns * (gidx)sizeof(float)));
  TRY(cuda_reserve(s, &s->work.lists, lists * t->form.capacity * (gidx)sizeof(struct candidate)));
  TRY(cuda_reserve(s, &s->work.counts, lists * (gidx)sizeof(int)));
  TRY(cuda_reserve(s, &s->work.bad, sizeof *a->bad));
  a->rows = s->work.rows.at;
  a->atoms = s->work.packed.at;
  a->atom_of = s->work.atom_of.at;
  a->excluded = t->excluded;
  a->lists = s->work.lists.at;
  a->counts = s->work.counts.at;
  a->bad = s->work.bad.at;
  TRY_CU(cudaMemsetAsync(a->bad, 0xff, sizeof *a->bad, s->stream));
  return OK;
}

int cuda_launch_exclude(struct route_launch *t)
{
  struct cuda_state *s = t->dev->state;
  const struct exclusions *e = &t->job->excluded;
  gidx bytes = (gidx)t->n * e->stride * (gidx)sizeof(idx);
  t->excluded = NULL;
  if (e->count == 0) return OK;
  if (t->job->chosen) {
    t->excluded = (const idx *)t->job->chosen->device + (gidx)t->first * e->stride;
    return OK;
  }
  TRY(cuda_reserve(s, &s->work.excluded, bytes));
  TRY_CU(cudaMemcpyAsync(s->work.excluded.at, e->atoms + (gidx)t->first * e->stride, (size_t)bytes,
                         cudaMemcpyHostToDevice, s->stream));
  cuda_count(&t->dev->counts.put, bytes);
  t->excluded = s->work.excluded.at;
  return OK;
}

static int rows_pack(const struct route_launch *t, const struct route_args *a)
{
  const struct cuda_state *s = t->dev->state;
  idx padded = a->row_tiles * ROUTE_ROWS, p = s->options.p;
  struct pack_args args = {.in = t->rows + (gidx)t->first * p,
                           .row_of = t->row_of,
                           .out = s->work.rows.at,
                           .count = t->n,
                           .padded = padded,
                           .d = 1,
                           .p = p,
                           .columns = a->columns,
                           .width = ROUTE_ROWS};
  struct cuda_launch launch = {.name = KERNEL_PACK, .arguments = &args};
  launch.grid = (dim3){(unsigned)ceil_div(a->columns, WARP), (unsigned)padded / WARP, 1};
  launch.block = (dim3){WARP, 8, 1};
  return cuda_launch(t->dev, &launch);
}

static int lists_merge_parts(const struct route_launch *t, struct route_args *a)
{
  struct cuda_launch launch = {.name = KERNEL_MERGE,
                               .shape = t->shape,
                               .grid = {(unsigned)ceil_div(a->n, MERGE_WARPS), 1, 1},
                               .block = {MERGE_WARPS * WARP, 1, 1},
                               .arguments = a};
  return cuda_launch(t->dev, &launch);
}

int cuda_launch_exact(struct route_launch *t)
{
  struct cuda_state *s = t->dev->state;
  struct route_args a = args_make(t);
  const struct route_form *f = &t->form;
  struct cuda_launch route = {.name = KERNEL_ROUTE,
                              .shape = t->shape,
                              .grid = {(unsigned)a.blocks, 1, 1},
                              .block = {(unsigned)route_threads(f->bulk), 1, 1},
                              .shared = route_shared_bytes(f->atoms_thread, f->columns, f->stages),
                              .arguments = &a};
  TRY(work_alloc(s, t, &a));
  TRY(rows_pack(t, &a));
  if (t->job->scores_only) a.n = 0; /* treat all rows as padding */
  TRY(cuda_launch(t->dev, &route));
  if (!t->job->scores_only) TRY(lists_merge_parts(t, &a));
  TRY_CU(cudaMemcpyAsync(&t->bad, a.bad, sizeof t->bad, cudaMemcpyDeviceToHost, s->stream));
  return cuda_finish(s);
}
