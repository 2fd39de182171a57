/* SPDX-License-Identifier: BSD-3-Clause
 * The loop over batches takes steps, and now and then evaluates the held-out rows. */
#include "train/train.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fingerprint.h"
#include "base/log.h"
#include "base/num.h"
#include "base/status.h"
#include "comm/buffers.h"
#include "device/tensor.h"
#include "device/train.h"
#include "seed/mean.h"
#include "train/train_impl.h"

int train_rows_split(const struct train_task *t, struct row_split *split, struct row_source *fitted,
                     struct row_source *held)
{
  const struct split_task task = {t->rows, t->held, t->held_out_fraction, TRAIN_HELD_MOST, t->seed};
  TRY(split_open(split, &task, fitted, held));
  CHECK(fitted->n >= t->batch, ERR_INPUT,
        "'%s' has %lld rows, of which %lld are held out: too few for batches of %d; lower --batch",
        t->rows->name, (long long)t->rows->n, (long long)(t->rows->n - fitted->n), t->batch);
  return OK;
}

/* Check l0: a row has at most K codes, and a batch has at least one. */
static int selection_check(const struct train_task *t)
{
  real l0 = t->sizes.l0;
  if (l0 == 0) return OK;
  CHECK(l0 <= t->sizes.k, ERR_USAGE, "'--l0' is %.6g codes a row, and there are %d atoms: lower it",
        l0, t->sizes.k);
  CHECK(l0 * t->batch >= 1, ERR_USAGE,
        "'--l0' is %.6g codes a row, so batches of %d rows would have none: raise one of them", l0,
        t->batch);
  return OK;
}

int train_task_check(const struct train_task *t)
{
  struct row_split split = {0};
  struct row_source fitted, held;
  TRY(selection_check(t));
  if (t->atoms) TRY(columns_check(t->rows, t->atoms));
  TRY(train_rows_split(t, &split, &fitted, &held));
  split_free(&split);
  return OK;
}

/* Set the mean: of the earlier run, of the given atoms or of the rows; NULL: rows are not
 * centred. */
static int mean_find(struct train *j)
{
  const struct train_task *t = j->task;
  const real *given = t->start ? t->start->mean : t->mean;
  size_t bytes = (size_t)j->sizes.p * sizeof *j->mean;
  if (given)
    memcpy(j->mean, given, bytes);
  else if (!t->atoms && !t->start && t->center)
    TRY(mean_compute_warned(j->c, &j->fitted, &j->sink->reading, j->mean, NULL));
  else
    j->mean = NULL;
  if (!j->sizes.learns_offset) j->described = j->mean;
  j->batches.mean = j->mean;
  return OK;
}

/* Set the atoms, given or drawn, and their encoder, given or tied to them. */
static int atoms_start(struct train *j)
{
  const struct train_task *t = j->task;
  float *atoms = j->state.w[TRAIN_DECODER];
  idx k = j->sizes.k, p = j->sizes.p;
  if (t->atoms) {
    TRY(t->atoms->read(t->atoms->self, 0, k, atoms));
    TRY(atoms_check(atoms, k, 1, p, 0, t->atoms->name));
  } else {
    train_atoms_draw(atoms, k, p, t->seed);
  }
  train_start(&j->state, k, p, atoms);
  if (!t->encoder) return OK;
  memcpy(j->state.w[TRAIN_ENCODER], t->encoder, (size_t)k * (size_t)p * sizeof *atoms);
  for (idx a = 0; a < k; a++) j->state.w[TRAIN_BIAS][a] = ldexpf(t->bias[a], j->batches.scale);
  if (j->sizes.l0 > 0)
    j->state.threshold = (struct batch_threshold){ldexpf(t->threshold, j->batches.scale), 1};
  return OK;
}

/* If matrix units make the scores, find how they add products.  All ranks' units must add in the
 * same way. */
static int unit_find(struct train *j)
{
  enum precision precision = j->task->precision;
  if (precision == PRECISION_F32) return OK;
  TRY(comm_agree(j->c, device_tensor_probe(&j->device, precision, &j->unit)));
  uint64_t first = j->unit;
  TRY(comm_broadcast(j->c, &first, 1, sizeof first));
  int alike = first == j->unit;
  return comm_agree(j->c, alike ? OK
                                : status_fail(ERR_DEVICE, __FILE__, __LINE__,
                                              "this rank's GPU adds products in %s in another way "
                                              "than that of rank 0: use GPUs of one kind, or "
                                              "'--precision f32'",
                                              precision_name(precision)));
}

