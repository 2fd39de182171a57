/* SPDX-License-Identifier: BSD-3-Clause
 * Everything is allocated before any row is read.  First the same is done on a dry device and
 * arena, which only count memory. */
#include "find/open.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/num.h"
#include "base/status.h"
#include "device/triad.h"
#include "find/forecast.h"
#include "find/grow.h"
#include "find/judge.h"
#include "find/sums.h"
#include "refit/layout.h"

enum { L0_MOST = 100 };

struct find_recipe find_recipe(idx k, real l0)
{
  const struct found_encoder end = find_standard(1);
  return (struct find_recipe){.plan = {.k = k,
                                       .wide = 2,
                                       .l0 = l0,
                                       .each = 2,
                                       .last = 6,
                                       .joint = 2,
                                       .part = imax(16384, 64 * (gidx)k),
                                       .atom_rows = 64,
                                       .batch = 16384,
                                       .first_factor = 3,
                                       .end_factor = 1.1,
                                       .joint_factor = 1.6,
                                       .settled = 0.8},
                              .looks = 2,
                              .end_looks = end.looks,
                              .relative = end.relative,
                              .floor = end.floor,
                              .last_floor = 0.02,
                              .rho = 0.3,
                              .last_rho = 0.1,
                              .ridge = 1,
                              .last_ridge = 100,
                              .twin = 0.6,
                              .apart = 0.5};
}

real find_row_weight(const struct find_recipe *recipe, const struct find_step *step, real left,
                     real square)
{
  return find_weight(left, (step->is_last ? recipe->last_floor : recipe->floor) * square,
                     step->is_last);
}

real find_rho(const struct find_recipe *recipe, const struct find_step *step)
{
  return step->is_last ? recipe->last_rho : recipe->rho;
}

real find_ridge(const struct find_recipe *recipe, const struct find_step *step, gidx rows,
                real square)
{
  real ridge = step->is_last ? recipe->last_ridge * ((real)rows / 32768) : recipe->ridge;
  return find_unit(square, recipe->plan.l0) * ridge;
}

/* Split the rows into fitted and held-out rows. */
static int rows_split(const struct find_task *t, struct row_split *split, struct row_source *fitted,
                      struct row_source *held)
{
  const struct split_task task = {t->rows, t->held, t->held_out_fraction, FIND_HELD_MOST, t->seed};
  const struct find_plan *plan = &t->recipe.plan;
  TRY(split_open(split, &task, fitted, held));
  CHECK(fitted->n >= plan->k, ERR_INPUT,
        "'%s' has %lld rows to fit, fewer than %d atoms: lower --atoms, or give more rows",
        t->rows->name, (long long)fitted->n, plan->k);
  CHECK(plan->l0 <= plan->k, ERR_USAGE,
        "'--l0' is %.6g active atoms a row, but there are only %d atoms: lower it", plan->l0,
        plan->k);
  CHECK(plan->l0 <= L0_MOST, ERR_USAGE,
        "'--l0' is %.6g active atoms a row: give at most %d, because rows have more atoms, up to "
        "%d, while features are found",
        plan->l0, L0_MOST, ACTIVE_MOST);
  CHECK(plan->l0 * (real)fitted->n >= 1, ERR_USAGE,
        "'--l0' is %.6g active atoms a row, so that %lld rows would have none: raise it", plan->l0,
        (long long)fitted->n);
  return OK;
}

int find_task_check(const struct find_task *task)
{
  struct row_split split = {0};
  struct row_source fitted, held;
  TRY(rows_split(task, &split, &fitted, &held));
  split_free(&split);
  return OK;
}

static int sizes_find(struct finder *f)
{
  const struct find_task *t = f->task;
  struct find_plan *plan = &f->plan;
  TRY(rows_split(t, &f->split, &f->fitted, &f->judge.rows));
  f->result->fitted_rows = f->fitted.n;
  f->result->held_out_rows = f->judge.rows.n;
  f->p = t->rows->p;
  *plan = t->recipe.plan;
  plan->rows = f->fitted.n;
  plan->batch = (idx)imin(plan->batch, plan->rows);
  find_plan_fill(plan);
  f->widest = plan->grown;
  f->result->all = find_plan_updates(plan);
  return OK;
}

