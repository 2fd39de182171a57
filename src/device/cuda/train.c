/* SPDX-License-Identifier: BSD-3-Clause
 * Scores of as many rows as fit are held at a time, and their largest are found by the kernels that
 * imported encoders use; entries are sorted by atom as those of normal equations are. */
#include "device/cuda/train.h"

#include "base/num.h"
#include "base/status.h"
#include "device/cuda/load.h"
#include "device/cuda/triad.h"
#include "forms.h"
#include "train_types.h"
#include "triad_types.h"

enum { SCORES = 1 << 28, LEAST_ROWS = 128, LANES = 4 * WARP /* of encoder_place */ };

/* Rows whose scores are held at a time, and floats from one to the next. */
static idx piece_of(idx n, idx k)
{
  return (idx)imin(n, imax(SCORES / round_up(k, LANES), LEAST_ROWS));
}

static int stride_of(idx k)
{
  return (int)round_up(k, LANES);
}

gidx cuda_train_codes_bytes(idx n, idx k)
{
  gidx rows = piece_of(n, k);
  return rows * (gidx)stride_of(k) * (gidx)sizeof(float) +
         round_up(rows * (gidx)sizeof(struct encoder_cut) + (rows + 1) * (gidx)sizeof(int), 256);
}

/* One launch along `items`, a thread each up to a number. */
static int launch_along(struct device *dev, enum kernel_name name, gidx items, void *arguments)
{
  struct cuda_launch l = {
      .name = name,
      .grid = {(unsigned)imin(ceil_div(items, TRAIN_THREADS), TRAIN_BLOCKS), 1, 1},
      .block = {TRAIN_THREADS, 1, 1},
      .arguments = arguments};
  return items > 0 ? cuda_launch(dev, &l) : OK;
}

static int launch_rows(struct device *dev, enum kernel_name name, gidx rows, void *arguments)
{
  struct cuda_launch l = {.name = name,
                          .grid = {(unsigned)ceil_div(rows, ENCODER_WARPS), 1, 1},
                          .block = {ENCODER_WARPS * WARP, 1, 1},
                          .arguments = arguments};
  return cuda_launch(dev, &l);
}

/* counts become where lists begin; counts[k] is there too. */
static int starts_scan(struct device *dev, int *counts, idx k)
{
  struct normal_args starts = {.start = counts, .k = k};
  struct cuda_launch l = {
      .name = KERNEL_NORMAL_STARTS, .grid = {1, 1, 1}, .block = {1024, 1, 1}, .arguments = &starts};
  return cuda_launch(dev, &l);
}

/* The largest of the scores, behind the first `*taken` entries; *taken goes on. */
static int entries_take(struct device *dev, struct encoder_args *a, const struct train_entries *to,
                        idx row, gidx *taken)
{
  struct cuda_state *s = dev->state;
  struct train_widen_args widen = {a->start, (long long *)to->start + row, *taken, a->end + 1};
  int many;
  a->top = to->most;
  a->placed_atoms = to->index + *taken;
  a->placed_score = to->value + *taken;
  TRY(launch_rows(dev, KERNEL_ENCODER_COUNT, a->end, a));
  TRY(starts_scan(dev, a->start, a->end));
  TRY(launch_rows(dev, KERNEL_ENCODER_PLACE, a->end, a));
  TRY(launch_along(dev, KERNEL_TRAIN_WIDEN, widen.count, &widen));
  TRY_CU(cudaMemcpyAsync(&many, a->start + a->end, sizeof many, cudaMemcpyDeviceToHost, s->stream));
  TRY(cuda_finish(s));
  *taken += many;
  return OK;
}

/* Scores of rows first .. first + n - 1, those that are no code 0. */
static int rows_score(struct device *dev, const struct train_codes_job *job, idx first, idx n,
                      float *scores, int stride)
{
  struct cuda_state *s = dev->state;
  gidx item = (gidx)sizeof(float);
  struct triad_args a = {.a = job->x + (gidx)first * job->p,
                         .b = job->encoder,
                         .start = job->bias,
                         .c = scores,
                         .a_row = job->p,
                         .a_depth = 1,
                         .b_depth = 1,
                         .b_column = job->p,
                         .c_row = stride,
                         .rows = n,
                         .columns = job->k,
                         .depth = job->p,
                         .only_positive = 1};
  if (stride > job->k)
    TRY_CU(cudaMemset2DAsync(scores + job->k, (size_t)(stride * item), 0,
                             (size_t)((stride - job->k) * item), (size_t)n, s->stream));
  return cuda_triad_tiles(dev, &a);
}

static int scores_mask(struct device *dev, const struct train_codes_job *job, float *scores,
                       int stride, idx n)
{
  struct train_mask_args m = {scores, job->is_dead, n, job->k, stride};
  struct cuda_launch l = {
      .name = KERNEL_TRAIN_MASK,
      .grid = {(unsigned)ceil_div(job->k, TRAIN_THREADS), (unsigned)imin(n, TRAIN_BLOCKS), 1},
      .block = {TRAIN_THREADS, 1, 1},
      .arguments = &m};
  return cuda_launch(dev, &l);
}

