/* SPDX-License-Identifier: BSD-3-Clause
 * Opening and closing a GPU, and the table of its operations. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "device/backend.h"
#include "device/cuda/arrow.h"
#include "device/cuda/attention.h"
#include "device/cuda/codes.h"
#include "device/cuda/dense.h"
#include "device/cuda/dictionary.h"
#include "device/cuda/encoder.h"
#include "device/cuda/preprocess.h"
#include "device/cuda/joint.h"
#include "device/cuda/load.h"
#include "device/cuda/memory.h"
#include "device/cuda/mixer.h"
#include "device/cuda/normal.h"
#include "device/cuda/route.h"
#include "device/cuda/screen_window.h"
#include "device/cuda/steps.h"
#include "device/cuda/tensor.h"
#include "device/cuda/train.h"
#include "device/cuda/train_batch.h"
#include "device/cuda/train_codes.h"
#include "device/cuda/train_nested.h"
#include "device/cuda/triad.h"
#include "device/cuda/upload.h"

enum { MIN_ARCHITECTURE = 80 };

/* The version of the runtime, linked or found (runtime_late.c); this does not ask the driver. */
static void cuda_library(char *text, size_t capacity)
{
  int version = 0;
  if (cudaRuntimeGetVersion(&version))
    snprintf(text, capacity, "none");
  else
    snprintf(text, capacity, "%d.%d", version / 1000, version / 10 % 100);
}

static int gpu_of_rank(struct cuda_state *s)
{
  int count = 0;
  cudaError_t error = cudaGetDeviceCount(&count);
  CHECK(!error && count > 0, ERR_DEVICE, "there is no GPU to use: %s",
        error ? cudaGetErrorString(error) : "CUDA sees none");
  s->number = s->options.local_rank % count;
  TRY_CU(cudaSetDevice(s->number));
  return OK;
}

/* Selecting a GPU creates its context. */
static void cuda_warm(const struct device_options *options)
{
  int count = 0;
  if (!cudaGetDeviceCount(&count) && count > 0) cudaSetDevice(options->local_rank % count);
}

/* This creates no context. */
static int cuda_memory(const struct device_options *options, int local_size, gidx *bytes)
{
  struct cudaDeviceProp facts;
  int count = 0;
  *bytes = INT64_MAX;
  if (cudaGetDeviceCount(&count) || count == 0) return OK; /* device_open() reports why */
  TRY_CU(cudaGetDeviceProperties(&facts, options->local_rank % count));
  *bytes = (gidx)facts.totalGlobalMem / ((local_size + count - 1) / count);
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
  s->sizes.multiprocessors = facts.multiProcessorCount;
  s->clock = 1e3 * clock;
  gpu->number = s->number;
  memcpy(gpu->id, &facts.uuid, sizeof gpu->id);
  s->shared = (int)facts.sharedMemPerBlockOptin;
  s->shared_all = (int)facts.sharedMemPerMultiprocessor;
  s->sizes.bulk = facts.major >= 9 && s->shared >= MAX_ROUTE_SHARED;
  CHECK(s->architecture >= MIN_ARCHITECTURE, ERR_DEVICE,
        "GPU %d, %s, has compute capability %d.%d, but at least 8.0 is needed: use --device cpu",
        s->number, s->name, facts.major, facts.minor);
  return OK;
}

static int state_fill(struct cuda_state *s, struct device_gpu *gpu)
{
  TRY(gpu_of_rank(s));
  TRY(gpu_describe(s, gpu));
  TRY_CU(cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking));
  TRY_CU(cudaStreamCreateWithFlags(&s->copies, cudaStreamNonBlocking));
  TRY_CU(cudaStreamCreateWithFlags(&s->sums, cudaStreamNonBlocking));
  /* Other ranks wait for the bytes of an exchange, so it must not queue behind computing blocks. */
  int least, greatest;
  TRY_CU(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  TRY_CU(cudaStreamCreateWithPriority(&s->exchanges, cudaStreamNonBlocking, greatest));
  TRY_CU(cudaEventCreateWithFlags(&s->computed, cudaEventDisableTiming));
  for (int i = 0; i < DEVICE_EXCHANGES; i++)
    TRY_CU(cudaEventCreateWithFlags(&s->exchanged[i], cudaEventDisableTiming));
  gpu->exchanges = s->exchanges;
  return OK;
}

