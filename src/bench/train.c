/* SPDX-License-Identifier: BSD-3-Clause
 * Times training steps and their parts on one batch of random rows in memory.  Prints medians. */
#include "bench/train.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/num.h"
#include "base/rng.h"
#include "base/status.h"
#include "bench/peer.h"
#include "comm/buffers.h"
#include "train/step.h"
#include "train/train.h"

enum { MAX_REPEATS = 1000, WARM = 2 };

static const struct {
  enum train_phase phase;
  const char *name;
} parts[] = {{TRAIN_SCORES, "scores"},
             {TRAIN_CODES, "codes"},
             {TRAIN_GRADIENT, "gradient"},
             {TRAIN_MOVE, "move"},
             {TRAIN_SHARE, "share"}};
enum { PARTS = LENGTH(parts) };

struct bench {
  const struct bench_route_options *o;
  const struct bench_common *common;
  struct train_sizes sizes;
  struct device device;
  struct train_state state;
  struct stepper stepper;
  struct phase phases[TRAIN_PHASES];
  gidx steps;                             /* steps done so far */
  double seconds[PARTS + 1][MAX_REPEATS]; /* seconds[PARTS]: of the whole step */
  struct arena arena;
};

/* Draw the batch, and copy it to the device. */
static int rows_draw(struct bench *b)
{
  struct buffer *to = &b->stepper.x, rows = {0};
  gidx unit = b->o->columns * (gidx)sizeof(float);
  int status = buffer_alloc(&b->device, &rows, to->bytes);
  float *x = rows.host;
  for (gidx i = 0; !status && i < (gidx)b->o->n_rows * b->o->columns; i++)
    x[i] = (float)random_normal(1, 3, (uint64_t)i);
  if (!status) status = device_put(&b->device, &rows, 0, to->bytes);
  struct gather_job job = {&rows, NULL, b->o->n_rows, unit, to, 0};
  if (!status) status = device_gather(&b->device, &job);
  buffer_free(&b->device, &rows);
  return status;
}

static int problem_open(struct bench *b, struct comm *c)
{
  const struct bench_route_options *o = b->o;
  b->sizes = (struct train_sizes){
      .k = o->atoms, .p = o->columns, .s = o->top_s, .aux = 256, .aux_weight = 0.03125};
  b->sizes.dead_rows = (gidx)1 << 40;
  b->stepper = (struct stepper){.sizes = &b->sizes,
                                .c = c,
                                .device = &b->device,
                                .state = &b->state,
                                .phases = b->phases,
                                .batch = o->n_rows,
                                .precision = precision_of(o->precision)};
  TRY(train_state_alloc(&b->state, &b->arena, o->atoms, o->columns));
  train_atoms_draw(b->state.w[TRAIN_DECODER], o->atoms, o->columns, 1);
  train_start(&b->state, o->atoms, o->columns, b->state.w[TRAIN_DECODER]);
  TRY(stepper_open(&b->stepper));
  TRY(rows_draw(b));
  return stepper_begin(&b->stepper);
}

static int repeat_run(struct bench *b, struct comm *c, int turn, gidx t)
{
  double before[PARTS], begun;
  for (int i = 0; i < PARTS; i++) before[i] = b->phases[parts[i].phase].seconds;
  TRY(comm_agree(c, OK)); /* all ranks begin together */
  begun = log_seconds();
  TRY(stepper_run(&b->stepper, b->o->n_rows, 1e-4, t));
  b->seconds[PARTS][turn] = log_seconds() - begun;
  for (int i = 0; i < PARTS; i++)
    b->seconds[i][turn] = b->phases[parts[i].phase].seconds - before[i];
  return OK;
}

static void line_print(struct bench *b, int which)
{
  struct json *j = b->common->json;
  const char *name = which < PARTS ? parts[which].name : "step";
  double middle = median(b->seconds[which], b->common->repeats);
  if (j) {
    json_object(j, NULL);
    json_text(j, "name", name);
    json_real(j, "seconds", middle);
    json_real(j, "rows_per_second", b->o->n_rows / middle);
    json_end(j);
    return;
  }
  printf("%-10s %10.3f %12.0f\n", name, 1e3 * middle, b->o->n_rows / middle);
}

static void table_print(struct bench *b, int ranks)
{
  const struct bench_route_options *o = b->o;
  struct json *j = b->common->json;
  if (j) {
    json_long(j, "rows", o->n_rows);
    json_long(j, "columns", o->columns);
    json_long(j, "atoms", o->atoms);
    json_long(j, "top_s", o->top_s);
    json_long(j, "ranks", ranks);
    json_text(j, "precision", o->precision);
    json_text(j, "variant", b->device.variant);
    json_array(j, "lines");
  } else {
    printf("%d rows of %d columns, %d of %d atoms a row, precision=%s ranks=%d threads=%d "
           "variant=%s, medians of %d steps\n",
           o->n_rows, o->columns, o->top_s, o->atoms, o->precision, ranks, b->common->threads,
           b->device.variant, b->common->repeats);
    printf("%-10s %10s %12s\n", "", "ms", "rows/s");
  }
  for (int which = 0; which <= PARTS; which++) line_print(b, which);
  if (j) json_end(j);
}

static struct bench bench; /* between bench_train_begin() and bench_train_end() */

int bench_train_begin(const struct bench_route_options *o, const struct bench_common *common,
                      struct comm *c)
{
  struct bench *b = &bench;
  *b = (struct bench){.o = o, .common = common};
  struct device_options options = bench_device(common, o->columns, c->local_rank);
  int status = device_open(&b->device, &options);
  if (!status) status = problem_open(b, c);
  TRY(comm_agree(c, status));
  return comm_devices_open(c, c, &b->device, stepper_message(&b->stepper));
}

int bench_train_step(double *scores)
{
  struct bench *b = &bench;
  struct phase *phase = &b->phases[TRAIN_SCORES];
  double before = phase->seconds, begun = log_seconds();
  TRY(stepper_run(&b->stepper, b->o->n_rows, 1e-4, ++b->steps));
  *scores = (phase->seconds - before) / (log_seconds() - begun);
  return OK;
}

void bench_train_end(struct comm *c)
{
  struct bench *b = &bench;
  stepper_close(&b->stepper);
  comm_devices_close(c);
  device_close(&b->device);
  arena_free(&b->arena);
}

int bench_train(const struct bench_route_options *o, const struct bench_common *common,
                struct comm *c)
{
  struct bench *b = &bench;
  TRY(bench_train_begin(o, common, c));
  while (b->steps < WARM) TRY(repeat_run(b, c, 0, ++b->steps)); /* may compile kernels */
  for (int r = 0; r < common->repeats; r++) TRY(repeat_run(b, c, r, ++b->steps));
  if (c->rank == 0) table_print(b, c->size);
  bench_train_end(c);
  return OK;
}