/* The largest number of entries that a batch can have. */
static gidx entries_most(const struct finder *f)
{
  const struct find_plan *plan = &f->plan;
  gidx most = imax(plan->grown, (gidx)plan->batch * imin(plan->grown, ACTIVE_MOST));
  for (gidx u = 0; u <= f->result->all; u++) {
    struct find_step step = find_plan_step(plan, u);
    most = imax(most, batch_most(fmax(step.l0, plan->l0), plan->batch));
  }
  return most;
}

static struct device_options options_of(const struct finder *f, const char *kind)
{
  const struct find_task *t = f->task;
  return (struct device_options){.p = f->p,
                                 .d = 1,
                                 .nonnegative = 1,
                                 .threads = t->threads,
                                 .variant = t->variant,
                                 .kind = kind,
                                 .work = (real)f->result->all * (real)f->plan.part * f->plan.grown *
                                         f->p,
                                 .local_rank = f->c->local_rank,
                                 .kernels = t->kernels};
}

static int device_start(struct finder *f)
{
  struct device_options options = options_of(f, f->task->device);
  return device_open(&f->device, &options);
}

static int vectors_alloc(struct finder *f)
{
  struct arena *a = &f->arena;
  gidx k = f->plan.grown, p = f->p, size = f->c->size;
  TRY(arena_alloc(a, &f->atoms, k * p, sizeof *f->atoms));
  TRY(arena_alloc(a, &f->before, k * p, sizeof *f->before));
  TRY(arena_alloc(a, &f->fresh, k * p, sizeof *f->fresh));
  TRY(arena_alloc(a, &f->means, k, sizeof *f->means));
  TRY(arena_alloc(a, &f->firing, k, sizeof *f->firing));
  TRY(arena_alloc(a, &f->ordered, k, sizeof *f->ordered));
  TRY(arena_alloc(a, &f->code_sums, k, sizeof *f->code_sums));
  TRY(arena_alloc(a, &f->order, k, sizeof *f->order));
  TRY(arena_alloc(a, &f->renew, k, sizeof *f->renew));
  TRY(arena_alloc(a, &f->wide, p, sizeof *f->wide));
  TRY(arena_alloc(a, &f->mean, p, sizeof *f->mean));
  TRY(arena_alloc(a, &f->described, p, sizeof *f->described));
  TRY(arena_alloc(a, &f->lines, f->result->all + 3, sizeof *f->lines));
  TRY(arena_alloc(a, &f->counts, size, sizeof *f->counts));
  return arena_alloc(a, &f->ties, size, sizeof *f->ties);
}

static int codes_alloc(struct finder *f)
{
  struct batch_codes *b = &f->codes;
  struct arena *a = &f->arena;
  gidx batch = imax(f->plan.batch, 2);
  b->most = entries_most(f);
  TRY(arena_alloc(a, &b->start, batch + 1, sizeof *b->start));
  TRY(arena_alloc(a, &b->lengths, batch, sizeof *b->lengths));
  TRY(arena_alloc(a, &b->index, b->most, sizeof *b->index));
  TRY(arena_alloc(a, &b->weight, batch, sizeof *b->weight));
  return arena_alloc(a, &b->code, b->most, sizeof *b->code);
}

/* Allocate all arrays and buffers, except the work space of dense operations. */
static int arrays_alloc(struct finder *f)
{
  gidx first, own, item = (gidx)sizeof(float);
  TRY(vectors_alloc(f));
  TRY(codes_alloc(f));
  comm_partition(f->plan.batch, f->c->size, 0, &first, &own);
  f->active = (struct active){.device = &f->device,
                              .most_k = f->plan.grown,
                              .p = f->p,
                              .most_n = (idx)imax(own, 2),
                              .entries = f->codes.most,
                              .threads = f->task->threads,
                              .relative = f->task->recipe.relative,
                              .is_nested = 1};
  f->active.arena.is_dry = f->arena.is_dry;
  TRY(active_open(&f->active));
  TRY(sums_open(f));
  TRY(grow_open(f));
  TRY(validation_alloc(f));
  TRY(buffer_alloc_device(&f->device, &f->x, (gidx)f->plan.batch * f->p * item));
  TRY(buffer_alloc(&f->device, &f->left, imax(imin(LEFT_ROWS, f->plan.batch), 2) * f->p * item));
  TRY(buffer_alloc(&f->device, &f->offset, f->p * item));
  TRY(buffer_alloc(&f->device, &f->squares, 2 * imax(own, 1) * (gidx)sizeof(real)));
  f->batches.c = f->c;
  f->batches.rows = &f->fitted;
  f->batches.last_epoch = INT64_MAX; /* batches may read one pool more than is needed */
  TRY(batches_alloc(&f->batches, &f->arena, f->task->seed));
  return batches_buffers(&f->batches, &f->device);
}

