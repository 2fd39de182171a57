/* SPDX-License-Identifier: BSD-3-Clause
 * Batches overlap: while one is solved, the results of the previous one are written, and the next
 * one is read.  A batch whose systems are solved by their readers stays in the memory into which it
 * was read. */
#include "solve/solve.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fingerprint.h"
#include "base/log.h"
#include "base/status.h"
#include "base/team.h"
#include "comm/buffers.h"
#include "device/buffer.h"
#include "model/arrow_loss.h"
#include "solve/exchange.h"
#include "solve/layout.h"

/* Fill this rank's items: pointers to systems, and to where their steps are written.  Returns their
 * number.  In a batch that stays, each rank solves the systems that it read.  The systems of rank 0
 * are the first of the batch, so their steps go directly to the results. */
static gidx items_fill(struct solve *s, const struct systems_block *block,
                       struct batch_results *results)
{
  const struct systems_shape *shape = s->shape;
  const struct system_batch *b = &s->batch;
  gidx count = 0;
  int in_place = b->stays && s->c->rank == 0;
  real *from = s->recv, *to_t = in_place ? results->step_t : s->own_t;
  real *to_b = in_place ? results->step_b : s->own_b;
  for (gidx a = b->first; a < b->end; a++) {
    if (b->owner[a - b->first] != s->c->rank) continue;
    struct arrow_item *item = &s->items[count];
    struct systems_block alone = systems_block_at(shape, a, a + 1, from);
    *item = (struct arrow_item){0};
    s->mine[count++] = a;
    item->system = system_view(shape, b->stays ? block : &alone, a);
    item->step_t = to_t;
    item->step_b = to_b;
    if (!b->stays) from += systems_reals(shape, a, a + 1);
    to_t += shape->g[a + 1] - shape->g[a];
    to_b += shape->border[a + 1] - shape->border[a];
  }
  return count;
}

/* Keep the largest number of bits that a system lost, and the lowest system with this loss. */
static void lost_keep(struct solve_result *result, gidx bits, gidx a)
{
  if (bits < result->most_lost || (bits == result->most_lost && a >= result->most_lost_at)) return;
  result->most_lost = bits;
  result->most_lost_at = a;
}

/* In the fingerprint a number has a position: steps of rows come first, then steps of borders, then
 * log-determinants, each in the order of the systems. */
void solve_count(struct solve_result *result, const struct systems_shape *shape,
                 const struct solution_block *block)
{
  const gidx *g = shape->g, *border = shape->border;
  gidx beta = g[shape->count], log_dets = beta + border[shape->count], first = block->first;
  for (gidx a = first; a < first + block->count; a++) {
    const struct arrow_outcome *o = &block->outcomes[a - first];
    if (result->counts[o->status]++ == 0 || a < result->first[o->status]) {
      result->first[o->status] = a;
      result->first_offset[o->status] = o->failed_at;
    }
    result->mended += o->status == ARROW_OK && o->retries > 0;
    result->retries += o->retries;
    result->few += o->lost_bits > FEW_LOST;
    lost_keep(result, o->lost_bits, a);
    result->fingerprint += fingerprint(&o->log_det, 1, sizeof(real), log_dets + a);
  }
  gidx end = first + block->count;
  result->fingerprint +=
      fingerprint(block->step_t, g[end] - g[first], sizeof(real), g[first]) +
      fingerprint(block->step_b, border[end] - border[first], sizeof(real), beta + border[first]);
}

/* The earlier run solved the lower systems, so its first system of a status is the first of all. */
void solve_join(struct solve_result *result, const struct solve_result *before)
{
  for (int status = 0; status < ARROW_STATUSES; status++) {
    result->counts[status] += before->counts[status];
    if (before->counts[status] == 0) continue;
    result->first[status] = before->first[status];
    result->first_offset[status] = before->first_offset[status];
  }
  result->mended += before->mended;
  result->retries += before->retries;
  result->few += before->few;
  lost_keep(result, before->most_lost, before->most_lost_at);
  result->fingerprint += before->fingerprint;
}

enum { FEW_REALS = 1 << 16 }; /* with fewer, starting a team takes longer than it saves */