/* Take over the point that an earlier run saved. */
static int start_take(struct train *j)
{
  const struct train_point *s = j->task->start;
  CHECK(s->rows_hash == j->rows_hash, ERR_INPUT,
        "the earlier run was begun with other rows than those of '%s': rows_hash %016llx, not "
        "%016llx; resume with the same rows",
        j->task->rows->name, (unsigned long long)s->rows_hash, (unsigned long long)j->rows_hash);
  CHECK(s->held_out_hash == j->validation.hash, ERR_INPUT,
        "the earlier run was judged by other rows than this one: held_out_hash %016llx, not "
        "%016llx; resume with the same held-out rows",
        (unsigned long long)s->held_out_hash, (unsigned long long)j->validation.hash);
  CHECK(s->unit == j->unit, ERR_DEVICE,
        "the GPU of the earlier run adds products in %s in another way: unit %016llx, not "
        "%016llx; resume on a GPU of the same kind",
        precision_name(j->task->precision), (unsigned long long)s->unit,
        (unsigned long long)j->unit);
  for (int i = 0; i < TRAIN_ARRAYS; i++) {
    size_t bytes = (size_t)train_numbers(j->sizes.k, j->sizes.p, i) * sizeof(float);
    memcpy(j->state.w[i], s->state->w[i], bytes);
    memcpy(j->state.m[i], s->state->m[i], bytes);
    memcpy(j->state.v[i], s->state->v[i], bytes);
  }
  for (int i = 0; i < LENGTH(j->state.offset); i++)
    memcpy(j->state.offset[i], s->state->offset[i], (size_t)j->sizes.p * sizeof(float));
  memcpy(j->state.idle, s->state->idle, (size_t)j->sizes.k * sizeof *j->state.idle);
  j->state.threshold = s->state->threshold;
  CHECK(j->sizes.l0 == 0 || s->step == 0 || j->state.threshold.weight > 0, ERR_INPUT,
        "the earlier run has no threshold after %lld steps", (long long)s->step);
  j->state.error = s->state->error;
  j->state.size = s->state->size;
  CHECK(s->count > 0 && s->count <= s->step / j->every + 1, ERR_INPUT,
        "the earlier run has %lld lines for %lld steps", (long long)s->count, (long long)s->step);
  memcpy(j->lines, s->lines, (size_t)s->count * sizeof *j->lines);
  j->count = s->count;
  j->step = s->step;
  j->batches.scale = s->scale;
  return OK;
}

/* Check that all weights are finite.  The error of a step does not always show it: a score that is
 * NaN is never a code. */
static int weights_check(const struct train *j)
{
  for (int i = 0; i < TRAIN_ARRAYS; i++) {
    gidx n = train_numbers(j->sizes.k, j->sizes.p, i);
    const float *w = j->state.w[i];
    for (gidx at = 0; at < n; at++)
      CHECK(isfinite(w[at]), ERR_INPUT,
            "weights are not finite after step %lld: a smaller '--lr' may help",
            (long long)j->step);
  }
  return OK;
}

/* described <- mean plus offset, as subtracted from rows that are not scaled.  The state's offset
 * is for scaled rows. */
static void offset_describe(struct train *j)
{
  for (idx c = 0; c < j->sizes.p && j->sizes.learns_offset; c++)
    j->described[c] =
        (j->mean ? j->mean[c] : 0) + ldexp((real)j->state.offset[0][c], -j->batches.scale);
}

