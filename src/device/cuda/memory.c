/* SPDX-License-Identifier: BSD-3-Clause
 * The plan counts on memory that is not allocated yet.  cuda_bytes_available() leaves it out, so
 * buffer_wrap_spare() never takes it. */
#include "device/cuda/memory.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/num.h"
#include "base/status.h"
#include "device/cuda/load.h"

/* Report how much was asked for and how much there is. */
static int memory_fail(const struct cuda_state *s, gidx bytes, const char *file, int line)
{
  size_t left = 0, all = 0;
  cudaGetLastError();
  cudaMemGetInfo(&left, &all);
  return status_fail(ERR_MEMORY, file, line,
                     "cannot allocate %.1f MB on GPU %d: %.1f of its %.1f MB are free",
                     1e-6 * (double)bytes, s->number, 1e-6 * (double)left, 1e-6 * (double)all);
}

static int memory_alloc(const struct cuda_state *s, void **at, gidx bytes)
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
  TRY(memory_alloc(s, &w->at, bytes));
  w->bytes = bytes;
  return OK;
}

void cuda_release(struct cuda_work *w)
{
  if (w->at) cudaFree(w->at);
  *w = (struct cuda_work){0};
}

/* *bytes <- the free bytes without a reserve, which is a fraction of all memory.  The reserve is
 * for buffers that jobs allocate later, such as tables of fetched atoms. */
static int bytes_free(const struct cuda_state *s, gidx *bytes)
{
  enum { KEPT = 32 };
  size_t left = 0, all = 0;
  TRY_CU(cudaSetDevice(s->number));
  TRY_CU(cudaMemGetInfo(&left, &all));
  *bytes = (gidx)left - (gidx)(all / KEPT);
  return OK;
}

/* Bytes of the plan that are not allocated yet. */
static gidx bytes_outstanding(const struct cuda_state *s)
{
  gidx held = 0;
  for (int i = 0; i < CUDA_WORKS; i++)
    if (&s->works[i] != &s->work.names && &s->works[i] != &s->work.scaled &&
        &s->works[i] != &s->work.triad)
      held += s->works[i].bytes;
  return imax(s->plan.total - held, 0);
}

/* Log what the plan had to leave out. */
static void plan_say(const struct cuda_state *s)
{
  const struct cuda_plan *plan = &s->plan;
  if (s->screen.is_on && !plan->screen)
    log_rank("memory of GPU %d is short: no certified filter", s->number);
  if (plan->window < s->sizes.max_atoms)
    log_rank("memory of GPU %d is short: it takes %d atoms at a time", s->number, plan->window);
  if (plan->rows_cut && s->sizes.route_rows)
    log_rank("memory of GPU %d is short: it takes %d rows at a time", s->number, plan->rows);
  if (plan->codes_cut)
    log_rank("memory of GPU %d is short: it solves codes of %d rows at a time", s->number,
             plan->codes_rows);
}

static int plan_within(struct device *dev, gidx bytes)
{
  struct cuda_state *s = dev->state;
  const struct cuda_screen *f = &s->screen;
  s->sizes.filter = !f->is_on         ? PLAN_FILTER_OFF
                    : f->is_automatic ? PLAN_FILTER_AUTOMATIC
                                      : PLAN_FILTER_WANTED;
  TRY(plan_make(&s->sizes, bytes, &s->plan));
  plan_say(s);
  s->screen.is_on = s->plan.screen;
  return OK;
}

int cuda_plan(struct device *dev)
{
  gidx bytes;
  TRY(bytes_free(dev->state, &bytes));
  return plan_within(dev, bytes);
}

static void works_release(struct cuda_state *s)
{
  for (int i = 0; i < CUDA_WORKS; i++) cuda_release(&s->works[i]);
  s->tile = s->window_first = s->window_filled = s->screen.filled = 0;
}

/* Free all planned memory and make a new plan.  From the second time on, the new plan gets at most
 * half of the bytes of the last one, so that this ends even if the reported free memory is
 * wrong. */
static int plan_again(struct device *dev, gidx others)
{
  struct cuda_state *s = dev->state;
  gidx bytes, limit = s->shortages++ ? s->plan.total / 2 : INT64_MAX;
  char why[512];
  status_take(why, sizeof why);
  works_release(s);
  TRY(bytes_free(s, &bytes));
  int status = plan_within(dev, imin(bytes - others, limit));
  if (status != ERR_MEMORY) return status;
  char again[512];
  status_take(again, sizeof again);
  FAIL(ERR_MEMORY, "%s; %s", why, again);
}

int cuda_replan(struct device *dev, gidx others, int *status)
{
  const struct cuda_state *s = dev->state;
  if (*status != ERR_MEMORY || s->plan.window == 0) return 0;
  *status = plan_again(dev, others);
  return !*status;
}

void cuda_screen_stop(struct cuda_state *s)
{
  struct cuda_work *const works[] = {&s->work.frames, &s->work.f16, &s->work.norms,
                                     &s->work.screen_rows, &s->work.screen};
  for (int i = 0; i < LENGTH(works); i++) cuda_release(works[i]);
  s->screen.is_on = s->screen.filled = 0;
  if (s->plan.window) plan_drop_filter(&s->sizes, &s->plan);
}