/* Find how many bits a system lost (N.13l); the device does not compute this. */
static void loss_find(void *self, gidx i)
{
  struct arrow_item *item = (struct arrow_item *)self + i;
  item->outcome.lost_bits = arrow_lost_bits(&item->system, &item->outcome, item->step_b);
}

static int losses_check(const struct arrow_item *items, gidx count)
{
  for (gidx i = 0; i < count; i++)
    CHECK(items[i].outcome.lost_bits >= 0, ERR_MEMORY, "cannot allocate a border of %d columns",
          items[i].system.k);
  return OK;
}

static void outcomes_count(struct solve *s, gidx count)
{
  for (gidx i = 0; i < count; i++) {
    const struct arrow_item *item = &s->items[i];
    struct solution_block alone = {s->mine[i], 1, item->step_t, item->step_b, &item->outcome};
    s->outcomes[i] = item->outcome;
    solve_count(s->out, s->shape, &alone);
  }
}

/* Solve a batch: its systems are in `block`, and its results go to `results`.  Collective. */
static int batch_solve(struct solve *s, const struct systems_block *block,
                       struct batch_results *results)
{
  struct phase *phases = s->out->phases;
  int several = s->c->size > 1;
  double reals = 0;
  if (!s->batch.stays) {
    phase_begin(&phases[SOLVE_ALLTOALLV]);
    TRY(solve_alltoallv(s, block));
    phase_end(&phases[SOLVE_ALLTOALLV], 0);
  }
  struct arrow_job job = {
      .options = s->task->options, .items = s->items, .count = items_fill(s, block, results)};
  for (gidx i = 0; i < job.count; i++)
    reals += (double)systems_reals(s->shape, s->mine[i], s->mine[i] + 1) +
             (double)steps_reals(s->shape, s->mine[i], s->mine[i] + 1);
  phase_begin(&phases[SOLVE_SOLVE]);
  int threads = reals < FEW_REALS ? 1 : team_beside(s->task->threads);
  int status = device_arrow(&s->device, &job);
  if (!status) team_run(threads, job.count, loss_find, s->items);
  if (!status) status = losses_check(s->items, job.count);
  TRY(comm_agree(s->c, status));
  phase_end(&phases[SOLVE_SOLVE], 8 * reals);
  outcomes_count(s, job.count);
  results->first = s->batch.first;
  results->count = s->c->rank ? 0 : s->batch.end - s->batch.first; /* rank 0 writes */
  if (!several) {
    memcpy(results->outcomes, s->outcomes, (size_t)job.count * sizeof *s->outcomes);
    return OK;
  }
  phase_begin(&phases[SOLVE_GATHER]);
  TRY(solve_gather(s, &job, results));
  phase_end(&phases[SOLVE_GATHER], 0);
  return OK;
}

/* The reasons to stop that this rank knows, as bits.  next: the first system of the next batch; if
 * no batch follows, the result is 0. */
static uint64_t stop_asked(const struct solve *s, gidx next)
{
  const struct stops *stops = &s->task->stops;
  return stops->asked && next < s->shape->count ? stops->asked(stops->self) : 0;
}

/* Prepare the device while the first batch is read. */
static int first_ready(struct solve *s)
{
  struct phase *phase = &s->out->phases[SOLVE_OPEN];
  phase_begin(phase);
  struct arrow_job job = {.options = s->task->options,
                          .items = s->items,
                          .count = items_fill(s, &s->block[0], &s->results[0])};
  int status = device_arrow_ready(&s->device, &job);
  phase_end(phase, 0);
  return status;
}

/* Solve batch after batch; `slot` has the one that is solved.  solve_files_start() deals the next
 * batch into s->batch, so the present one is dealt again before it is solved. */
