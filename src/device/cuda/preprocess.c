/* SPDX-License-Identifier: BSD-3-Clause
 * Each of the two operations has its own stream, `copies` or `sums`.  Jobs compute on a third. */
#include "device/cuda/preprocess.h"

#include "base/num.h"
#include "base/status.h"
#include "base/sums.h"
#include "device/cuda/load.h"
#include "types.h"

int cuda_preprocess_run(struct preprocess *in, struct preprocess_job *job)
{
  struct cuda_state *s = in->device->state;
  struct preprocess_found found = {0, ~0ull}, *there = in->found.device;
  struct preprocess_args a = {.rows = (float *)job->rows->device + job->at * in->shape.p,
                              .mean = in->mean.device,
                              .first = job->first,
                              .n = job->n,
                              .p = in->shape.p,
                              .found = there};
  gidx blocks = imin(ceil_div(job->n, PREPROCESS_WARPS), PREPROCESS_BLOCKS);
  struct cuda_launch l = {.name = KERNEL_PREPROCESS,
                          .grid = {(unsigned)blocks, 1, 1},
                          .block = {PREPROCESS_WARPS * WARP, 1, 1},
                          .arguments = &a,
                          .stream = s->copies};
  TRY_CU(cudaSetDevice(s->number)); /* CUDA's setting is per thread */
  TRY_CU(cudaMemcpyAsync(there, &found, sizeof found, cudaMemcpyHostToDevice, s->copies));
  TRY(cuda_launch(in->device, &l));
  TRY_CU(cudaMemcpyAsync(&found, there, sizeof found, cudaMemcpyDeviceToHost, s->copies));
  TRY_CU(cudaStreamSynchronize(s->copies));
  job->terms = found.terms;
  job->bad = found.bad == ~0ull ? -1 : (gidx)found.bad;
  return OK;
}

int cuda_preprocess_sums(struct preprocess *in, const struct buffer *rows, gidx first, idx n,
                         real *ended)
{
  struct cuda_state *s = in->device->state;
  const struct preprocess_shape *shape = &in->shape;
  gidx touched = ceil_div(first % ROW_BLOCK + n, ROW_BLOCK);
  int last_ends = (first + n) % ROW_BLOCK == 0 || first + n == shape->n;
  size_t bytes = (size_t)(touched - !last_ends) * 2 * (size_t)shape->count * sizeof *ended;
  struct column_args a = {.rows = rows->device,
                          .shift = in->shift.device,
                          .first = first,
                          .all = shape->n,
                          .n = n,
                          .p = shape->p,
                          .begin = shape->first,
                          .count = shape->count,
                          .block = ROW_BLOCK,
                          .from = in->chains[in->turn].device,
                          .to = in->chains[!in->turn].device,
                          .ended = in->ended.device};
  struct cuda_launch l = {
      .name = KERNEL_COLUMN_SUMS,
      .grid = {(unsigned)ceil_div(shape->count, COLUMN_THREADS), (unsigned)touched, 1},
      .block = {COLUMN_THREADS, 1, 1},
      .arguments = &a,
      .stream = s->sums};
  TRY_CU(cudaSetDevice(s->number)); /* CUDA's setting is per thread */
  TRY(cuda_launch(in->device, &l));
  if (bytes)
    TRY_CU(cudaMemcpyAsync(ended, in->ended.device, bytes, cudaMemcpyDeviceToHost, s->sums));
  TRY_CU(cudaStreamSynchronize(s->sums));
  return OK;
}
