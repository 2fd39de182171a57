/* SPDX-License-Identifier: BSD-3-Clause
 * Scores of as many rows as fit are held at a time, with the maxima of groups of them; entries are
 * sorted by atom as those of normal equations are. */
#include "device/cuda/train.h"

#include "base/num.h"
#include "base/status.h"
#include "device/cuda/load.h"
#include "device/cuda/tensor.h"
#include "device/cuda/triad.h"
#include "forms.h"
#include "tensor_types.h"
#include "train_types.h"
#include "triad_types.h"

enum { SCORES = 1 << 28, LEAST_ROWS = 128, LANES = 4 * WARP, LEAST_GROUP = 64 };

/* Rows whose scores are held at a time, and floats from one to the next. */
static idx piece_of(idx n, idx k)
{
  return (idx)imin(n, imax(SCORES / round_up(k, LANES), LEAST_ROWS));
}

static int stride_of(idx k)
{
  return (int)round_up(k, LANES);
}

/* Where a piece of rows has its arrays; the last two are operands, turned or narrowed. */
struct piece_work {
  float *scores, *maxima, *value;
  int *index, *count;
  void *rows, *encoder;
};

static idx most_of(const struct train_codes_job *job)
{
  return (idx)imax(job->live.most, job->dead.most);
}

/* The product of the encoder with so many rows, the first ones. */
static struct triad_args product_of(const struct train_codes_job *job, idx rows)
{
  return (struct triad_args){.a = job->x,
                             .b = job->encoder,
                             .start = job->bias,
                             .a_row = job->p,
                             .a_depth = 1,
                             .b_depth = 1,
                             .b_column = job->p,
                             .rows = rows,
                             .columns = job->k,
                             .depth = job->p};
}

/* Returns the bytes at the end. */
static gidx work_lay(const struct train_codes_job *job, char *work, struct piece_work *w)
{
  gidx rows = piece_of(job->n, job->k), at = 0, item = (gidx)sizeof(float), most = most_of(job);
  int is_f32 = job->precision == PRECISION_F32;
  struct triad_args f32 = product_of(job, (idx)rows);
  gidx sizes[] = {rows * stride_of(job->k) * item,
                  rows * ceil_div(job->k, LEAST_GROUP) * item,
                  rows * most * item,
                  rows * most * item,
                  (rows + 1) * item,
                  is_f32 ? cuda_triad_rows_bytes(&f32)
                         : cuda_tensor_rows_bytes(job->precision, rows, job->p),
                  is_f32 ? cuda_triad_columns_bytes(&f32)
                         : cuda_tensor_columns_bytes(job->precision, job->k, job->p)};
  void *all[LENGTH(sizes)];
  for (int i = 0; i < LENGTH(sizes); i++) {
    all[i] = work + at;
    at += round_up(sizes[i], 256);
  }
  *w = (struct piece_work){all[0], all[1], all[2], all[3], all[4], all[5], all[6]};
  return at;
}

