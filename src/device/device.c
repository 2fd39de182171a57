/* SPDX-License-Identifier: BSD-3-Clause
 * Choose and open a device, its memory, and facts about it.  Operations are in operations.c. */
#include "device/device.h"

#ifdef _OPENMP
#include <omp.h>
#endif
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "base/team.h"
#include "device/backend.h"

const char *const screen_stage_names[SCREEN_STAGES] = {
    "convert", "sample", "product", "prune", "rescore", "direct path", "dictionary"};

static struct device device_of(const struct backend *backend, const struct device_options *o)
{
  return (struct device){.backend = backend,
                         .kind = backend->kind,
                         .d = o->d,
                         .nonnegative = o->nonnegative,
                         .max_atoms = o->max_atoms};
}

static int open_as(struct device *dev, const struct backend *backend,
                   const struct device_options *options)
{
  *dev = device_of(backend, options);
  return backend->open(dev, options);
}

/* While a GPU computes, half of the threads are spare for two background loops at once
 * (base/team.h), since the main thread itself needs only one. */
static int prepare(struct device *dev, const struct device_options *options)
{
  team_spare_set((options->threads + 1) / 2);
  return dev->backend->prepare ? dev->backend->prepare(dev) : OK;
}

void device_cuda_library(char *text, size_t capacity)
{
  backend_cuda.library(text, capacity);
}

int device_open(struct device *dev, const struct device_options *o)
{
  const char *kind = o->kind ? o->kind : "cpu";
  *dev = (struct device){0};
  CHECK(o->p >= 1 && o->d >= 1 && o->threads >= 1 && o->max_atoms >= 0, ERR_INTERNAL,
        "a device cannot have %d columns, %d vectors a frame and %d threads", o->p, o->d,
        o->threads);
  if (!strcmp(kind, "cuda")) {
    TRY(open_as(dev, &backend_cuda, o));
    return prepare(dev, o);
  }
  if (!strcmp(kind, "auto") && o->work >= DEVICE_BREAK_EVEN) {
    int status = open_as(dev, &backend_cuda, o);
    if (!status)
      return prepare(dev, o); /* a failure from here on is an error, never a reason for the CPU */
    if (status != ERR_DEVICE) return status;
    log_debug("no GPU is used: %s", status_message());
    device_close(dev);
    status_clear();
  }
  return open_as(dev, &backend_cpu, o);
}

/* Do the kind and the work ask for a GPU, if there is one? */
static int wants_gpu(const struct device_options *o)
{
  const char *kind = o->kind ? o->kind : "cpu";
  return !strcmp(kind, "cuda") || (!strcmp(kind, "auto") && o->work >= DEVICE_BREAK_EVEN);
}

void device_warm(const struct device_options *o)
{
  if (wants_gpu(o) && backend_cuda.warm) backend_cuda.warm(o);
}

void device_open_dry(struct device *dev, const struct device_options *o, gidx *forms)
{
  *dev = device_of(wants_gpu(o) ? &backend_cuda : &backend_cpu, o);
  dev->is_dry = 1;
  *forms = 0;
  if (dev->backend->forms_bytes(o, forms)) {
    status_clear(); /* this processor lacks the variant: take the estimate for a GPU */
    if (backend_cuda.forms_bytes(o, forms)) status_clear();
  }
}

int device_memory(const struct device_options *o, int local_size, gidx *bytes)
{
  *bytes = INT64_MAX;
  return wants_gpu(o) && backend_cuda.memory ? backend_cuda.memory(o, local_size, bytes) : OK;
}

int device_lacks_gpu(const char *kind, int local_rank)
{
  const struct device_options gpu = {.kind = "cuda", .local_rank = local_rank};
  gidx bytes;
  if (strcmp(kind, "auto") != 0) return 0;
  if (device_memory(&gpu, 1, &bytes)) status_clear(); /* a GPU failed; device_open() reports it */
  return bytes == INT64_MAX;
}

void device_close(struct device *dev)
{
  if (dev->state) dev->backend->close(dev);
  *dev = (struct device){0};
}

/* Does this thread keep subnormal operands and results, in f32 and f64? */
static int keeps_subnormals(void)
{
  volatile float small = 0x1p-100f, tiny = 0x1p-30f;
  volatile real small_real = 0x1p-1000, tiny_real = 0x1p-60;
  volatile float product = small * tiny;
  volatile real product_real = small_real * tiny_real;
  volatile float back = product / tiny;
  volatile real back_real = product_real / tiny_real;
  return back == small && back_real == small_real;
}

int device_check_subnormals(int threads)
{
  int lost = 0;
#pragma omp parallel for num_threads(threads) schedule(static, 1) reduction(+ : lost)
  for (int t = 0; t < threads; t++) lost += !keeps_subnormals();
  CHECK(lost == 0, ERR_INTERNAL, "%d of %d threads flush subnormal numbers to zero", lost, threads);
  return OK;
}

static int thread_number(void)
{
#ifdef _OPENMP
  return omp_get_thread_num();
#else
  return 0;
#endif
}

/* The environment of the calling thread is set outside of the parallel region, because LLVM's
 * OpenMP restores this thread's environment when the region ends. */
void device_rounding_take(fenv_t *callers, int threads)
{
  fegetenv(callers);
  fesetenv(FE_DFL_ENV);
  for (int t = 1; t < threads; t++) fegetenv(callers + t); /* in case the team is smaller */
#pragma omp parallel num_threads(threads)
  if (thread_number()) {
    fegetenv(callers + thread_number());
    fesetenv(FE_DFL_ENV);
  }
}

