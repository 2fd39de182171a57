/* SPDX-License-Identifier: BSD-3-Clause
 * Dry allocations only count bytes.  A training makes them first, and then the real ones; a
 * forecast makes only dry ones. */
#include "train/forecast.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/num.h"
#include "base/status.h"
#include "device/tensor.h"
#include "device/triad.h"
#include "model/advice.h"
#include "refit/layout.h"
#include "train/train_impl.h"

/* Set the numbers that follow from the task. */
static int sizes_find(struct train *j)
{
  const struct train_task *t = j->task;
  TRY(train_rows_split(t, &j->split, &j->fitted, &j->held));
  j->steps_each = ceil_div(j->fitted.n, t->batch);
  j->steps = t->steps ? t->steps : t->epochs * j->steps_each;
  j->every = t->every ? t->every : j->steps_each;
  j->sizes = t->sizes;
  j->sizes.p = t->rows->p;
  j->sizes.s = (idx)imin(t->sizes.s, t->sizes.k);
  if (j->c->rank == 0 && j->sizes.s < t->sizes.s && !(t->sizes.l0 > 0))
    log_warn_named("top-s", "top-s is %d, there are %d atoms: each row gets %d", t->sizes.s,
                   t->sizes.k, t->sizes.k);
  advice_rows(j->fitted.n, t->sizes.k);
  if (!j->sizes.dead_rows) j->sizes.dead_rows = j->fitted.n;
  j->result->steps_each = j->steps_each;
  j->result->fitted_rows = j->fitted.n;
  j->result->held_out_rows = j->held.n;
  j->result->top_s = j->sizes.s;
  CHECK(!t->start || t->start->step <= j->steps, ERR_INPUT,
        "%lld steps are done, and this run has %lld: raise --epochs or --steps to at least those "
        "done",
        (long long)t->start->step, (long long)j->steps);
  return OK;
}

/* Allocate all arrays; a dry arena only counts them. */
static int arrays_alloc(struct train *j)
{
  const struct train_task *t = j->task;
  struct arena *a = &j->arena;
  idx k = j->sizes.k, p = j->sizes.p;
  TRY(train_state_alloc(&j->state, a, k, p));
  TRY(arena_alloc(a, &j->mean, p, sizeof *j->mean));
  TRY(arena_alloc(a, &j->described, p, sizeof *j->described));
  TRY(arena_alloc(a, &j->lines, j->steps / j->every + 3, sizeof *j->lines));
  j->batches.c = j->c;
  j->batches.rows = &j->fitted;
  j->batches.last_epoch = imax(j->steps - 1, 0) / j->steps_each;
  j->batches.last_row =
      imin((imax(j->steps - 1, 0) % j->steps_each + 1) * t->batch, j->fitted.n) - 1;
  TRY(batches_alloc(&j->batches, a, t->seed));
  j->validation =
      (struct train_validation){.c = j->c,
                                .rows = &j->held,
                                .k = k,
                                .p = p,
                                .s = j->sizes.l0 > 0 ? (idx)ceil(j->sizes.l0) : j->sizes.s,
                                .has_threshold = j->sizes.l0 > 0,
                                .threads = t->threads,
                                .variant = t->variant,
                                .kernels = t->kernels};
  TRY(train_validation_alloc(&j->validation, a));
  return OK;
}

static struct stepper stepper_of(struct train *j, struct device *device)
{
  return (struct stepper){.sizes = &j->sizes,
                          .c = j->c,
                          .device = device,
                          .state = &j->state,
                          .phases = j->result->phases,
                          .stops = &j->sink->stops,
                          .batch = j->task->batch,
                          .precision = j->task->precision};
}

static struct device_options device_options_of(const struct train *j, const char *kind)
{
  const struct train_task *t = j->task;
  double rows = (double)j->steps * t->batch;
  return (struct device_options){.p = j->sizes.p,
                                 .d = 1,
                                 .threads = t->threads,
                                 .variant = t->variant,
                                 .kind = kind,
                                 .work = rows * j->sizes.k * j->sizes.p,
                                 .local_rank = j->c->local_rank,
                                 .kernels = t->kernels};
}

/* The memory of the steps and of their pools of rows, on a device of this kind. */
static int stepper_count(struct train *j, const char *kind, gidx *host, gidx *gpu)
{
  struct device dry;
  struct device_options options = device_options_of(j, kind);
  struct stepper s = stepper_of(j, &dry);
  struct batches batches = {.rows = &j->fitted};
  device_open_dry(&dry, &options, host);
  TRY(batches_buffers(&batches, &dry));
  int status = stepper_open(&s);
  stepper_bytes(&s, host, gpu);
  arena_free(&s.arena);
  return status;
}

