/* SPDX-License-Identifier: BSD-3-Clause
 * Batches overlap: while one is solved, the files worker writes the one before and reads the next.
 * With one rank nothing is copied: systems are solved where they were read. */
#include "solve/solve.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fingerprint.h"
#include "base/log.h"
#include "base/status.h"
#include "comm/buffers.h"
#include "solve/exchange.h"
#include "solve/layout.h"

/* Fill this rank's items: where their systems stand, and where their steps go.  Returns how
 * many. */
static gidx items_fill(struct solve *s, const struct systems_block *block,
                       struct batch_results *results)
{
  const struct systems_shape *shape = s->shape;
  const struct system_batch *b = &s->batch;
  gidx count = 0;
  real *from = s->recv, *to = s->steps;
  for (gidx a = b->first; a < b->end; a++) {
    if (b->owner[a - b->first] != s->c->rank) continue;
    struct arrow_item *item = &s->items[count];
    struct systems_block alone = block_view(shape, a, a + 1, from);
    *item = (struct arrow_item){0};
    s->mine[count++] = a;
    if (s->c->size == 1) {
      item->system = system_view(shape, block, a);
      item->step_t = results->step_t + (shape->g[a] - shape->g[b->first]);
      item->step_b = results->step_b + (shape->border[a] - shape->border[b->first]);
      continue;
    }
    item->system = system_view(shape, &alone, a);
    item->step_t = to;
    item->step_b = to + (shape->g[a + 1] - shape->g[a]);
    from += systems_reals(shape, a, a + 1);
    to += steps_reals(shape, a, a + 1);
  }
  return count;
}

/* Count outcomes, and add to the fingerprint: steps at their places, then log-determinants. */
static void outcomes_count(struct solve *s, gidx count)
{
  const struct systems_shape *shape = s->shape;
  struct solve_result *out = s->out;
  gidx beta = shape->g[shape->count], log_dets = beta + shape->border[shape->count];
  for (gidx i = 0; i < count; i++) {
    const struct arrow_item *item = &s->items[i];
    const struct arrow_outcome *o = &item->outcome;
    gidx a = s->mine[i];
    s->outcomes[i] = *o;
    if (out->counts[o->status]++ == 0 || a < out->first[o->status]) {
      out->first[o->status] = a;
      out->first_place[o->status] = o->failed_at;
    }
    out->mended += o->status == ARROW_OK && o->retries > 0;
    out->retries += o->retries;
    out->fingerprint +=
        fingerprint(item->step_t, item->system.n * item->system.d, sizeof(real), shape->g[a]) +
        fingerprint(item->step_b, item->system.k, sizeof(real), beta + shape->border[a]) +
        fingerprint(&o->log_det, 1, sizeof(real), log_dets + a);
  }
}

/* Solve the batch that stands in a slot.  Collective. */
static int batch_solve(struct solve *s, const struct systems_block *block,
                       struct batch_results *results)
{
  struct phase *phases = s->out->phases;
  int several = s->c->size > 1;
  double reals = 0;
  if (several) {
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
  TRY(comm_agree(s->c, device_arrow(&s->device, &job)));
  phase_end(&phases[SOLVE_SOLVE], 8 * reals);
  outcomes_count(s, job.count);
  results->first = s->batch.first;
  results->count = s->c->rank ? 0 : s->batch.end - s->batch.first; /* rank 0 writes */
  if (!several) {
    memcpy(results->outcomes, s->outcomes, (size_t)job.count * sizeof *s->outcomes);
    return OK;
  }
  phase_begin(&phases[SOLVE_GATHER]);
  TRY(solve_gather(s, results));
  phase_end(&phases[SOLVE_GATHER], 0);
  return OK;
}

/* Solve one batch after another; slot is where the present one stands.  solve_files_start() deals
 * the batch after this one, so this one is dealt again before it is solved. */
static int batches_run(struct solve *s)
{
  struct progress progress;
  gidx count = s->shape->count, next;
  int slot = 0;
  progress_start(&progress, "solve", "systems", count);
  TRY(comm_agree(s->c, solve_files_start(s, 0, 0)));
  for (gidx first = 0; first < count; first = next, slot = !slot) {
    TRY(solve_files_wait(s));
    next = batch_end(s->shape, first, s->task->batch, MAX_SYSTEMS);
    TRY(comm_agree(s->c, solve_files_start(s, next, !slot)));
    solve_deal(s, first);
    TRY(batch_solve(s, &s->block[slot], &s->results[slot]));
    progress_show(&progress, next);
  }
  TRY(solve_files_wait(s));
  TRY(comm_agree(s->c, solve_files_finish(s, slot)));
  return solve_files_wait(s);
}

/* Make the totals of this rank those of all ranks.  Collective. */
static int result_sum(struct solve *s)
{
  struct solve_result *out = s->out;
  gidx *all;
  TRY(comm_agree(s->c, arena_alloc(&s->arena, &all, 2 * (gidx)s->c->size, sizeof *all)));
  gidx *places = all + s->c->size;
  for (int status = 0; status < ARROW_STATUSES; status++) {
    gidx lowest = -1, place = -1;
    TRY(comm_allgather_long(s->c, out->counts[status] ? out->first[status] : -1, all));
    TRY(comm_allgather_long(s->c, out->first_place[status], places));
    for (int r = 0; r < s->c->size; r++)
      if (all[r] >= 0 && (lowest < 0 || all[r] < lowest)) {
        lowest = all[r];
        place = places[r];
      }
    out->first[status] = lowest;
    out->first_place[status] = place;
  }
  gidx sums[ARROW_STATUSES + 3] = {out->mended, out->retries};
  memcpy(sums + 2, &out->fingerprint, sizeof out->fingerprint);
  memcpy(sums + 3, out->counts, sizeof out->counts);
  TRY(comm_sum(s->c, sums, LENGTH(sums)));
  out->mended = sums[0];
  out->retries = sums[1];
  memcpy(&out->fingerprint, sums + 2, sizeof out->fingerprint);
  memcpy(out->counts, sums + 3, sizeof out->counts);
  return OK;
}

static void result_start(struct solve_result *out)
{
  *out = (struct solve_result){
      .phases = {[SOLVE_READ] = {.name = "read", .unit = "GB", .background = 1},
                 [SOLVE_ALLTOALLV] = {.name = "alltoallv"},
                 [SOLVE_SOLVE] = {.name = "solve", .unit = "GB"},
                 [SOLVE_GATHER] = {.name = "gather"},
                 [SOLVE_WRITE] = {.name = "write", .unit = "GB", .background = 1},
                 [SOLVE_WAIT] = {.name = "wait"}}};
}

int solve_run(const struct solve_task *task, struct comm *c, struct solve_result *result)
{
  struct solve *s; /* on the heap: struct run of cli/command.h says why */
  result_start(result);
  TRY(comm_agree(c, struct_alloc(&s, sizeof *s)));
  *s = (struct solve){.task = task, .shape = task->systems->shape, .c = c, .out = result};
  TRY(solve_open(s));
  TRY(comm_devices_report(c, &s->device));
  result->device = result->phases[SOLVE_SOLVE].device = s->device.kind;
  snprintf(result->variant, sizeof result->variant, "%s", s->device.variant);
  TRY(batches_run(s));
  result->device_counts = s->device.counts;
  TRY(result_sum(s));
  worker_close(&s->worker);
  device_close(&s->device);
  arena_free(&s->arena);
  free(s);
  return OK;
}
