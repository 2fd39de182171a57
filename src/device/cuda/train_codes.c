/* SPDX-License-Identifier: BSD-3-Clause
 * The scores of one piece are held at a time, with the maxima of groups of scores.  A piece is as
 * many rows as fit. */
#include "device/cuda/train_codes.h"

#include "base/num.h"
#include "base/status.h"
#include "device/cuda/load.h"
#include "device/cuda/tensor.h"
#include "device/cuda/triad.h"
#include "forms.h"
#include "tensor_types.h"
#include "triad_types.h"

enum { SCORES = 1 << 28, LEAST_ROWS = 128, LANES = 4 * WARP, LEAST_GROUP = 64 };

/* Rows of a piece. */
static idx piece_of(idx n, idx k)
{
  return (idx)imin(n, imax(SCORES / round_up(k, LANES), LEAST_ROWS));
}

/* Floats between the scores of two rows. */
static int stride_of(idx k)
{
  return (int)round_up(k, LANES);
}

static idx most_of(const struct train_codes_job *job)
{
  return (idx)imax(job->live.most, job->dead.most);
}

/* The product of the first `rows` rows with the encoder. */
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

gidx cuda_train_lay(const struct train_codes_job *job, gidx rows, gidx most, char *work,
                    struct train_piece *w)
{
  gidx at = 0, item = (gidx)sizeof(float);
  int is_f32 = job->precision == PRECISION_F32;
  /* A smaller piece may have whole tiles although these rows do not.  It then needs space for
   * transposed operands. */
  struct triad_args f32 =
      product_of(job, (idx)round_up(rows, triad_product_form(TRIAD_LARGE).rows));
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
  *w = (struct train_piece){all[0], all[1], all[2], all[3], all[4], all[5], all[6]};
  return at;
}

gidx cuda_train_codes_bytes(const struct train_codes_job *job)
{
  struct train_piece w;
  return cuda_train_lay(job, piece_of(job->n, job->k), most_of(job), NULL, &w);
}

int cuda_train_along(struct device *dev, enum kernel_name name, gidx items, void *arguments)
{
  struct cuda_launch l = {
      .name = name,
      .grid = {(unsigned)imin(ceil_div(items, TRAIN_THREADS), TRAIN_BLOCKS), 1, 1},
      .block = {TRAIN_THREADS, 1, 1},
      .arguments = arguments};
  return items > 0 ? cuda_launch(dev, &l) : OK;
}

int cuda_train_starts(struct device *dev, int *counts, idx k)
{
  struct normal_args starts = {.start = counts, .k = k};
  struct cuda_launch l = {
      .name = KERNEL_NORMAL_STARTS, .grid = {1, 1, 1}, .block = {1024, 1, 1}, .arguments = &starts};
  return cuda_launch(dev, &l);
}

int cuda_train_take(struct device *dev, struct train_select_args *a, const struct train_entries *to,
                    idx row, gidx *taken)
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
  TRY(cuda_train_starts(dev, a->count, (idx)a->n));
  TRY(cuda_train_along(dev, KERNEL_TRAIN_PACK, (a->n + 1) * WARP, &pack));
  TRY_CU(cudaMemcpyAsync(&many, a->count + a->n, sizeof many, cudaMemcpyDeviceToHost, s->stream));
  TRY(cuda_finish(s));
  *taken += many;
  return OK;
}

/* The product of a piece of rows with the encoder.  The encoder is narrowed once, for all
 * pieces. */
static int tensor_tiles(struct device *dev, enum precision precision, idx first,
                        const struct triad_args *product, const struct train_piece *w)
{
  if (first == 0) TRY(cuda_tensor_columns(dev, precision, product, w->encoder));
  TRY(cuda_tensor_rows(dev, precision, product, w->rows));
  return cuda_tensor_tiles(dev, precision, product, w->rows, w->encoder);
}

/* The same in f32.  The encoder is transposed once, for all pieces that are as large as the
 * first. */
static int triad_tiles(struct device *dev, idx first, struct triad_args *product,
                       const struct train_piece *w)
{
  if (first == 0 || !cuda_triad_columns_bytes(product))
    TRY(cuda_triad_columns(dev, product, w->encoder));
  else
    product->b = w->encoder, product->b_column = 1, product->b_depth = product->columns;
  TRY(cuda_triad_rows(dev, product, w->rows));
  return cuda_triad_tiles(dev, product);
}

struct train_select_args cuda_train_select(const struct train_codes_job *job,
                                           const struct train_piece *w)
{
  return (struct train_select_args){.values = w->scores,
                                    .n = job->n,
                                    .stride = stride_of(job->k),
                                    .count = w->count,
                                    .index = w->index,
                                    .value = w->value};
}

int cuda_train_score(struct device *dev, const struct train_codes_job *job, idx first,
                     const struct train_piece *w, struct train_select_args *a)
{
  struct cuda_state *s = dev->state;
  gidx item = (gidx)sizeof(float);
  idx n = (idx)a->n;
  int small = cuda_triad_small(s, n, job->k), is_f32 = job->precision == PRECISION_F32;
  a->group = is_f32 ? triad_group(triad_product_form(small)) : TENSOR_GROUP;
  a->groups = (int)ceil_div(job->k, a->group);
  struct triad_args product = product_of(job, n);
  product.a += (gidx)first * job->p;
  a->maxima = w->maxima;
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

int cuda_train_mask(struct device *dev, const struct train_codes_job *job, float *scores,
                    struct train_select_args *a)
{
  struct train_mask_args m = {scores, job->is_dead, a->n, job->k, a->stride, !a->maxima};
  struct cuda_launch l = {
      .name = KERNEL_TRAIN_MASK,
      .grid = {(unsigned)ceil_div(job->k, TRAIN_THREADS), (unsigned)imin(a->n, TRAIN_BLOCKS), 1},
      .block = {TRAIN_THREADS, 1, 1},
      .arguments = &m};
  a->maxima = NULL;
  return cuda_launch(dev, &l);
}

int cuda_train_entries_check(const struct train_codes_job *job, idx most)
{
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
  struct train_piece w;
  CHECK(cuda_train_codes_bytes(job) <= job->work_bytes, ERR_INTERNAL,
        "%lld bytes are too few for the scores of %d rows and %d atoms", (long long)job->work_bytes,
        job->n, job->k);
  TRY(cuda_train_entries_check(job, most));
  cuda_train_lay(job, piece_of(job->n, job->k), most, job->work, &w);
  struct train_select_args a = cuda_train_select(job, &w);
  if (job->n == 0) {
    TRY_CU(cudaMemsetAsync(job->live.start, 0, sizeof(gidx), s->stream));
    if (job->is_dead) TRY_CU(cudaMemsetAsync(job->dead.start, 0, sizeof(gidx), s->stream));
  }
  for (idx first = 0; first < job->n; first += (idx)a.n) {
    a.n = imin(job->n - first, piece_of(job->n, job->k));
    TRY(cuda_train_score(dev, job, first, &w, &a));
    TRY(cuda_train_take(dev, &a, &job->live, first, &live));
    if (!job->is_dead) continue;
    TRY(cuda_train_mask(dev, job, w.scores, &a));
    TRY(cuda_train_take(dev, &a, &job->dead, first, &dead));
  }
  return cuda_finish(s);
}
