/* SPDX-License-Identifier: BSD-3-Clause
 * A thread takes one element of a row, or one pair of a row and a block of atoms.  Column sums
 * alone have a kernel in which several warps sum the rows of a column. */
#include "device/cuda/train_nested.h"

#include "base/num.h"
#include "base/status.h"
#include "batch_types.h"
#include "device/cuda/load.h"
#include "model/triad.h"
#include "types.h"

_Static_assert((int)NESTED_MOST_BLOCKS == (int)NESTED_MOST,
               "nested_starts_args::end has room for NESTED_MOST ends");
_Static_assert((int)SUMS_ROWS == (int)TRIAD_CHUNK, "the rows of a chunk decide the bits");

/* Launch a kernel with one thread per item, up to a limit. */
static int items_launch(struct device *dev, enum kernel_name name, gidx items, void *arguments)
{
  struct cuda_launch l = {
      .name = name,
      .grid = {(unsigned)imin(ceil_div(items, BATCH_THREADS), 16 * BATCH_BLOCKS), 1, 1},
      .block = {BATCH_THREADS, 1, 1},
      .arguments = arguments};
  return cuda_launch(dev, &l);
}

int cuda_train_blocks(struct device *dev, const struct train_blocks_job *job)
{
  struct nested_starts_args a = {.entries = (const long long *)job->entries->start,
                                 .index = job->entries->index,
                                 .n = job->n,
                                 .blocks = nested_blocks(job->nested),
                                 .start = (long long *)job->start};
  for (int b = 0; b < job->nested->count; b++) a.end[b] = job->nested->end[b];
  return items_launch(dev, KERNEL_NESTED_STARTS, a.n * a.blocks + 1, &a);
}

int cuda_train_widths(struct device *dev, const struct train_errors_job *job)
{
  struct nested_errors_args a = {job->error, job->x, job->n, job->blocks, job->p};
  return items_launch(dev, KERNEL_NESTED_ERRORS, a.n * a.p, &a);
}

int cuda_train_suffix(struct device *dev, float *errors, gidx n, int blocks, idx p)
{
  struct nested_errors_args a = {errors, NULL, n, blocks, p};
  return items_launch(dev, KERNEL_NESTED_SUFFIX, n * p, &a);
}

int cuda_train_block_get(struct device *dev, const float *errors, gidx n, int blocks, int block,
                         idx p, float *to)
{
  struct cuda_state *s = dev->state;
  size_t row = (size_t)p * sizeof *to;
  TRY_CU(cudaMemcpy2DAsync(to, row, errors + (gidx)block * p, (size_t)blocks * row, row, (size_t)n,
                           cudaMemcpyDeviceToDevice, s->stream));
  return OK;
}

int cuda_train_offset(struct device *dev, float *x, gidx n, idx p, const float *offset)
{
  struct train_offset_args a = {x, offset, n, p};
  return n ? items_launch(dev, KERNEL_TRAIN_OFFSET, n * p, &a) : OK;
}

int cuda_train_sums(struct device *dev, const float *rows, gidx n, gidx stride, idx p, float *to)
{
  struct batch_sums_args a = {rows, n, stride, p, to};
  struct cuda_launch l = {.name = KERNEL_BATCH_SUMS,
                          .grid = {(unsigned)ceil_div(p, WARP), 1, 1},
                          .block = {WARP, SUMS_WARPS, 1},
                          .arguments = &a};
  return cuda_launch(dev, &l);
}
