/* SPDX-License-Identifier: BSD-3-Clause
 * Choosing a device, checking arguments, and passing each operation on to the device's table. */
#include "device/device.h"

#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "device/backend.h"

const char *const filter_stage_names[FILTER_STAGES] = {"convert", "sample",     "product",   "cut",
                                                       "chains",  "exact path", "dictionary"};

static int open_as(struct device *dev, const struct backend *backend,
                   const struct device_options *options)
{
  *dev =
      (struct device){.backend = backend, .kind = backend->kind, .atoms_most = options->atoms_most};
  return backend->open(dev, options);
}

static int prepare(struct device *dev)
{
  return dev->backend->prepare ? dev->backend->prepare(dev) : OK;
}

int device_open(struct device *dev, const struct device_options *o)
{
  const char *kind = o->kind ? o->kind : "cpu";
  *dev = (struct device){0};
  CHECK(o->p >= 1 && o->d >= 1 && o->threads >= 1 && o->atoms_most >= 0, ERR_INTERNAL,
        "device of %d columns, %d vectors a frame, %d threads", o->p, o->d, o->threads);
  if (!strcmp(kind, "cuda")) {
    TRY(open_as(dev, &backend_cuda, o));
    return prepare(dev);
  }
  if (!strcmp(kind, "auto") && o->work >= DEVICE_BREAK_EVEN) {
    int status = open_as(dev, &backend_cuda, o);
    if (!status) return prepare(dev); /* from here on a failure is no reason for a CPU */
    if (status != ERR_DEVICE) return status;
    log_debug("no GPU is used: %s", status_message());
    device_close(dev);
    status_clear();
  }
  return open_as(dev, &backend_cpu, o);
}

void device_close(struct device *dev)
{
  if (dev->state) dev->backend->close(dev);
  *dev = (struct device){0};
}

int device_check_fma(void)
{
  CHECK(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"), ERR_DEVICE,
        "this processor has no fused multiply-add (AVX2 and FMA): codes cannot be computed on it");
  return OK;
}

/* Does this thread keep subnormal operands and results, in both precisions? */
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

int device_take(struct device *dev, struct buffer *b, gidx bytes)
{
  *b = (struct buffer){.bytes = bytes > 0 ? bytes : 1, .owned = 1};
  return dev->backend->take(dev, b);
}

int device_spare(struct device *dev, struct buffer *b, void *host, gidx bytes)
{
  *b = (struct buffer){.host = host, .bytes = bytes > 0 ? bytes : 1};
  return dev->backend->spare(dev, b);
}

int device_hold(struct device *dev, struct buffer *b, gidx bytes)
{
  *b = (struct buffer){.bytes = bytes > 0 ? bytes : 1, .owned = 1};
  return dev->backend->hold(dev, b);
}

int device_wrap(struct device *dev, struct buffer *b, void *host, gidx bytes)
{
  *b = (struct buffer){.host = host, .bytes = bytes > 0 ? bytes : 1};
  return dev->backend->wrap(dev, b);
}

void device_drop(struct device *dev, struct buffer *b)
{
  if (b->bytes && dev->backend) dev->backend->drop(dev, b);
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

int device_pick(struct device *dev, const struct pick_job *job)
{
  CHECK(job->unit > 0 && job->unit % 4 == 0, ERR_INTERNAL, "items of %lld bytes",
        (long long)job->unit);
  TRY(range_check(job->to, job->at * job->unit, job->n * job->unit));
  if (!job->names) TRY(range_check(job->from, 0, job->n * job->unit));
  return job->n ? dev->backend->pick(dev, job) : OK;
}

int device_room(struct device *dev, gidx *bytes)
{
  *bytes = INT64_MAX;
  return dev->backend->room ? dev->backend->room(dev, bytes) : OK;
}

int device_idle(struct device *dev, int *idle)
{
  *idle = 1;
  return dev->backend->idle ? dev->backend->idle(dev, idle) : OK;
}

int device_put_tile(struct device *dev, const float *atoms, idx count, idx first)
{
  CHECK(count >= 0 && count <= dev->atoms_most - dev->atoms, ERR_INTERNAL,
        "%d atoms put beside %d, at most %d were expected", count, dev->atoms, dev->atoms_most);
  if (count == 0) return OK;
  TRY(dev->backend->put_tile(dev, atoms, count, first));
  dev->atoms += count;
  return OK;
}

int device_atoms(struct device *dev, struct buffer *view)
{
  *view = (struct buffer){0};
  return dev->backend->atoms ? dev->backend->atoms(dev, view) : OK;
}

int device_route(struct device *dev, struct route_job *job)
{
  job->bad = (struct bad_score){-1, -1};
  CHECK(job->take >= 1 && job->take <= TOP_S_MOST, ERR_INTERNAL, "%d entries a row, not 1 to %d",
        job->take, TOP_S_MOST);
  return job->n ? dev->backend->route(dev, job) : OK;
}

gidx codes_state(const struct device *dev, idx m_most, real rho)
{
  return dev->backend->codes_state(dev, m_most, rho);
}

int device_codes(struct device *dev, const struct codes_job *job)
{
  CHECK(job->state || job->m_old == 0, ERR_INTERNAL, "codes of %d old atoms without their state",
        job->m_old);
  return job->n ? dev->backend->codes(dev, job) : OK;
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