static int cuda_open(struct device *dev, const struct device_options *options)
{
  struct cuda_state *s = calloc(1, sizeof *s);
  CHECK(s, ERR_MEMORY, "cannot allocate the state of a GPU");
  s->options = *options;
  s->sizes = plan_sizes_of(options);
  s->ascending = 1;
  pthread_mutex_init(&s->loading, NULL);
  dev->state = s;
  TRY(state_fill(s, &dev->gpu));
  snprintf(dev->variant, sizeof dev->variant, "%.59s", s->name);
  return cuda_screen_open(dev);
}

static void cuda_close(struct device *dev)
{
  struct cuda_state *s = dev->state;
  for (int i = 0; i < CUDA_WORKS; i++) cuda_release(&s->works[i]);
  cuda_screen_close(s);
  cuda_upload_close(s);
  cuda_arrow_close(s);
  for (int i = 0; i < s->n_kernels; i++) cudaLibraryUnload(s->kernels[i].library);
  if (s->stream) cudaStreamDestroy(s->stream);
  if (s->copies) cudaStreamDestroy(s->copies);
  if (s->sums) cudaStreamDestroy(s->sums);
  if (s->exchanges) cudaStreamDestroy(s->exchanges);
  if (s->computed) cudaEventDestroy(s->computed);
  for (int i = 0; i < DEVICE_EXCHANGES; i++)
    if (s->exchanged[i]) cudaEventDestroy(s->exchanged[i]);
  pthread_mutex_destroy(&s->loading);
  free(s->pieces);
  free(s);
}

static int cuda_wait(struct device *dev)
{
  return cuda_finish(dev->state);
}

/* preprocess_run() works on the stream of copies, so this stream waits too. */
static int cuda_follow(struct device *dev, void *stream)
{
  struct cuda_state *s = dev->state;
  TRY_CU(cudaSetDevice(s->number));
  TRY_CU(cudaEventRecord(s->computed, stream));
  TRY_CU(cudaStreamWaitEvent(s->stream, s->computed, 0));
  TRY_CU(cudaStreamWaitEvent(s->copies, s->computed, 0));
  return OK;
}

static int cuda_exchange(struct device *dev)
{
  struct cuda_state *s = dev->state;
  TRY_CU(cudaEventRecord(s->computed, s->stream));
  TRY_CU(cudaStreamWaitEvent(s->exchanges, s->computed, 0));
  return OK;
}

static int cuda_exchange_mark(struct device *dev, gidx turn)
{
  struct cuda_state *s = dev->state;
  TRY_CU(cudaEventRecord(s->exchanged[turn % DEVICE_EXCHANGES], s->exchanges));
  return OK;
}

static int cuda_exchanged(struct device *dev, gidx turn, int *is_done)
{
  struct cuda_state *s = dev->state;
  cudaError_t error = cudaEventQuery(s->exchanged[turn % DEVICE_EXCHANGES]);
  *is_done = error != cudaErrorNotReady;
  if (*is_done) TRY_CU(error);
  return OK;
}

static int cuda_exchange_follow(struct device *dev, gidx turn)
{
  struct cuda_state *s = dev->state;
  TRY_CU(cudaStreamWaitEvent(s->stream, s->exchanged[turn % DEVICE_EXCHANGES], 0));
  return OK;
}

/* One multiply and one add per term, on 128 lanes of each multiprocessor. */
static double cuda_peak(const struct device *dev, double seconds)
{
  const struct cuda_state *s = dev->state;
  (void)seconds;
  return s->sizes.multiprocessors * 128.0 * s->clock / 2;
}