/* Give the present point to the sink. */
static int point_show(struct train *j, enum train_reason why)
{
  offset_describe(j);
  const struct train_point point = {.step = j->step,
                                    .count = j->count,
                                    .lines = j->lines,
                                    .state = &j->state,
                                    .mean = j->mean,
                                    .described = j->described,
                                    .scale = j->batches.scale,
                                    .rows_hash = j->rows_hash,
                                    .held_out_hash = j->validation.hash,
                                    .unit = j->unit};
  struct phase *write = &j->result->phases[TRAIN_WRITE];
  TRY(comm_agree(j->c, weights_check(j)));
  if (why == TRAIN_STATE) TRY(stepper_gather(&j->stepper));
  if (why != TRAIN_LINE) batches_rest(&j->batches); /* files have one user at a time */
  phase_begin(write);
  TRY(j->sink->point(j->sink->self, &point, why));
  phase_end(write, 0);
  return OK;
}

/* Add a line about the last step. */
static int line_add(struct train *j)
{
  struct train_line *line = &j->lines[j->count++];
  struct train_state *s = &j->state;
  struct phase *judge = &j->result->phases[TRAIN_JUDGE];
  TRY(comm_agree(j->c, stepper_fetch(&j->stepper)));
  *line = (struct train_line){.step = j->step,
                              .fitted = s->size > 0 ? 1 - s->error / s->size : nan_canonical()};
  s->error = s->size = 0;
  for (idx a = 0; a < j->sizes.k; a++) line->dead += s->idle[a] >= j->sizes.dead_rows;
  phase_begin(judge);
  offset_describe(j);
  if (j->sizes.learns_offset && j->step > 0) {
    batches_rest(&j->batches);
    TRY(train_validation_read(&j->validation, j->described));
  }
  TRY(train_validation_run(&j->validation, s, j->batches.scale, &line->held));
  phase_end(judge, 0);
  line->l0 = j->validation.l0;
  line->seconds = log_seconds() - j->begun;
  return comm_broadcast(j->c, &line->seconds, 1, sizeof line->seconds);
}

static int step_run(struct train *j)
{
  const struct train_task *t = j->task;
  gidx epoch = j->step / j->steps_each, first = j->step % j->steps_each * t->batch;
  idx n = (idx)imin(t->batch, j->fitted.n - first);
  real rate = learning_rate_at(&t->rate, j->step, j->steps);
  struct phase *read = &j->result->phases[TRAIN_READ];
  phase_begin(read);
  TRY(batches_take(&j->batches, epoch, first, n, &j->stepper.x));
  phase_end(read, 0);
  TRY(stepper_run(&j->stepper, n, rate, j->step + 1));
  j->step++;
  return OK;
}

/* The number of rows that the first `steps` steps take; an epoch takes each row once. */
static gidx rows_taken(const struct train *j, gidx steps)
{
  gidx of_epoch = imin(steps % j->steps_each * j->task->batch, j->fitted.n);
  return steps / j->steps_each * j->fitted.n + of_epoch;
}

/* Is a line due at this step?  A run that stops here does not add the line, since evaluating
 * held-out rows may take long.  The run that resumes adds it. */
static int line_is_due(const struct train *j)
{
  int is_there = j->lines[j->count - 1].step == j->step;
  return !is_there && (j->step % j->every == 0 || j->step == j->steps);
}

static int state_save(struct train *j)
{
  TRY(comm_agree(j->c, stepper_fetch(&j->stepper)));
  return point_show(j, TRAIN_STATE);
}

static int steps_stop(struct train *j, uint64_t asked)
{
  const struct stops *stops = &j->sink->stops;
  j->result->stopped = 1;
  stops->stopped(stops->self, asked);
  return state_save(j);
}

static int steps_run(struct train *j)
{
  struct progress progress;
  uint64_t asked = j->step < j->steps ? stops_asked(&j->sink->stops) : 0;
  TRY(comm_agree_flags(j->c, OK, 0, &asked));
  progress_start(&progress, "train", "rows", rows_taken(j, j->steps));
  progress.before = rows_taken(j, j->step);
  while (j->step < j->steps) {
    if (asked & ~STOPS_SAVE) return steps_stop(j, asked & ~STOPS_SAVE);
    if (line_is_due(j)) {
      TRY(line_add(j));
      TRY(point_show(j, TRAIN_LINE));
    }
    if (asked & STOPS_SAVE) TRY(state_save(j));
    TRY(step_run(j));
    asked = j->stepper.asked;
    progress_show(&progress, rows_taken(j, j->step));
  }
  if (!line_is_due(j)) return OK;
  TRY(line_add(j));
  return point_show(j, TRAIN_END);
}