int cuda_buffer_wrap(struct device *dev, struct buffer *b)
{
  struct cuda_state *s = dev->state;
  int status;
  do status = memory_alloc(s, &b->device, b->bytes);
  while (cuda_replan(dev, b->bytes, &status));
  TRY(status);
  TRY_CU(cudaMemsetAsync(b->device, 0, (size_t)b->bytes, s->stream));
  return cuda_finish(s);
}

int cuda_bytes_available(struct device *dev, gidx *bytes)
{
  const struct cuda_state *s = dev->state;
  TRY(bytes_free(s, bytes));
  *bytes -= bytes_outstanding(s);
  return OK;
}

int cuda_buffer_wrap_spare(struct device *dev, struct buffer *b)
{
  struct cuda_state *s = dev->state;
  gidx spare;
  TRY(cuda_bytes_available(dev, &spare));
  if (b->bytes > spare) return memory_fail(s, b->bytes, __FILE__, __LINE__);
  return memory_alloc(s, &b->device, b->bytes);
}

int cuda_buffer_alloc(struct device *dev, struct buffer *b)
{
  struct cuda_state *s = dev->state;
  TRY_CU(cudaSetDevice(s->number));
  cudaError_t error = cudaHostAlloc(&b->host, (size_t)b->bytes, cudaHostAllocDefault);
  CHECK(!error, ERR_MEMORY, "cannot allocate %.1f MB of page-locked memory: %s",
        1e-6 * (double)b->bytes, cudaGetErrorString(error));
  memset(b->host, 0, (size_t)b->bytes);
  return cuda_buffer_wrap(dev, b);
}

void cuda_buffer_free(struct device *dev, struct buffer *b)
{
  (void)dev;
  if (b->device) cudaFree(b->device);
  if (b->owned && b->host) cudaFreeHost(b->host);
}

/* Threads that read files pin their buffers, so several may do so at once. */
static pthread_mutex_t pins_lock = PTHREAD_MUTEX_INITIALIZER;

static void pin_add(struct cuda_state *s, struct cuda_pin pin)
{
  pthread_mutex_lock(&pins_lock);
  if (s->n_pins < CUDA_PINS) s->pins[s->n_pins++] = pin;
  pthread_mutex_unlock(&pins_lock);
}

void cuda_pin(struct device *dev, void *host, gidx bytes)
{
  struct cuda_state *s = dev->state;
  void *device;
  cudaSetDevice(s->number); /* CUDA's setting is per thread */
  if (cudaHostRegister(host, (size_t)bytes, cudaHostRegisterMapped)) {
    cudaGetLastError();
    return;
  }
  if (cudaHostGetDevicePointer(&device, host, 0))
    cudaGetLastError();
  else
    pin_add(s, (struct cuda_pin){host, device, bytes}); /* a full list keeps no address */
}

void cuda_unpin(struct device *dev, void *host)
{
  struct cuda_state *s = dev->state;
  pthread_mutex_lock(&pins_lock);
  for (int i = 0; i < s->n_pins; i++)
    if (s->pins[i].host == host) s->pins[i--] = s->pins[--s->n_pins];
  pthread_mutex_unlock(&pins_lock);
  if (cudaHostUnregister(host)) cudaGetLastError(); /* it had not been pinned */
}

const void *cuda_pinned(const struct cuda_state *s, const void *host, gidx bytes)
{
  const char *at = host, *found = NULL;
  pthread_mutex_lock(&pins_lock);
  for (int i = 0; i < s->n_pins && !found; i++) {
    const struct cuda_pin *p = &s->pins[i];
    if (at >= p->host && at + bytes <= p->host + p->bytes) found = p->device + (at - p->host);
  }
  pthread_mutex_unlock(&pins_lock);
  return found;
}

int cuda_put(struct device *dev, const struct buffer *b, gidx at, gidx bytes)
{
  struct cuda_state *s = dev->state;
  TRY_CU(cudaSetDevice(s->number)); /* CUDA's setting is per thread */
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

int cuda_clear(struct device *dev, const struct buffer *b, gidx at, gidx bytes)
{
  struct cuda_state *s = dev->state;
  TRY_CU(cudaMemsetAsync((char *)b->device + at, 0, (size_t)bytes, s->stream));
  return cuda_finish(s);
}

int cuda_gather(struct device *dev, const struct gather_job *job)
{
  struct cuda_state *s = dev->state;
  size_t names = (size_t)job->n * sizeof *job->names;
  struct gather_args a = {.in = job->from->device,
                          .out = (unsigned *)job->to->device + job->at * (job->unit / 4),
                          .count = job->n,
                          .words = job->unit / 4};
  if (job->names) {
    TRY(cuda_reserve(s, &s->work.names, (gidx)names));
    TRY_CU(cudaMemcpyAsync(s->work.names.at, job->names, names, cudaMemcpyHostToDevice, s->stream));
    a.names = s->work.names.at;
  }
  struct cuda_launch launch = {.name = KERNEL_GATHER, .arguments = &a};
  launch.grid = (dim3){(unsigned)(job->n < GATHER_BLOCKS ? job->n : GATHER_BLOCKS), 1, 1};
  launch.block = (dim3){GATHER_THREADS, 1, 1};
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
  for (int i = -1; i < COPIES && !status; i++) { /* the first copy is not measured */
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