const struct backend backend_cuda = {
    .kind = "cuda",
    .library = cuda_library,
    .open = cuda_open,
    .prepare = cuda_prepare,
    .forms_bytes = plan_forms_bytes,
    .memory = cuda_memory,
    .warm = cuda_warm,
    .close = cuda_close,
    .alloc = cuda_buffer_alloc,
    .alloc_device = cuda_buffer_wrap,
    .wrap = cuda_buffer_wrap,
    .wrap_spare = cuda_buffer_wrap_spare,
    .free = cuda_buffer_free,
    .put = cuda_put,
    .get = cuda_get,
    .clear = cuda_clear,
    .gather = cuda_gather,
    .pin = cuda_pin,
    .unpin = cuda_unpin,
    .bytes_available = cuda_bytes_available,
    .finish = cuda_wait,
    .follow = cuda_follow,
    .exchange = cuda_exchange,
    .exchange_mark = cuda_exchange_mark,
    .exchanged = cuda_exchanged,
    .exchange_follow = cuda_exchange_follow,
    .put_tile = cuda_put_tile,
    .forget = cuda_dictionary_free,
    .atoms = cuda_atoms,
    .route = cuda_route,
    .place = cuda_scatter,
    .preprocess_run = cuda_preprocess_run,
    .preprocess_sums = cuda_preprocess_sums,
    .encoder = cuda_encoder,
    .codes_state_bytes = cuda_codes_state_bytes,
    .codes = cuda_codes,
    .dense_open = cuda_dense_open,
    .dense_close = cuda_dense_close,
    .cholesky = cuda_cholesky,
    .inverse = cuda_inverse,
    .product = cuda_product,
    .entries = cuda_entries,
    .dense_bytes = plan_dense_bytes,
    .joint_open = cuda_joint_open,
    .joint_close = cuda_joint_close,
    .joint_begin = cuda_joint_begin,
    .joint_batch = cuda_joint_batch,
    .joint_add = cuda_joint_add,
    .joint_row_size = cuda_joint_row_size,
    .joint_bytes = plan_joint_bytes,
    .normal_add = cuda_normal_add,
    .normal_decay = cuda_normal_decay,
    .normal_descend = cuda_normal_descend,
    .normal_energies = cuda_normal_energies,
    .normal_clear = cuda_normal_clear,
    .normal_bytes = cuda_normal_bytes,
    .triad_product = cuda_triad_product,
    .triad_gradient = cuda_triad_gradient,
    .triad_product_bytes = cuda_triad_product_bytes,
    .triad_gradient_bytes = cuda_triad_gradient_bytes,
    .triad_sparse = cuda_triad_sparse,
    .triad_dots = cuda_triad_dots,
    .adam = cuda_adam,
    .tensor_peak = cuda_tensor_peak,
    .tensor_product = cuda_tensor_product,
    .tensor_gradient = cuda_tensor_gradient,
    .tensor_product_bytes = cuda_tensor_product_bytes,
    .tensor_gradient_bytes = cuda_tensor_gradient_bytes,
    .train_codes = cuda_train_codes,
    .train_codes_bytes = cuda_train_codes_bytes,
    .train_scores = cuda_train_scores,
    .train_count = cuda_train_count,
    .train_cut = cuda_train_cut,
    .train_batch_bytes = cuda_train_batch_bytes,
    .train_raise = cuda_train_raise,
    .train_blocks = cuda_train_blocks,
    .train_suffix = cuda_train_suffix,
    .train_block_get = cuda_train_block_get,
    .train_offset = cuda_train_offset,
    .train_sums = cuda_train_sums,
    .train_errors = cuda_train_errors,
    .train_scale = cuda_train_scale,
    .train_transpose_bytes = cuda_train_transpose_bytes,
    .train_transpose = cuda_train_transpose,
    .train_idle = cuda_train_idle,
    .train_tangent = cuda_train_tangent,
    .train_normalize = cuda_train_normalize,
    .steps = cuda_steps,
    .steps_index = cuda_steps_index,
    .steps_conflicts = cuda_steps_conflicts,
    .steps_residual = cuda_steps_residual,
    .steps_bytes = cuda_steps_bytes,
    .attend_open = cuda_attend_open,
    .attend_close = cuda_attend_close,
    .attend_run = cuda_attend_run,
    .attend_attribute = cuda_attend_attribute,
    .mixer_open = cuda_mixer_open,
    .mixer_close = cuda_mixer_close,
    .mixer_run = cuda_mixer_run,
    .arrow = cuda_arrow,
    .arrow_ready = cuda_arrow_ready,
    .arrow_bytes = plan_arrow_bytes,
    .copy_rate = cuda_copy_rate,
    .peak = cuda_peak,
};
