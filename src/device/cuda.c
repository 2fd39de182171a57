/* SPDX-License-Identifier: BSD-3-Clause
 * Opening a GPU, launching kernels, and the table of operations. */
#include "device/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"

enum { ARCHITECTURE_LEAST = 80 };

int cuda_fail(cudaError_t error, const char *file, int line)
{
  int number = -1;
  cudaGetLastError(); /* forget it, where it can be forgotten */
  cudaGetDevice(&number);
  int code = error == cudaErrorMemoryAllocation ? ERR_MEMORY : ERR_DEVICE;
  return status_fail(code, file, line, "GPU %d failed: %s", number, cudaGetErrorString(error));
}

static int gpu_choose(struct cuda_state *s)
{
  int count = 0;
  cudaError_t error = cudaGetDeviceCount(&count);
  CHECK(!error && count > 0, ERR_DEVICE, "there is no GPU to use: %s",
        error ? cudaGetErrorString(error) : "CUDA sees none");
  s->number = s->options.local_rank % count;
  TRY_CU(cudaSetDevice(s->number));
  return OK;
}

static int gpu_describe(struct cuda_state *s, struct device_gpu *gpu)
{
  struct cudaDeviceProp facts;
  int clock = 0;
  TRY_CU(cudaGetDeviceProperties(&facts, s->number));
  TRY_CU(cudaDeviceGetAttribute(&clock, cudaDevAttrClockRate, s->number));
  snprintf(s->name, sizeof s->name, "%s", facts.name);
  s->architecture = 10 * facts.major + facts.minor;
  s->multiprocessors = facts.multiProcessorCount;
  s->clock = 1e3 * clock;
  gpu->number = s->number;
  memcpy(gpu->id, &facts.uuid, sizeof gpu->id);
  s->shared = (int)facts.sharedMemPerBlockOptin;
  s->bulk = facts.major >= 9 && s->shared >= ROUTE_SHARED_MOST;
  CHECK(s->architecture >= ARCHITECTURE_LEAST, ERR_DEVICE,
        "GPU %d, %s, has compute capability %d.%d, at least 8.0 is needed", s->number, s->name,
        facts.major, facts.minor);
  return OK;
}

static int state_fill(struct cuda_state *s, struct device_gpu *gpu)
{
  TRY(gpu_choose(s));
  TRY(gpu_describe(s, gpu));
  TRY_CU(cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking));
  TRY_CU(cudaStreamCreateWithFlags(&s->copies, cudaStreamNonBlocking));
  gpu->stream = s->stream;
  return OK;
}

static int cuda_open(struct device *dev, const struct device_options *options)
{
  struct cuda_state *s = calloc(1, sizeof *s);
  CHECK(s, ERR_MEMORY, "cannot allocate the state of a GPU");
  s->options = *options;
  s->ascending = 1;
  dev->state = s;
  dev->variant = s->name;
  TRY(state_fill(s, &dev->gpu));
  return cuda_filter_open(dev);
}

static void cuda_close(struct device *dev)
{
  struct cuda_state *s = dev->state;
  struct cuda_work *const works[] = {&s->packed, &s->atom_of, &s->staging,  &s->rows,
                                     &s->lists,  &s->counts,  &s->excluded, &s->out,
                                     &s->bad,    &s->states,  &s->names};
  for (int i = 0; i < LENGTH(works); i++) cuda_release(works[i]);
  cuda_filter_close(s);
  for (int i = 0; i < s->n_kernels; i++) cudaLibraryUnload(s->kernels[i].library);
  if (s->stream) cudaStreamDestroy(s->stream);
  if (s->copies) cudaStreamDestroy(s->copies);
  free(s->pieces);
  free(s);
}

int cuda_launch(struct device *dev, const struct cuda_launch *l)
{
  struct cuda_state *s = dev->state;
  struct cuda_kernel *k;
  struct kernel_recipe recipe;
  void *arguments[] = {l->arguments};
  kernel_recipe(l->name, &l->shape, &recipe);
  TRY(cuda_kernel_find(s, &recipe, &k));
  if (l->shared > k->shared)
    TRY_CU(cudaFuncSetAttribute((const void *)k->kernel,
                                cudaFuncAttributeMaxDynamicSharedMemorySize, l->shared));
  k->shared = l->shared > k->shared ? l->shared : k->shared;
  TRY_CU(cudaLaunchKernel((const void *)k->kernel, l->grid, l->block, arguments, (size_t)l->shared,
                          s->stream));
  dev->counts.kernels++;
  return OK;
}

int cuda_finish(struct cuda_state *s)
{
  TRY_CU(cudaStreamSynchronize(s->stream));
  return OK;
}

static int cuda_idle(struct device *dev, int *idle)
{
  struct cuda_state *s = dev->state;
  cudaError_t error = cudaStreamQuery(s->stream);
  *idle = error != cudaErrorNotReady;
  if (*idle) TRY_CU(error);
  return OK;
}

/* A multiply and an add a term on 128 lanes of each multiprocessor. */
static double cuda_peak(const struct device *dev, double seconds)
{
  const struct cuda_state *s = dev->state;
  (void)seconds;
  return s->multiprocessors * 128.0 * s->clock / 2;
}

const struct backend backend_cuda = {
    .kind = "cuda",
    .open = cuda_open,
    .prepare = cuda_prepare,
    .close = cuda_close,
    .take = cuda_take,
    .hold = cuda_wrap,
    .wrap = cuda_wrap,
    .spare = cuda_spare,
    .drop = cuda_drop,
    .put = cuda_put,
    .get = cuda_get,
    .pick = cuda_pick,
    .room = cuda_room,
    .idle = cuda_idle,
    .put_tile = cuda_put_tile,
    .atoms = cuda_atoms,
    .route = cuda_route,
    .codes_state = cuda_codes_state,
    .codes = cuda_codes,
    .copy_rate = cuda_copy_rate,
    .peak = cuda_peak,
};