gidx cuda_train_codes_bytes(const struct train_codes_job *job)
{
  struct piece_work w;
  return work_lay(job, NULL, &w);
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

/* counts become where lists begin; counts[k] is there too. */
static int starts_scan(struct device *dev, int *counts, idx k)
{
  struct normal_args starts = {.start = counts, .k = k};
  struct cuda_launch l = {
      .name = KERNEL_NORMAL_STARTS, .grid = {1, 1, 1}, .block = {1024, 1, 1}, .arguments = &starts};
  return cuda_launch(dev, &l);
}

/* The largest scores of the piece's rows, behind the first `*taken` entries; *taken goes on. */
static int entries_take(struct device *dev, struct train_select_args *a,
                        const struct train_entries *to, idx row, gidx *taken)
{
  struct cuda_state *s = dev->state;
  struct cuda_launch select = {.name = KERNEL_TRAIN_SELECT,
                               .grid = {(unsigned)ceil_div(a->n, TRAIN_SELECT_WARPS), 1, 1},
                               .block = {TRAIN_SELECT_WARPS * WARP, 1, 1},
                               .arguments = a};
  struct train_pack_args pack = {.start = a->count,
                                 .index = a->index,
                                 .value = a->value,
                                 .n = a->n,
                                 .base = *taken,
                                 .most = to->most,
                                 .wide = (long long *)to->start + row,
                                 .packed_index = to->index + *taken,
                                 .packed_value = to->value + *taken};
  int many;
  a->most = to->most;
  TRY(cuda_launch(dev, &select));
  TRY(starts_scan(dev, a->count, (idx)a->n));
  TRY(launch_along(dev, KERNEL_TRAIN_PACK, (a->n + 1) * WARP, &pack));
  TRY_CU(cudaMemcpyAsync(&many, a->count + a->n, sizeof many, cudaMemcpyDeviceToHost, s->stream));
  TRY(cuda_finish(s));
  *taken += many;
  return OK;
}

/* Products of a piece of rows with the encoder, which is narrowed once for all. */
static int tensor_tiles(struct device *dev, enum precision precision, idx first,
                        const struct triad_args *product, const struct piece_work *w)
{
  if (first == 0) TRY(cuda_tensor_columns(dev, precision, product, w->encoder));
  TRY(cuda_tensor_rows(dev, precision, product, w->rows));
  return cuda_tensor_tiles(dev, precision, product, w->rows, w->encoder);
}

/* The same in f32: it is turned once for all pieces that are as large as the first. */
static int triad_tiles(struct device *dev, idx first, struct triad_args *product,
                       const struct piece_work *w)
{
  if (first == 0 || !cuda_triad_columns_bytes(product))
    TRY(cuda_triad_columns(dev, product, w->encoder));
  else
    product->b = w->encoder, product->b_column = 1, product->b_depth = product->columns;
  TRY(cuda_triad_rows(dev, product, w->rows));
  return cuda_triad_tiles(dev, product);
}

/* Scores of n rows from `first` on, those that are no code 0, and the maxima of their groups. */
static int rows_score(struct device *dev, const struct train_codes_job *job, idx first, idx n,
                      const struct piece_work *w, struct train_select_args *a)
{
  struct cuda_state *s = dev->state;
  gidx item = (gidx)sizeof(float);
  int small = cuda_triad_small(s, n, job->k), is_f32 = job->precision == PRECISION_F32;
  a->n = n;
  a->group = is_f32 ? triad_group(triad_product_form(small)) : TENSOR_GROUP;
  a->groups = (int)ceil_div(job->k, a->group);
  a->maxima = w->maxima;
  struct triad_args product = product_of(job, n);
  product.a += (gidx)first * job->p;
  product.c = w->scores;
  product.c_row = a->stride;
  product.maxima = w->maxima;
  product.groups = a->groups;
  if (a->stride > job->k)
    TRY_CU(cudaMemset2DAsync(w->scores + job->k, (size_t)(a->stride * item), 0,
                             (size_t)((a->stride - job->k) * item), (size_t)n, s->stream));
  return is_f32 ? triad_tiles(dev, first, &product, w)
                : tensor_tiles(dev, job->precision, first, &product, w);
}

/* The scores of the dead alone are left, and what was known of groups is not true any more. */
static int scores_mask(struct device *dev, const struct train_codes_job *job, float *scores,
                       struct train_select_args *a)
{
  struct train_mask_args m = {scores, job->is_dead, a->n, job->k, a->stride};
  struct cuda_launch l = {
      .name = KERNEL_TRAIN_MASK,
      .grid = {(unsigned)ceil_div(job->k, TRAIN_THREADS), (unsigned)imin(a->n, TRAIN_BLOCKS), 1},
      .block = {TRAIN_THREADS, 1, 1},
      .arguments = &m};
  a->maxima = NULL;
  return cuda_launch(dev, &l);
}

static int job_check(const struct train_codes_job *job, idx most)
{
  CHECK(cuda_train_codes_bytes(job) <= job->work_bytes, ERR_INTERNAL,
        "%lld bytes for the scores of %d rows and %d atoms", (long long)job->work_bytes, job->n,
        job->k);
  CHECK((gidx)job->n * most <= INT32_MAX, ERR_INPUT,
        "%d rows of up to %d codes are too many for a step on a GPU: lower '--batch'", job->n,
        most);
  return OK;
}

int cuda_train_codes(struct device *dev, const struct train_codes_job *job)
{
  struct cuda_state *s = dev->state;
  idx most = most_of(job);
  gidx live = 0, dead = 0;
  struct piece_work w;
  TRY(job_check(job, most));
  work_lay(job, job->work, &w);
  struct train_select_args a = {.values = w.scores,
                                .stride = stride_of(job->k),
                                .count = w.count,
                                .index = w.index,
                                .value = w.value};
  if (job->n == 0) {
    TRY_CU(cudaMemsetAsync(job->live.start, 0, sizeof(gidx), s->stream));
    if (job->is_dead) TRY_CU(cudaMemsetAsync(job->dead.start, 0, sizeof(gidx), s->stream));
  }
  for (idx first = 0; first < job->n; first += (idx)a.n) {
    idx n = (idx)imin(job->n - first, piece_of(job->n, job->k));
    TRY(rows_score(dev, job, first, n, &w, &a));
    TRY(entries_take(dev, &a, &job->live, first, &live));
    if (!job->is_dead) continue;
    TRY(scores_mask(dev, job, w.scores, &a));
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
  return cuda_launch(dev, &l);
}

int cuda_train_errors(struct device *dev, const struct train_errors_job *job)
{
  struct train_errors_args a = {job->error, job->left, job->x, job->squares, job->n, job->p};
  return launch_vectors(dev, KERNEL_TRAIN_ERRORS, job->n, &a);
}

int cuda_train_scale(struct device *dev, float *values, gidx count, float factor)
{
  struct train_scale_args a = {values, count, factor};
  return launch_along(dev, KERNEL_TRAIN_SCALE, count, &a);
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
    return OK;
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
  return launch_along(dev, KERNEL_TRAIN_WIDEN, widen.count, &widen);
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