/* The memory of the whole training on a device of this kind. */
static int memory_count(struct train *j, const char *kind, struct train_memory *m)
{
  const struct train_task *t = j->task;
  struct train_state state;
  struct arena weights = {.is_dry = 1};
  j->arena = (struct arena){.is_dry = 1};
  TRY(arrays_alloc(j));
  TRY(train_state_alloc(&state, &weights, j->sizes.k, j->sizes.p));
  TRY(stepper_count(j, kind, &m->steps, &m->gpu));
  m->weights = (gidx)weights.bytes;
  m->rows = (gidx)j->arena.bytes - m->weights;
  m->steps += cpu_triad_bytes(t->threads, j->sizes.p);
  m->evaluate = train_validation_beside(&j->validation, kind);
  m->beside = t->beside;
  m->total = memory_program() + m->weights + m->rows + m->steps + m->evaluate + m->beside;
  j->arena = (struct arena){0};
  return OK;
}

static int memory_check(struct train *j)
{
  struct train_memory m;
  gidx present = memory_per_process(j->c->local_size);
  TRY(memory_count(j, j->device.kind, &m));
  gidx bytes = m.total - memory_program();
  CHECK(bytes <= present, ERR_MEMORY,
        "training takes %.1f MB per rank, and %.1f MB are left: lower --atoms or --batch, or use "
        "fewer ranks per machine",
        1e-6 * (double)bytes, 1e-6 * (double)present);
  return OK;
}

/* The kind of device that is wanted.  Only GPUs have matrix units, so with a precision other than
 * f32 `auto` means a GPU. */
static const char *kind_of(const struct train_task *t)
{
  int is_auto = strcmp(t->device, "auto") == 0;
  return is_auto && t->precision != PRECISION_F32 ? "cuda" : t->device;
}

/* Open the device.  If `auto` chose a GPU and the steps do not fit there, open the CPU. */
static int device_start(struct train *j)
{
  const struct train_task *t = j->task;
  int is_auto = strcmp(kind_of(t), "auto") == 0;
  struct device_options options = device_options_of(j, kind_of(t));
  gidx host, gpu, free;
  TRY(device_open(&j->device, &options));
  if (t->precision != PRECISION_F32) TRY(device_tensor_has(&j->device, t->precision));
  if (!device_is_gpu(&j->device)) return OK;
  TRY(stepper_count(j, "cuda", &host, &gpu));
  TRY(buffer_bytes_available(&j->device, &free));
  if (gpu <= free) return OK;
  CHECK(is_auto, ERR_MEMORY,
        "the steps need %.1f MB of a GPU, and %.1f MB are free: lower --atoms or --batch, or use "
        "more ranks with a GPU each, or --device cpu",
        1e-6 * (double)gpu, 1e-6 * (double)free);
  log_info("no GPU is used: the steps need %.1f MB on it, and %.1f MB are free", 1e-6 * (double)gpu,
           1e-6 * (double)free);
  device_close(&j->device);
  options.kind = "cpu";
  return device_open(&j->device, &options);
}

int train_arrays_open(struct train *j)
{
  TRY(sizes_find(j));
  TRY(device_start(j));
  TRY(memory_check(j));
  TRY(arrays_alloc(j));
  TRY(batches_open(&j->batches));
  TRY(batches_buffers(&j->batches, &j->device));
  j->stepper = stepper_of(j, &j->device);
  snprintf(j->result->device, sizeof j->result->device, "%s %s", j->device.kind, j->device.variant);
  return stepper_open(&j->stepper);
}

static int find(struct train *j, struct train_forecast *f)
{
  const struct train_task *t = j->task;
  struct device dry;
  gidx forms;
  TRY(sizes_find(j));
  const char *kind = kind_of(t);
  if (device_lacks_gpu(kind, j->c->local_rank)) kind = "cpu";
  struct device_options options = device_options_of(j, kind);
  device_open_dry(&dry, &options, &forms);
  *f = (struct train_forecast){.fitted = j->fitted.n,
                               .held = j->held.n,
                               .steps = j->steps,
                               .every = j->every,
                               .scores = options.work};
  return memory_count(j, dry.kind, &f->m);
}

int train_forecast(const struct train_task *task, struct comm *c, struct train_forecast *f)
{
  struct train *j;
  struct train_result none = {0};
  const struct train_sink nobody = {0};
  TRY(struct_alloc(&j, sizeof *j));
  j->task = task;
  j->c = c;
  j->sink = &nobody;
  j->result = &none;
  TRY(find(j, f));
  split_free(&j->split);
  free(j);
  return OK;
}
