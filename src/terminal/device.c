/* SPDX-License-Identifier: BSD-3-Clause
 * The GPU memory of the pass is counted before a GPU is opened, and compared with its free memory.
 * A pass that does not fit ends before any work; with `auto` it uses the CPU instead. */
#include "terminal/device.h"

#include "base/log.h"
#include "base/status.h"

/* Multiply-adds on a GPU: the rows' parts of S, factor, inverse, covariance. */
static double work_of(const struct terminal_task *t, gidx border)
{
  double n = (double)border, vectors = (double)t->top_s * t->atoms->d;
  double width = vectors * t->directions;
  return 0.5 * n * n * n + 0.5 * (double)t->rows->n * (vectors + 1) * width * (width + 1);
}

static struct device_options options_of(const struct terminal_task *t, struct comm *c, gidx border)
{
  return (struct device_options){.p = t->atoms->p,
                                 .d = t->atoms->d,
                                 .threads = t->threads,
                                 .variant = t->variant,
                                 .kind = t->evidence == EVIDENCE_SLQ ? "cpu" : t->device,
                                 .work = work_of(t, border),
                                 .local_rank = c->local_rank,
                                 .kernels = t->kernels};
}

/* The memory that the pass would take with a GPU. */
static int gpu_memory(const struct terminal_task *t, struct comm *c, struct terminal_memory *m)
{
  struct device dry;
  struct device_options options = options_of(t, c, 0);
  gidx forms;
  options.kind = "cuda";
  device_open_dry(&dry, &options, &forms);
  return terminal_memory(t, c, &dry, m);
}

int terminal_device_dry(struct device *dev, const struct terminal_task *t, struct comm *c)
{
  struct terminal_memory m;
  gidx forms;
  TRY(gpu_memory(t, c, &m));
  struct device_options options = options_of(t, c, m.border);
  device_open_dry(dev, &options, &forms);
  return OK;
}

int terminal_device_open(struct device *dev, const struct terminal_task *t, struct comm *c)
{
  struct terminal_memory m;
  gidx free;
  TRY(gpu_memory(t, c, &m));
  struct device_options options = options_of(t, c, m.border);
  TRY(device_open(dev, &options));
  if (!device_is_gpu(dev)) return OK;
  TRY(buffer_bytes_available(dev, &free));
  if (m.gpu <= free) return OK;
  CHECK(strcmp(options.kind, "auto") == 0, ERR_MEMORY,
        "a border of %lld needs %lld bytes on the GPU of rank 0 (S %lld, factor %lld, rows and "
        "panels %lld), %lld bytes are free: use --device cpu or --evidence slq, which need none, "
        "or fewer --directions",
        (long long)m.border, (long long)m.gpu, (long long)m.gpu_schur, (long long)m.gpu_factor,
        (long long)m.gpu_rows, (long long)free);
  log_info("no GPU is used: a border of %lld needs %.1f MB on it, %.1f MB are free",
           (long long)m.border, 1e-6 * (double)m.gpu, 1e-6 * (double)free);
  device_close(dev);
  options.kind = "cpu";
  return device_open(dev, &options);
}