static int batches_run(struct solve *s)
{
  const struct stops *stops = &s->task->stops;
  struct progress progress;
  gidx next;
  int slot = 0;
  uint64_t none = 0;
  progress_start(&progress, "solve", "systems", s->end);
  progress.before = s->task->first;
  TRY(comm_agree(s->c, solve_files_start(s, s->task->first, 0)));
  if (s->task->first < s->end) TRY(comm_agree(s->c, first_ready(s)));
  for (gidx first = s->task->first; first < s->end; first = next, slot = !slot) {
    next = batch_end(s->shape, first, s->task->batch, MAX_SYSTEMS);
    uint64_t asked = stop_asked(s, next);
    TRY(solve_files_wait(s, &asked));
    if (asked) {
      s->end = next;
      stops->stopped(stops->self, asked);
    }
    TRY(comm_agree(s->c, solve_files_start(s, next, !slot)));
    solve_deal(s, first);
    TRY(batch_solve(s, &s->block[slot], &s->results[slot]));
    progress_show(&progress, next);
  }
  TRY(solve_files_wait(s, &none));
  TRY(comm_agree(s->c, solve_files_finish(s, slot)));
  return solve_files_wait(s, &none);
}

/* Sum this rank's totals over all ranks.  Collective. */
static int result_sum(struct solve *s)
{
  struct solve_result *out = s->out;
  gidx *all;
  TRY(comm_agree(s->c, arena_alloc(&s->arena, &all, 2 * (gidx)s->c->size, sizeof *all)));
  gidx *places = all + s->c->size;
  for (int status = 0; status < ARROW_STATUSES; status++) {
    gidx lowest = -1, place = -1;
    TRY(comm_allgather_long(s->c, out->counts[status] ? out->first[status] : -1, all));
    TRY(comm_allgather_long(s->c, out->first_offset[status], places));
    for (int r = 0; r < s->c->size; r++)
      if (all[r] >= 0 && (lowest < 0 || all[r] < lowest)) {
        lowest = all[r];
        place = places[r];
      }
    out->first[status] = lowest;
    out->first_offset[status] = place;
  }
  TRY(comm_allgather_long(s->c, out->most_lost, all));
  TRY(comm_allgather_long(s->c, out->most_lost_at, places));
  for (int r = 0; r < s->c->size; r++) lost_keep(out, all[r], places[r]);
  gidx sums[ARROW_STATUSES + 4] = {out->mended, out->retries, out->few};
  memcpy(sums + 3, &out->fingerprint, sizeof out->fingerprint);
  memcpy(sums + 4, out->counts, sizeof out->counts);
  TRY(comm_sum(s->c, sums, LENGTH(sums)));
  out->mended = sums[0];
  out->retries = sums[1];
  out->few = sums[2];
  memcpy(&out->fingerprint, sums + 3, sizeof out->fingerprint);
  memcpy(out->counts, sums + 4, sizeof out->counts);
  return OK;
}

static void result_start(struct solve_result *out)
{
  *out = (struct solve_result){
      .phases = {[SOLVE_OPEN] = {.name = "open"},
                 [SOLVE_READ] = {.name = "read", .unit = "GB", .background = 1},
                 [SOLVE_ALLTOALLV] = {.name = "alltoallv"},
                 [SOLVE_SOLVE] = {.name = "solve", .unit = "GB"},
                 [SOLVE_GATHER] = {.name = "gather"},
                 [SOLVE_WRITE] = {.name = "write", .unit = "GB", .background = 1},
                 [SOLVE_WAIT] = {.name = "wait"}},
      .most_lost_at = INT64_MAX};
}

int solve_run(const struct solve_task *task, struct comm *c, struct solve_result *result)
{
  struct solve *s; /* on the heap: struct run of job/run.h says why */
  result_start(result);
  TRY(comm_agree(c, struct_alloc(&s, sizeof *s)));
  *s = (struct solve){.task = task, .shape = task->systems->shape, .c = c, .out = result};
  s->end = s->shape->count;
  phase_begin(&result->phases[SOLVE_OPEN]);
  TRY(solve_open(s));
  phase_end(&result->phases[SOLVE_OPEN], 0);
  TRY(comm_devices_report(c, &s->device));
  result->device = result->phases[SOLVE_SOLVE].device = s->device.kind;
  snprintf(result->variant, sizeof result->variant, "%s", s->device.variant);
  TRY(batches_run(s));
  result->end = s->end;
  result->device_counts = s->device.counts;
  TRY(result_sum(s));
  worker_close(&s->reader);
  worker_close(&s->writer);
  solve_pin(s, 0);
  device_close(&s->device);
  arena_free(&s->arena);
  free(s);
  return OK;
}
