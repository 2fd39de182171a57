/* SPDX-License-Identifier: BSD-3-Clause
 * Memory of a GPU: buffers with a page-locked host side, workspaces, and the only copies. */
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "device/cuda.h"

/* Say how much was wanted and how much there is. */
static int memory_fail(const struct cuda_state *s, gidx bytes, const char *file, int line)
{
  size_t left = 0, all = 0;
  cudaGetLastError();
  cudaMemGetInfo(&left, &all);
  return status_fail(ERR_MEMORY, file, line,
                     "cannot allocate %.1f MB on GPU %d: %.1f of its %.1f MB are free",
                     1e-6 * (double)bytes, s->number, 1e-6 * (double)left, 1e-6 * (double)all);
}

static int memory_take(const struct cuda_state *s, void **at, gidx bytes)
{
  TRY_CU(cudaSetDevice(s->number));
  cudaError_t error = cudaMalloc(at, (size_t)bytes);
  if (error == cudaErrorMemoryAllocation) return memory_fail(s, bytes, __FILE__, __LINE__);
  TRY_CU(error);
  return OK;
}

int cuda_reserve(struct cuda_state *s, struct cuda_work *w, gidx bytes)
{
  if (bytes <= w->bytes) return OK;
  cuda_release(w);
  TRY(memory_take(s, &w->at, bytes));
  w->bytes = bytes;
  return OK;
}

void cuda_release(struct cuda_work *w)
{
  if (w->at) cudaFree(w->at);
  *w = (struct cuda_work){0};
}

int cuda_wrap(struct device *dev, struct buffer *b)
{
  struct cuda_state *s = dev->state;
  int status = memory_take(s, &b->device, b->bytes);
  while (status == ERR_MEMORY && s->window > 0) { /* the dictionary can do with less */
    TRY(cuda_window_halve(dev));
    status = memory_take(s, &b->device, b->bytes);
  }
  TRY(status);
  TRY_CU(cudaMemsetAsync(b->device, 0, (size_t)b->bytes, s->stream));
  return cuda_finish(s);
}

int cuda_room(struct device *dev, gidx *bytes)
{
  enum { KEPT = 32 }; /* such a part is left for workspaces and fetched atoms */
  const struct cuda_state *s = dev->state;
  size_t left = 0, all = 0;
  TRY_CU(cudaSetDevice(s->number));
  TRY_CU(cudaMemGetInfo(&left, &all));
  *bytes = (gidx)left - (gidx)(all / KEPT);
  return OK;
}

int cuda_spare(struct device *dev, struct buffer *b)
{
  struct cuda_state *s = dev->state;
  gidx room;
  TRY(cuda_room(dev, &room));
  if (b->bytes > room) return memory_fail(s, b->bytes, __FILE__, __LINE__);
  return memory_take(s, &b->device, b->bytes);
}

int cuda_take(struct device *dev, struct buffer *b)
{
  struct cuda_state *s = dev->state;
  TRY_CU(cudaSetDevice(s->number));
  cudaError_t error = cudaHostAlloc(&b->host, (size_t)b->bytes, cudaHostAllocDefault);
  CHECK(!error, ERR_MEMORY, "cannot allocate %.1f MB of page-locked memory: %s",
        1e-6 * (double)b->bytes, cudaGetErrorString(error));
  memset(b->host, 0, (size_t)b->bytes);
  return cuda_wrap(dev, b);
}

void cuda_drop(struct device *dev, struct buffer *b)
{
  (void)dev;
  if (b->device) cudaFree(b->device);
  if (b->owned && b->host) cudaFreeHost(b->host);
}

int cuda_put(struct device *dev, const struct buffer *b, gidx at, gidx bytes)
{
  struct cuda_state *s = dev->state;
  TRY_CU(cudaSetDevice(s->number)); /* of this thread */
  TRY_CU(cudaMemcpyAsync((char *)b->device + at, (const char *)b->host + at, (size_t)bytes,
                         cudaMemcpyHostToDevice, s->copies));
  TRY_CU(cudaStreamSynchronize(s->copies));
  cuda_count(&dev->counts.put, bytes);
  return OK;
}

int cuda_get(struct device *dev, const struct buffer *b, gidx at, gidx bytes)
{
  struct cuda_state *s = dev->state;
  TRY_CU(cudaMemcpyAsync((char *)b->host + at, (const char *)b->device + at, (size_t)bytes,
                         cudaMemcpyDeviceToHost, s->stream));
  cuda_count(&dev->counts.got, bytes);
  return cuda_finish(s);
}

int cuda_pick(struct device *dev, const struct pick_job *job)
{
  struct cuda_state *s = dev->state;
  size_t names = (size_t)job->n * sizeof *job->names;
  struct pick_args a = {.in = job->from->device,
                        .out = (unsigned *)job->to->device + job->at * (job->unit / 4),
                        .count = job->n,
                        .words = job->unit / 4};
  if (job->names) {
    TRY(cuda_reserve(s, &s->names, (gidx)names));
    TRY_CU(cudaMemcpyAsync(s->names.at, job->names, names, cudaMemcpyHostToDevice, s->stream));
    a.names = s->names.at;
  }
  struct cuda_launch launch = {.name = KERNEL_PICK, .arguments = &a};
  launch.grid = (dim3){(unsigned)(job->n < PICK_BLOCKS ? job->n : PICK_BLOCKS), 1, 1};
  launch.block = (dim3){PICK_THREADS, 1, 1};
  TRY(cuda_launch(dev, &launch));
  return cuda_finish(s);
}

int cuda_copy_rate(struct device *dev, double *rate)
{
  enum { BYTES = 512 << 20, COPIES = 10 };
  struct cuda_state *s = dev->state;
  struct cuda_work from = {0}, to = {0};
  int status = cuda_reserve(s, &from, BYTES);
  if (!status) status = cuda_reserve(s, &to, BYTES);
  double begun = 0;
  for (int i = -1; i < COPIES && !status; i++) { /* the first is not counted */
    cudaError_t error = cudaMemcpyAsync(to.at, from.at, BYTES, cudaMemcpyDeviceToDevice, s->stream);
    status = error ? cuda_fail(error, __FILE__, __LINE__) : i < 0 ? cuda_finish(s) : OK;
    if (i < 0) begun = log_seconds();
  }
  if (!status) status = cuda_finish(s);
  *rate = 2.0 * COPIES * BYTES / (log_seconds() - begun);
  cuda_release(&from);
  cuda_release(&to);
  return status;
}
