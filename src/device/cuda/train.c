/* SPDX-License-Identifier: BSD-3-Clause
 * Entries are sorted by atom as for the normal equations.  With nested widths, the last block
 * first becomes the reconstruction by all codes; then its errors are computed and squared. */
#include "device/cuda/train.h"

#include "base/num.h"
#include "base/status.h"
#include "device/cuda/load.h"
#include "device/cuda/train_codes.h"
#include "device/cuda/train_nested.h"
#include "forms.h"
#include "train_types.h"

/* Launch a kernel with one lane per vector. */
static int launch_vectors(struct device *dev, enum kernel_name name, gidx count, void *arguments)
{
  struct cuda_launch l = {.name = name,
                          .grid = {(unsigned)ceil_div(count, TRAIN_VECTORS), 1, 1},
                          .block = {WARP, 1, 1},
                          .arguments = arguments};
  return cuda_launch(dev, &l);
}

int cuda_train_errors(struct device *dev, const struct train_errors_job *job)
{
  gidx blocks = imax(job->blocks, 1);
  struct train_errors_args a = {.error = job->error + (blocks - 1) * job->p,
                                .left = job->left,
                                .x = job->x,
                                .squares = job->squares,
                                .n = job->n,
                                .stride = blocks * job->p,
                                .p = job->p};
  if (blocks > 1) TRY(cuda_train_widths(dev, job));
  return launch_vectors(dev, KERNEL_TRAIN_ERRORS, job->n, &a);
}

int cuda_train_scale(struct device *dev, float *values, gidx count, float factor)
{
  struct train_scale_args a = {values, count, factor};
  return cuda_train_along(dev, KERNEL_TRAIN_SCALE, count, &a);
}

gidx cuda_train_transpose_bytes(idx n, idx k)
{
  return ((gidx)normal_chunks(n, k) * k + k + 1) * (gidx)sizeof(int);
}

/* Count entries by chunks of rows, and find where the entries of each atom begin. */
static int transpose_index(struct device *dev, struct train_transpose_args *t, int *begin)
{
  struct cuda_state *s = dev->state;
  struct normal_args a = {.k = t->atoms, .chunks = t->chunks, .counts = t->counts, .start = begin};
  struct cuda_launch scan = {.name = KERNEL_NORMAL_SCAN,
                             .grid = {(unsigned)ceil_div(t->atoms, WARP), 1, 1},
                             .block = {WARP, WARP, 1},
                             .arguments = &a};
  size_t counters = (size_t)t->chunks * (size_t)t->atoms * sizeof *t->counts;
  TRY_CU(cudaMemsetAsync(t->counts, 0, counters, s->stream));
  TRY(cuda_train_along(dev, KERNEL_TRAIN_COUNT, (gidx)t->n * WARP, t));
  TRY(cuda_launch(dev, &scan));
  return cuda_train_starts(dev, begin, t->atoms);
}

int cuda_train_transpose(struct device *dev, const struct train_transpose_job *job)
{
  const struct train_entries *e = job->entries;
  idx atoms = (idx)job->atoms;
  struct cuda_state *s = dev->state;
  struct train_transpose_args t = {.start = (const long long *)e->start,
                                   .index = e->index,
                                   .value = e->value,
                                   .slope = job->slopes,
                                   .first = job->first,
                                   .n = job->n,
                                   .atoms = atoms,
                                   .row = job->row,
                                   .turned_value = job->code,
                                   .turned_slope = job->slope};
  if (job->n == 0 || atoms == 0) {
    TRY_CU(cudaMemsetAsync(job->start, 0, ((size_t)atoms + 1) * sizeof(gidx), s->stream));
    return OK;
  }
  t.chunk_rows = normal_chunk_rows(job->n, job->k);
  t.chunks = normal_chunks(job->n, job->k);
  t.counts = job->work;
  int *begin = t.counts + (gidx)t.chunks * job->k;
  t.begin = begin;
  struct train_widen_args widen = {begin, (long long *)job->start, 0, (gidx)atoms + 1};
  struct cuda_launch place = {.name = KERNEL_TRAIN_SCATTER,
                              .grid = {(unsigned)ceil_div(t.chunks, NORMAL_WARPS), 1, 1},
                              .block = {WARP, NORMAL_WARPS, 1},
                              .arguments = &t};
  TRY(transpose_index(dev, &t, begin));
  TRY(cuda_launch(dev, &place));
  return cuda_train_along(dev, KERNEL_TRAIN_WIDEN, widen.count, &widen);
}

int cuda_train_idle(struct device *dev, const struct train_idle_job *job)
{
  struct cuda_state *s = dev->state;
  const struct train_entries *e = job->entries;
  gidx used = round_up(job->k, sizeof(int));
  struct train_idle_args a = {.n = job->n,
                              .k = job->k,
                              .idle = (long long *)job->idle,
                              .dead_rows = job->dead_rows,
                              .is_dead = job->is_dead,
                              .used = job->used,
                              .any = (int *)(job->used + used)};
  TRY_CU(cudaMemsetAsync(job->used, 0, (size_t)used + sizeof(int), s->stream));
  if (e) {
    a.start = (const long long *)e->start;
    a.index = e->index;
    TRY(cuda_train_along(dev, KERNEL_TRAIN_USED, (gidx)job->n * e->most, &a));
  }
  TRY(cuda_train_along(dev, KERNEL_TRAIN_IDLE, job->k, &a));
  TRY_CU(cudaMemcpyAsync(job->any, a.any, sizeof(int), cudaMemcpyDeviceToHost, s->stream));
  return cuda_finish(s);
}

int cuda_train_tangent(struct device *dev, const float *atoms, gidx count, idx p, float *gradient)
{
  struct train_atoms_args a = {atoms, gradient, count, p};
  return launch_vectors(dev, KERNEL_TRAIN_TANGENT, count, &a);
}

int cuda_train_normalize(struct device *dev, float *atoms, gidx count, idx p)
{
  struct train_atoms_args a = {.vectors = atoms, .count = count, .p = p};
  return launch_vectors(dev, KERNEL_TRAIN_NORMALIZE, count, &a);
}
