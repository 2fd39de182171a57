/* SPDX-License-Identifier: BSD-3-Clause
 * The scores of all rows of this rank stay on the GPU.  Only counts are copied to the host. */
#include "device/cuda/train_batch.h"

#include "base/num.h"
#include "base/status.h"
#include "batch_types.h"
#include "device/cuda/load.h"
#include "device/cuda/train_codes.h"

_Static_assert((int)BATCH_MOST_BINS == (int)BATCH_BINS, "the kernel counts as many digits");

/* The arrays in the job's work. */
struct batch_work {
  struct train_piece piece;   /* for all rows, and the entries of dead atoms */
  unsigned long long *counts; /* [BATCH_BINS] */
  double *squares;            /* [n] */
  int *above, *equal;         /* [n] */
};

/* Lay out the arrays; returns their bytes. */
static gidx work_lay(const struct train_codes_job *job, char *work, struct batch_work *w)
{
  gidx at = cuda_train_lay(job, job->n, job->dead.most, work, &w->piece);
  w->piece.maxima = NULL;
  gidx rows = round_up(job->n * (gidx)sizeof(int), 256);
  gidx squares = round_up(job->n * (gidx)sizeof *w->squares, 256);
  w->counts = (unsigned long long *)(work + at);
  at += BATCH_BINS * (gidx)sizeof *w->counts;
  w->squares = (double *)(work + at);
  at += squares;
  w->above = (int *)(work + at);
  w->equal = (int *)(work + at + rows);
  return at + 2 * rows;
}

gidx cuda_train_batch_bytes(const struct train_codes_job *job)
{
  struct batch_work w;
  return work_lay(job, NULL, &w);
}

int cuda_train_scores(struct device *dev, const struct train_codes_job *job)
{
  struct batch_work w;
  work_lay(job, job->work, &w);
  struct train_select_args a = cuda_train_select(job, &w.piece);
  return job->n ? cuda_train_score(dev, job, 0, &w.piece, &a) : OK;
}

/* Launch a kernel with one warp per row, up to a limit. */
static int rows_launch(struct device *dev, enum kernel_name name, gidx rows, void *arguments)
{
  struct cuda_launch l = {
      .name = name,
      .grid = {(unsigned)imin(ceil_div(rows * WARP, BATCH_THREADS), BATCH_BLOCKS), 1, 1},
      .block = {BATCH_THREADS, 1, 1},
      .arguments = arguments};
  return cuda_launch(dev, &l);
}

int cuda_train_raise(struct device *dev, const struct train_codes_job *job,
                     const struct train_raise *raise)
{
  const struct train_entries *e = raise->entries;
  struct batch_work w;
  work_lay(job, job->work, &w);
  struct batch_raise_args a = {.scores = w.piece.scores,
                               .rows = raise->left ? raise->left : job->x,
                               .n = job->n,
                               .k = job->k,
                               .stride = cuda_train_select(job, &w.piece).stride,
                               .p = job->p,
                               .relative = raise->relative,
                               .floor = raise->floor,
                               .squares = w.squares,
                               .start = e ? (const long long *)e->start : NULL,
                               .index = e ? e->index : NULL,
                               .code = e ? e->value : NULL};
  struct cuda_launch squares = {.name = KERNEL_BATCH_SQUARES,
                                .grid = {(unsigned)ceil_div(job->n, TRAIN_VECTORS), 1, 1},
                                .block = {WARP, 1, 1},
                                .arguments = &a};
  struct cuda_launch scores = {.name = KERNEL_BATCH_RAISE,
                               .grid = {(unsigned)imin(job->n, RAISE_BLOCKS), 1, 1},
                               .block = {BATCH_THREADS, 1, 1},
                               .arguments = &a};
  if (!job->n) return OK;
  if (a.relative) TRY(cuda_launch(dev, &squares));
  return cuda_launch(dev, &scores);
}

int cuda_train_count(struct device *dev, const struct train_codes_job *job,
                     const struct batch_cut *cut, gidx *counts)
{
  struct cuda_state *s = dev->state;
  struct batch_work w;
  size_t bytes = BATCH_BINS * sizeof *w.counts;
  work_lay(job, job->work, &w);
  struct batch_count_args a = {.scores = w.piece.scores,
                               .n = job->n,
                               .stride = cuda_train_select(job, &w.piece).stride,
                               .counts = w.counts};
  batch_bits(cut, &a.shift, &a.known);
  a.prefix = (int)((uint32_t)cut->key >> a.known);
  TRY_CU(cudaMemsetAsync(w.counts, 0, bytes, s->stream));
  if (job->n) TRY(rows_launch(dev, KERNEL_BATCH_COUNT, job->n, &a));
  TRY_CU(cudaMemcpyAsync(counts, w.counts, bytes, cudaMemcpyDeviceToHost, s->stream));
  return cuda_finish(s);
}

/* Write the entries of `live`, row by row. */
static int live_cut(struct device *dev, struct batch_cut_args *a)
{
  struct cuda_launch starts = {.name = KERNEL_BATCH_STARTS,
                               .grid = {1, 1, 1},
                               .block = {BATCH_SCAN_THREADS, 1, 1},
                               .arguments = a};
  TRY(rows_launch(dev, KERNEL_BATCH_ROWS, a->n, a));
  TRY(cuda_launch(dev, &starts));
  return rows_launch(dev, KERNEL_BATCH_COMPACT, a->n, a);
}

int cuda_train_cut(struct device *dev, const struct train_codes_job *job,
                   const struct batch_cut *cut, gidx ties)
{
  struct cuda_state *s = dev->state;
  struct batch_work w;
  gidx taken = 0;
  work_lay(job, job->work, &w);
  struct train_select_args dead = cuda_train_select(job, &w.piece);
  struct batch_cut_args a = {.scores = w.piece.scores,
                             .n = job->n,
                             .stride = dead.stride,
                             .key = cut->key,
                             .ties = ties,
                             .above = w.above,
                             .equal = w.equal,
                             .start = (long long *)job->live.start,
                             .room = job->room ? job->room : INT64_MAX,
                             .index = job->live.index,
                             .value = job->live.value};
  if (job->n == 0) {
    TRY_CU(cudaMemsetAsync(job->live.start, 0, sizeof(gidx), s->stream));
    if (job->is_dead) TRY_CU(cudaMemsetAsync(job->dead.start, 0, sizeof(gidx), s->stream));
    return OK;
  }
  TRY(live_cut(dev, &a));
  if (!job->is_dead) return OK;
  TRY(cuda_train_entries_check(job, job->dead.most));
  TRY(cuda_train_mask(dev, job, w.piece.scores, &dead));
  return cuda_train_take(dev, &dead, &job->dead, 0, &taken);
}