/* Read the rows; then set the state to the start, or to that of an earlier run. */
static int state_open(struct train *j)
{
  const struct train_task *t = j->task;
  TRY(unit_find(j));
  /* On a GPU this takes memory that the steps of all ranks have left free. */
  TRY(comm_agree(j->c, train_validation_open(&j->validation, j->device.kind)));
  j->result->phases[TRAIN_JUDGE].device = j->validation.device.kind;
  TRY(batches_hash(&j->batches, &j->rows_hash));
  TRY(mean_find(j));
  offset_describe(j);
  TRY(train_validation_read(&j->validation, j->described));
  if (!t->start) TRY(batches_scale(&j->batches, &j->batches.scale));
  int status = t->start ? start_take(j) : atoms_start(j);
  if (!status) status = stepper_begin(&j->stepper);
  TRY(comm_agree(j->c, status));
  if (t->start) return OK;
  TRY(line_add(j));
  return j->steps ? OK : point_show(j, TRAIN_END);
}

static const struct phase phase_names[TRAIN_PHASES] = {
    [TRAIN_START] = {.name = "start"},
    [TRAIN_READ] = {.name = "read"},
    [TRAIN_SCORES] = {"scores", .unit = "GMAC"},
    [TRAIN_CODES] = {.name = "codes"},
    [TRAIN_SHARE] = {.name = "share"},
    [TRAIN_GRADIENT] = {.name = "gradient"},
    [TRAIN_MOVE] = {.name = "move"},
    [TRAIN_JUDGE] = {.name = "judge"},
    [TRAIN_WRITE] = {.name = "write"},
};

int train_run(const struct train_task *task, struct comm *c, const struct train_sink *sink,
              struct train_result *result)
{
  struct train *j; /* on the heap: struct run of job/run.h says why */
  *result = (struct train_result){0};
  TRY(comm_agree(c, struct_alloc(&j, sizeof *j)));
  j->task = task;
  j->c = c;
  j->sink = sink;
  j->result = result;
  j->begun = log_seconds();
  memcpy(result->phases, phase_names, sizeof phase_names);
  phase_begin(&result->phases[TRAIN_START]);
  TRY(comm_agree(c, train_arrays_open(j)));
  TRY(comm_devices_open(c, c, &j->device, stepper_message(&j->stepper)));
  TRY(state_open(j));
  phase_end(&result->phases[TRAIN_START], 0);
  TRY(steps_run(j));
  result->steps = j->step;
  for (int i = 0; i < TRAIN_ARRAYS; i++)
    result->fingerprint +=
        (uint64_t)(2 * i + 1) *
        fingerprint(j->state.w[i], train_numbers(j->sizes.k, j->sizes.p, i), sizeof(float), 0);
  float threshold = batch_threshold_value(&j->state.threshold);
  if (j->sizes.learns_offset)
    result->fingerprint += 9 * fingerprint(j->state.offset[0], j->sizes.p, sizeof(float), 0);
  if (j->sizes.l0 > 0) result->fingerprint += 7 * fingerprint(&threshold, 1, sizeof threshold, 0);
  batches_close(&j->batches);
  train_validation_close(&j->validation);
  stepper_close(&j->stepper);
  comm_devices_close(c);
  device_close(&j->device);
  split_free(&j->split);
  arena_free(&j->arena);
  free(j);
  return OK;
}

struct encoder train_encoder(const struct train_point *at, const struct train_sizes *z, idx p,
                             idx top, float *bias, float *threshold)
{
  float least = ldexpf(batch_threshold_value(&at->state->threshold), -at->scale);
  for (idx a = 0; a < z->k; a++) {
    bias[a] = ldexpf(at->state->w[TRAIN_BIAS][a], -at->scale);
    threshold[a] = least;
  }
  return (struct encoder){.kind = z->l0 > 0 ? ENCODER_BATCHTOPK : ENCODER_TOPK,
                          .k = z->k,
                          .p = p,
                          .top = top,
                          .centered = 1,
                          .weights = at->state->w[TRAIN_ENCODER],
                          .bias = bias,
                          .threshold = z->l0 > 0 ? threshold : NULL};
}