int cuda_train_codes(struct device *dev, const struct train_codes_job *job)
{
  struct cuda_state *s = dev->state;
  idx piece = piece_of(job->n, job->k);
  int stride = stride_of(job->k);
  gidx live = 0, dead = 0;
  float *scores = job->work;
  struct encoder_args a = {.values = scores, .stride = stride};
  CHECK(cuda_train_codes_bytes(job->n, job->k) <= job->work_bytes, ERR_INTERNAL,
        "%lld bytes for the scores of %d rows and %d atoms", (long long)job->work_bytes, job->n,
        job->k);
  CHECK((gidx)job->n * imax(job->live.most, job->dead.most) <= INT32_MAX, ERR_INPUT,
        "%d rows of up to %lld codes are too many for a step on a GPU: lower '--batch'", job->n,
        (long long)imax(job->live.most, job->dead.most));
  a.cut = (struct encoder_cut *)(scores + (gidx)piece * stride);
  a.start = (int *)(a.cut + piece);
  if (job->n == 0) {
    TRY_CU(cudaMemsetAsync(job->live.start, 0, sizeof(gidx), s->stream));
    if (job->is_dead) TRY_CU(cudaMemsetAsync(job->dead.start, 0, sizeof(gidx), s->stream));
  }
  for (idx first = 0; first < job->n; first += a.end) {
    a.end = a.route.n = (int)imin(job->n - first, piece);
    TRY(rows_score(dev, job, first, a.end, scores, stride));
    TRY(entries_take(dev, &a, &job->live, first, &live));
    if (!job->is_dead) continue;
    TRY(scores_mask(dev, job, scores, stride, a.end));
    TRY(entries_take(dev, &a, &job->dead, first, &dead));
  }
  return cuda_finish(s);
}

/* One launch along vectors, a lane each. */
static int launch_vectors(struct device *dev, enum kernel_name name, gidx count, void *arguments)
{
  struct cuda_launch l = {.name = name,
                          .grid = {(unsigned)ceil_div(count, TRAIN_VECTORS), 1, 1},
                          .block = {WARP, 1, 1},
                          .arguments = arguments};
  TRY(cuda_launch(dev, &l));
  return cuda_finish(dev->state);
}

int cuda_train_errors(struct device *dev, const struct train_errors_job *job)
{
  struct train_errors_args a = {job->error, job->left, job->x, job->squares, job->n, job->p};
  return launch_vectors(dev, KERNEL_TRAIN_ERRORS, job->n, &a);
}

int cuda_train_scale(struct device *dev, float *values, gidx count, float factor)
{
  struct train_scale_args a = {values, count, factor};
  TRY(launch_along(dev, KERNEL_TRAIN_SCALE, count, &a));
  return cuda_finish(dev->state);
}

gidx cuda_train_turn_bytes(idx n, idx k)
{
  return ((gidx)normal_chunks(n, k) * k + k + 1) * (gidx)sizeof(int);
}

/* counts of chunks, and where the entries of each atom begin. */
static int turn_index(struct device *dev, struct train_turn_args *t, int *begin)
{
  struct cuda_state *s = dev->state;
  struct normal_args a = {.k = t->atoms, .chunks = t->chunks, .counts = t->counts, .start = begin};
  struct cuda_launch scan = {.name = KERNEL_NORMAL_SCAN,
                             .grid = {(unsigned)ceil_div(t->atoms, WARP), 1, 1},
                             .block = {WARP, WARP, 1},
                             .arguments = &a};
  size_t counters = (size_t)t->chunks * (size_t)t->atoms * sizeof *t->counts;
  TRY_CU(cudaMemsetAsync(t->counts, 0, counters, s->stream));
  TRY(launch_along(dev, KERNEL_TRAIN_COUNT, (gidx)t->n * WARP, t));
  TRY(cuda_launch(dev, &scan));
  return starts_scan(dev, begin, t->atoms);
}

int cuda_train_turn(struct device *dev, const struct train_turn_job *job)
{
  const struct train_entries *e = job->entries;
  idx atoms = (idx)job->atoms;
  struct cuda_state *s = dev->state;
  struct train_turn_args t = {.start = (const long long *)e->start,
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
    return cuda_finish(s);
  }
  t.chunk_rows = normal_chunk_rows(job->n, job->k);
  t.chunks = normal_chunks(job->n, job->k);
  t.counts = job->work;
  int *begin = t.counts + (gidx)t.chunks * job->k;
  t.begin = begin;
  struct train_widen_args widen = {begin, (long long *)job->start, 0, (gidx)atoms + 1};
  struct cuda_launch place = {.name = KERNEL_TRAIN_PLACE,
                              .grid = {(unsigned)ceil_div(t.chunks, NORMAL_WARPS), 1, 1},
                              .block = {WARP, NORMAL_WARPS, 1},
                              .arguments = &t};
  TRY(turn_index(dev, &t, begin));
  TRY(cuda_launch(dev, &place));
  TRY(launch_along(dev, KERNEL_TRAIN_WIDEN, widen.count, &widen));
  return cuda_finish(s);
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
    TRY(launch_along(dev, KERNEL_TRAIN_USED, (gidx)job->n * e->most, &a));
  }
  TRY(launch_along(dev, KERNEL_TRAIN_IDLE, job->k, &a));
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