void device_rounding_give(const fenv_t *callers, int threads)
{
#pragma omp parallel num_threads(threads)
  if (thread_number()) fesetenv(callers + thread_number());
  fesetenv(callers);
}

/* Add the bytes of a buffer to the plan; the flags say which sides it has.  Returns 1 if there is
 * nothing else to do, because the device is dry. */
static int is_counted(struct device *dev, const struct buffer *b, int has_host, int has_device)
{
  dev->planned_host += has_host ? b->bytes : 0;
  dev->planned_device += has_device ? b->bytes : 0;
  return dev->is_dry;
}

int buffer_alloc(struct device *dev, struct buffer *b, gidx bytes)
{
  *b = (struct buffer){.bytes = bytes > 0 ? bytes : 1, .owned = 1};
  return is_counted(dev, b, 1, 1) ? OK : dev->backend->alloc(dev, b);
}

int buffer_wrap_spare(struct device *dev, struct buffer *b, void *host, gidx bytes)
{
  *b = (struct buffer){.host = host, .bytes = bytes > 0 ? bytes : 1};
  return is_counted(dev, b, 0, 1) ? OK : dev->backend->wrap_spare(dev, b);
}

int buffer_alloc_device(struct device *dev, struct buffer *b, gidx bytes)
{
  *b = (struct buffer){.bytes = bytes > 0 ? bytes : 1, .owned = 1};
  return is_counted(dev, b, 0, 1) ? OK : dev->backend->alloc_device(dev, b);
}

int buffer_wrap(struct device *dev, struct buffer *b, void *host, gidx bytes)
{
  *b = (struct buffer){.host = host, .bytes = bytes > 0 ? bytes : 1};
  return is_counted(dev, b, 0, 1) ? OK : dev->backend->wrap(dev, b);
}

void buffer_free(struct device *dev, struct buffer *b)
{
  if (b->bytes && dev->backend && !dev->is_dry) dev->backend->free(dev, b);
  *b = (struct buffer){0};
}

static int range_check(const struct buffer *b, gidx at, gidx bytes)
{
  CHECK(at >= 0 && bytes >= 0 && at + bytes <= b->bytes, ERR_INTERNAL,
        "bytes %lld to %lld of a buffer of %lld", (long long)at, (long long)(at + bytes),
        (long long)b->bytes);
  return OK;
}

int device_put(struct device *dev, const struct buffer *b, gidx at, gidx bytes)
{
  TRY(range_check(b, at, bytes));
  return bytes ? dev->backend->put(dev, b, at, bytes) : OK;
}

int device_get(struct device *dev, const struct buffer *b, gidx at, gidx bytes)
{
  TRY(range_check(b, at, bytes));
  return bytes ? dev->backend->get(dev, b, at, bytes) : OK;
}

int device_clear(struct device *dev, const struct buffer *b, gidx at, gidx bytes)
{
  TRY(range_check(b, at, bytes));
  return bytes ? dev->backend->clear(dev, b, at, bytes) : OK;
}

int device_gather(struct device *dev, const struct gather_job *job)
{
  CHECK(job->unit > 0 && job->unit % 4 == 0, ERR_INTERNAL, "items of %lld bytes",
        (long long)job->unit);
  TRY(range_check(job->to, job->at * job->unit, job->n * job->unit));
  if (!job->names) TRY(range_check(job->from, 0, job->n * job->unit));
  return job->n ? dev->backend->gather(dev, job) : OK;
}

void host_pin(struct device *dev, void *host, gidx bytes)
{
  if (dev->backend->pin && !dev->is_dry) dev->backend->pin(dev, host, bytes);
}

void host_unpin(struct device *dev, void *host)
{
  if (dev->backend->unpin && !dev->is_dry) dev->backend->unpin(dev, host);
}

int buffer_bytes_available(struct device *dev, gidx *bytes)
{
  *bytes = INT64_MAX;
  return !dev->is_dry && dev->backend->bytes_available ? dev->backend->bytes_available(dev, bytes)
                                                       : OK;
}

int device_finish(struct device *dev)
{
  return dev->backend->finish ? dev->backend->finish(dev) : OK;
}

int device_follow(struct device *dev, void *stream)
{
  return dev->backend->follow ? dev->backend->follow(dev, stream) : OK;
}

int device_exchange(struct device *dev)
{
  return dev->backend->exchange ? dev->backend->exchange(dev) : OK;
}

int device_exchange_mark(struct device *dev, gidx turn)
{
  return dev->backend->exchange_mark ? dev->backend->exchange_mark(dev, turn) : OK;
}

int device_exchanged(struct device *dev, gidx turn, int *is_done)
{
  *is_done = 1;
  return dev->backend->exchanged ? dev->backend->exchanged(dev, turn, is_done) : OK;
}

int device_exchange_follow(struct device *dev, gidx turn)
{
  return dev->backend->exchange_follow ? dev->backend->exchange_follow(dev, turn) : OK;
}

double device_peak(const struct device *dev, double seconds)
{
  return dev->backend->peak(dev, seconds);
}

int device_copy_rate(struct device *dev, double *rate)
{
  *rate = 0;
  return dev->backend->copy_rate ? dev->backend->copy_rate(dev, rate) : OK;
}