static idx dense_rows(const struct finder *f)
{
  return (idx)imax(f->p, f->widest);
}

/* Count the memory on a device of this kind; *gpu: GPU memory. */
static int memory_count(struct finder *f, const char *kind, gidx *bytes, gidx *gpu)
{
  const struct find_task *t = f->task;
  struct finder dry = {.task = t, .c = f->c, .result = f->result, .plan = f->plan};
  gidx forms;
  struct device_options options = options_of(f, kind);
  dry.fitted = f->fitted;
  dry.judge.rows = f->judge.rows;
  dry.p = f->p;
  dry.widest = f->widest;
  dry.arena.is_dry = 1;
  device_open_dry(&dry.device, &options, &forms);
  TRY(arrays_alloc(&dry));
  /* A CPU has all buffers in its memory; the buffer around held-out rows is counted with the
   * arena. */
  gidx of_cpu = dry.device.planned_device - dry.judge.all.bytes;
  int is_gpu = device_is_gpu(&dry.device);
  *bytes = (gidx)dry.arena.bytes + (gidx)dry.active.arena.bytes +
           (is_gpu ? dry.device.planned_host : of_cpu) +
           cpu_dense_bytes(t->threads, DENSE_MAX_PANEL, dense_rows(f)) +
           cpu_triad_bytes(t->threads, f->p) + t->beside;
  *gpu = is_gpu ? dry.device.planned_device : 0;
  return OK;
}

static int memory_check(struct finder *f)
{
  gidx bytes, gpu, present = memory_per_process(f->c->local_size);
  TRY(memory_count(f, f->device.kind, &bytes, &gpu));
  CHECK(bytes <= present, ERR_MEMORY,
        "finding takes %.1f MB per rank, and %.1f MB are left: lower --atoms, or use fewer ranks "
        "per machine",
        1e-6 * (double)bytes, 1e-6 * (double)present);
  return OK;
}

static int forecast_fill(struct finder *f, struct find_forecast *forecast)
{
  const char *kind = f->task->device;
  if (device_lacks_gpu(kind, f->c->local_rank)) kind = "cpu";
  struct device_options options = options_of(f, kind);
  struct device dry;
  gidx forms;
  device_open_dry(&dry, &options, &forms);
  *forecast = (struct find_forecast){.fitted = f->fitted.n,
                                     .held = f->judge.rows.n,
                                     .updates = f->result->all,
                                     .grown = f->plan.grown,
                                     .batch = f->plan.batch};
  for (gidx u = 0; u < forecast->updates; u++) {
    struct find_step step = find_plan_step(&f->plan, u);
    forecast->scores += (double)step.batches * f->plan.batch * step.k * f->p;
  }
  TRY(memory_count(f, dry.kind, &forecast->bytes, &forecast->gpu));
  forecast->bytes += memory_program();
  return OK;
}

int find_forecast(const struct find_task *task, struct comm *c, struct find_forecast *forecast)
{
  struct finder *f;
  struct find_result none = {0};
  TRY(struct_alloc(&f, sizeof *f));
  f->task = task;
  f->c = c;
  f->result = &none;
  TRY(sizes_find(f));
  TRY(forecast_fill(f, forecast));
  split_free(&f->split);
  free(f);
  return OK;
}

int finder_open(struct finder *f)
{
  TRY(sizes_find(f));
  TRY(device_start(f));
  TRY(memory_check(f));
  TRY(arrays_alloc(f));
  TRY(dense_open(&f->sums.dense, &f->device, DENSE_MAX_PANEL, dense_rows(f)));
  TRY(batches_open(&f->batches));
  snprintf(f->result->device, sizeof f->result->device, "%s %s", f->device.kind, f->device.variant);
  return OK;
}

void finder_close(struct finder *f)
{
  batches_close(&f->batches);
  validation_close(f);
  sums_close(f);
  grow_close(f);
  active_close(&f->active);
  buffer_free(&f->device, &f->x);
  buffer_free(&f->device, &f->left);
  buffer_free(&f->device, &f->offset);
  buffer_free(&f->device, &f->squares);
  device_close(&f->device);
  split_free(&f->split);
  arena_free(&f->arena);
}
