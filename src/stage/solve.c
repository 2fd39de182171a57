/* SPDX-License-Identifier: BSD-3-Clause
 * Batches overlap: while one is solved, the thread of the files writes the one before the last and
 * reads the next.  With one rank nothing is copied: systems are solved where they were read. */
#include "stage/solve.h"

#include <stdlib.h>
#include <string.h>

#include "base/fingerprint.h"
#include "base/log.h"
#include "base/order.h"
#include "base/status.h"
#include "base/worker.h"
#include "stage/access.h"
#include "stage/solve_batch.h"

#define BATCH_REALS ((gidx)1 << 24)
enum { SYSTEMS_MOST = 1 << 16, TURNS = 2 };

/* Results of a batch, on rank 0 (of all its systems). */
struct results {
  real *step_t, *step_b;
  struct arrow_outcome *outcomes;
  gidx first, count; /* count 0: nothing to write */
};

/* What the largest batch of this rank wants. */
struct room {
  gidx systems, batches;
  gidx read, send, solve, steps, all_t, all_b;
};

struct solve {
  const struct solve_task *task;
  const struct systems_shape *shape;
  struct comm *c;
  struct solve_result *out;
  struct device device;
  struct worker worker;
  struct arena arena;
  struct room room;
  struct batch batch; /* being solved */
  struct batch_order *order;
  real *read[TURNS]; /* a part of a batch as it was read */
  struct systems_block block[TURNS];
  real *send, *recv, *steps; /* several ranks only */
  idx *send_counts, *recv_counts, *item_counts;
  struct arrow_item *items;
  gidx *mine; /* system of each item */
  struct arrow_outcome *outcomes, *all_outcomes;
  real *all_steps; /* rank 0 of several */
  struct results results[TURNS];
};

gidx solve_batch(const struct systems_shape *s)
{
  gidx rows = s->row[s->count], reals = systems_reals(s, 0, s->count) / (rows > 0 ? rows : 1) + 1;
  gidx batch = BATCH_REALS / reals;
  return batch > LANE_COUNT ? batch : LANE_COUNT;
}

static gidx steps_reals(const struct systems_shape *s, gidx a, gidx end)
{
  return s->g[end] - s->g[a] + (s->border[end] - s->border[a]);
}

/* This rank's part of a batch as its reader: consecutive systems. */
static void part_find(const struct batch *b, int rank, gidx *first, gidx *end)
{
  gidx i = 0, count = b->end - b->first;
  while (i < count && b->reader[i] < rank) i++;
  *first = b->first + i;
  while (i < count && b->reader[i] == rank) i++;
  *end = b->first + i;
}

static void most(gidx *a, gidx b)
{
  if (b > *a) *a = b;
}

/* Go through all batches for what `rank` will need. */
static void room_find(struct solve *s, int rank, struct room *room)
{
  const struct systems_shape *shape = s->shape;
  struct batch *b = &s->batch;
  for (gidx first = 0; first < shape->count; first = b->end) {
    gidx own = 0, steps = 0, begin, end;
    b->first = first;
    b->end = batch_end(shape, first, s->task->batch, SYSTEMS_MOST);
    batch_deal(shape, s->c->size, b, s->order);
    part_find(b, rank, &begin, &end);
    for (gidx a = first; a < b->end; a++) {
      if (b->owner[a - first] != rank) continue;
      own += systems_reals(shape, a, a + 1);
      steps += steps_reals(shape, a, a + 1);
    }
    room->batches++;
    most(&room->systems, b->end - first);
    most(&room->read, systems_reals(shape, begin, end));
    most(&room->solve, own);
    most(&room->steps, steps);
    most(&room->all_t, shape->g[b->end] - shape->g[first]);
    most(&room->all_b, shape->border[b->end] - shape->border[first]);
  }
  room->send = s->c->size > 1 ? room->read : 0;
}

/* What every rank takes before it knows its part. */
static int order_take(struct solve *s)
{
  gidx count = s->shape->count < SYSTEMS_MOST ? s->shape->count : SYSTEMS_MOST;
  TRY(arena_take(&s->arena, &s->batch.reader, count, sizeof *s->batch.reader));
  TRY(arena_take(&s->arena, &s->batch.owner, count, sizeof *s->batch.owner));
  return arena_take(&s->arena, &s->order, count, sizeof *s->order);
}

static int results_take(struct solve *s)
{
  const struct room *r = &s->room;
  if (s->c->rank) return OK;
  for (int i = 0; i < TURNS; i++) {
    TRY(arena_take(&s->arena, &s->results[i].step_t, r->all_t, sizeof(real)));
    TRY(arena_take(&s->arena, &s->results[i].step_b, r->all_b, sizeof(real)));
    TRY(arena_take(&s->arena, &s->results[i].outcomes, r->systems, sizeof *s->outcomes));
  }
  if (s->c->size == 1) return OK;
  TRY(arena_take(&s->arena, &s->all_steps, r->all_t + r->all_b, sizeof(real)));
  return arena_take(&s->arena, &s->all_outcomes, r->systems, sizeof *s->all_outcomes);
}

static int solve_take(struct solve *s)
{
  struct room *r = &s->room;
  int several = s->c->size > 1;
  struct device_options options = {
      .p = 1, .d = 1, .threads = s->task->threads, .variant = s->task->variant};
  TRY(device_check_fma());
  TRY(device_check_subnormals(s->task->threads));
  TRY(order_take(s));
  room_find(s, s->c->rank, r);
  CHECK(!several || r->all_t + r->read + r->solve < INT32_MAX, ERR_MEMORY,
        "a batch has %lld numbers, more than ranks can exchange: solve this file on one rank",
        (long long)(r->all_t + r->read + r->solve));
  for (int i = 0; i < TURNS; i++) TRY(arena_take(&s->arena, &s->read[i], r->read, sizeof(real)));
  TRY(arena_take(&s->arena, &s->send, several ? r->send : 0, sizeof(real)));
  TRY(arena_take(&s->arena, &s->recv, several ? r->solve : 0, sizeof(real)));
  TRY(arena_take(&s->arena, &s->steps, several ? r->steps : 0, sizeof(real)));
  TRY(arena_take(&s->arena, &s->send_counts, s->c->size, sizeof *s->send_counts));
  TRY(arena_take(&s->arena, &s->recv_counts, s->c->size, sizeof *s->recv_counts));
  TRY(arena_take(&s->arena, &s->item_counts, s->c->size, sizeof *s->item_counts));
  TRY(arena_take(&s->arena, &s->items, r->systems, sizeof *s->items));
  TRY(arena_take(&s->arena, &s->mine, r->systems, sizeof *s->mine));
  TRY(arena_take(&s->arena, &s->outcomes, r->systems, sizeof *s->outcomes));
  TRY(results_take(s));
  TRY(device_open(&s->device, &options));
  return worker_open(&s->worker);
}

/* Arrays of consecutive systems, one behind the other in one piece of memory. */
static struct systems_block block_view(const struct systems_shape *s, gidx first, gidx end,
                                       real *at)
{
  struct systems_block b = {.first = first, .count = end - first, .h = at};
  b.b = b.h + (s->h[end] - s->h[first]);
  b.g = b.b + (s->b[end] - s->b[first]);
  b.c = b.g + (s->g[end] - s->g[first]);
  b.hb = b.c + (s->c[end] - s->c[first]);
  return b;
}

/* System a of a block. */
static struct arrow_system system_view(const struct systems_shape *s, const struct systems_block *b,
                                       gidx a)
{
  gidx f = b->first;
  return (struct arrow_system){.d = s->d[a],
                               .k = s->k[a],
                               .n = s->row[a + 1] - s->row[a],
                               .h = b->h + (s->h[a] - s->h[f]),
                               .b = b->b + (s->b[a] - s->b[f]),
                               .g = b->g + (s->g[a] - s->g[f]),
                               .c = b->c + (s->c[a] - s->c[f]),
                               .hb = b->hb + (s->border[a] - s->border[f])};
}

/* What the thread of the files does in one go; static, because after a deadline it is left
 * behind. */
static struct files_job {
  struct solve *s;
  struct results *write[TURNS]; /* or NULL */
  struct systems_block *read;   /* or NULL */
} files;

static int files_run(void *argument)
{
  struct files_job *job = argument;
  const struct solve_task *task = job->s->task;
  struct phase *phases = job->s->out->phases;
  for (int i = 0; i < TURNS; i++) {
    struct results *r = job->write[i];
    if (!r || r->count == 0) continue;
    struct solution_block block = {r->first, r->count, r->step_t, r->step_b, r->outcomes};
    phase_begin(&phases[SOLVE_WRITE]);
    TRY(task->sink->write(task->sink->self, &block));
    phase_end(&phases[SOLVE_WRITE],
              8. * (double)steps_reals(job->s->shape, r->first, r->first + r->count));
    r->count = 0;
  }
  if (!job->read) return OK;
  phase_begin(&phases[SOLVE_READ]);
  TRY(task->systems->read(task->systems->self, job->read));
  phase_end(&phases[SOLVE_READ], 8. * (double)systems_reals(job->s->shape, job->read->first,
                                                            job->read->first + job->read->count));
  return OK;
}

/* Begin to read this rank's part of the batch at `first`, and to write the results of `turn`. */
static int files_start(struct solve *s, gidx first, int turn)
{
  const struct systems_shape *shape = s->shape;
  struct batch *b = &s->batch;
  files = (struct files_job){.s = s};
  if (s->c->rank == 0) files.write[0] = &s->results[turn];
  if (first < shape->count) {
    gidx begin, end;
    b->first = first;
    b->end = batch_end(shape, first, s->task->batch, SYSTEMS_MOST);
    batch_deal(shape, s->c->size, b, s->order);
    part_find(b, s->c->rank, &begin, &end);
    s->block[turn] = block_view(shape, begin, end, s->read[turn]);
    files.read = &s->block[turn];
  }
  return worker_start(&s->worker, files_run, &files);
}

static int files_wait(struct solve *s)
{
  phase_begin(&s->out->phases[SOLVE_WAIT]);
  int status = worker_wait(&s->worker, s->c->deadline);
  phase_end(&s->out->phases[SOLVE_WAIT], 0);
  return comm_agree(s->c, status);
}

/* One system, its arrays one behind the other. */
static real *system_pack(const struct arrow_system *a, real *to)
{
  gidx d = a->d, k = a->k;
  const real *parts[] = {a->h, a->b, a->g, a->c, a->hb};
  const gidx sizes[] = {a->n * d * d, a->n * d * k, a->n * d, k * k, k};
  for (int i = 0; i < LENGTH(parts); to += sizes[i++])
    memcpy(to, parts[i], (size_t)sizes[i] * sizeof *to);
  return to;
}

/* Send what was read to the owners; recv <- this rank's systems, ascending. */
static int exchange(struct solve *s, const struct systems_block *block)
{
  const struct batch *b = &s->batch;
  real *to = s->send;
  for (int r = 0; r < s->c->size; r++) {
    real *from = to;
    for (gidx a = block->first; a < block->first + block->count; a++) {
      if (b->owner[a - b->first] != r) continue;
      struct arrow_system system = system_view(s->shape, block, a);
      to = system_pack(&system, to);
    }
    s->send_counts[r] = (idx)(to - from);
    s->recv_counts[r] = 0;
  }
  for (gidx a = b->first; a < b->end; a++)
    if (b->owner[a - b->first] == s->c->rank)
      s->recv_counts[b->reader[a - b->first]] += (idx)systems_reals(s->shape, a, a + 1);
  return comm_exchange(s->c, s->send, s->send_counts, s->recv, s->recv_counts, sizeof(real));
}

/* The items of this rank: where their systems stand, and where their steps go. */
static gidx items_fill(struct solve *s, const struct systems_block *block, struct results *results)
{
  const struct systems_shape *shape = s->shape;
  const struct batch *b = &s->batch;
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

/* Rank 0 puts every rank's steps and outcomes in the order of the systems. */
static void results_place(struct solve *s, struct results *to)
{
  const struct systems_shape *shape = s->shape;
  const struct batch *b = &s->batch;
  const real *from = s->all_steps;
  gidx next = 0;
  for (int r = 0; r < s->c->size; r++)
    for (gidx a = b->first; a < b->end; a++) {
      if (b->owner[a - b->first] != r) continue;
      gidx t = shape->g[a + 1] - shape->g[a], k = shape->border[a + 1] - shape->border[a];
      memcpy(to->step_t + (shape->g[a] - shape->g[b->first]), from, (size_t)t * sizeof *from);
      memcpy(to->step_b + (shape->border[a] - shape->border[b->first]), from + t,
             (size_t)k * sizeof *from);
      to->outcomes[a - b->first] = s->all_outcomes[next++];
      from += t + k;
    }
}

static int gather(struct solve *s, struct results *to)
{
  const struct batch *b = &s->batch;
  idx *counts = s->recv_counts;
  for (int r = 0; r < s->c->size; r++) counts[r] = s->item_counts[r] = 0;
  for (gidx a = b->first; a < b->end; a++) {
    int owner = b->owner[a - b->first];
    counts[owner] += (idx)steps_reals(s->shape, a, a + 1);
    s->item_counts[owner]++;
  }
  TRY(comm_gather(s->c, s->steps, counts, sizeof(real), s->all_steps));
  TRY(comm_gather(s->c, s->outcomes, s->item_counts, sizeof *s->outcomes, s->all_outcomes));
  if (s->c->rank == 0) results_place(s, to);
  return OK;
}

static int batch_solve(struct solve *s, const struct systems_block *block, struct results *results)
{
  struct phase *phases = s->out->phases;
  int several = s->c->size > 1;
  double reals = 0;
  if (several) {
    phase_begin(&phases[SOLVE_EXCHANGE]);
    TRY(exchange(s, block));
    phase_end(&phases[SOLVE_EXCHANGE], 0);
  }
  struct arrow_job job = {s->task->options, s->items, items_fill(s, block, results)};
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
  TRY(gather(s, results));
  phase_end(&phases[SOLVE_GATHER], 0);
  return OK;
}

/* Batches one after another.  files_start deals the batch after this one, so this one is dealt
 * again before it is solved. */
static int batches_run(struct solve *s)
{
  struct batch *b = &s->batch;
  struct progress progress;
  gidx count = s->shape->count, next;
  int turn = 0;
  progress_start(&progress, "solve", "systems", count);
  TRY(comm_agree(s->c, files_start(s, 0, 0)));
  for (gidx first = 0; first < count; first = next, turn = !turn) {
    TRY(files_wait(s));
    next = batch_end(s->shape, first, s->task->batch, SYSTEMS_MOST);
    TRY(comm_agree(s->c, files_start(s, next, !turn)));
    b->first = first;
    b->end = next;
    batch_deal(s->shape, s->c->size, b, s->order);
    TRY(batch_solve(s, &s->block[turn], &s->results[turn]));
    progress_show(&progress, next);
  }
  TRY(files_wait(s));
  files = (struct files_job){.s = s, .write = {&s->results[turn], &s->results[!turn]}};
  TRY(comm_agree(s->c, worker_start(&s->worker, files_run, &files)));
  return files_wait(s);
}

/* Totals over the ranks. */
static int result_share(struct solve *s)
{
  struct solve_result *out = s->out;
  gidx *all;
  TRY(comm_agree(s->c, arena_take(&s->arena, &all, 2 * (gidx)s->c->size, sizeof *all)));
  gidx *places = all + s->c->size;
  for (int status = 0; status < ARROW_STATUSES; status++) {
    gidx lowest = -1, place = -1;
    TRY(comm_collect(s->c, out->counts[status] ? out->first[status] : -1, all));
    TRY(comm_collect(s->c, out->first_place[status], places));
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
  *out =
      (struct solve_result){.phases = {[SOLVE_READ] = {.name = "read", .unit = "GB", .behind = 1},
                                       [SOLVE_EXCHANGE] = {.name = "exchange"},
                                       [SOLVE_SOLVE] = {.name = "solve", .unit = "GB"},
                                       [SOLVE_GATHER] = {.name = "gather"},
                                       [SOLVE_WRITE] = {.name = "write", .unit = "GB", .behind = 1},
                                       [SOLVE_WAIT] = {.name = "wait"}}};
}

int solve_plan(const struct solve_task *task, const struct comm *c, struct solve_result *result)
{
  struct comm view = *c;
  struct solve s = {.task = task, .shape = task->systems->shape, .c = &view};
  result_start(result);
  int status = order_take(&s);
  for (int r = 0; status == OK && r < c->size; r++) {
    struct room room = {0};
    room_find(&s, r, &room);
    gidx reals = 2 * room.read + room.send + (c->size > 1 ? room.solve + room.steps : 0) +
                 (r == 0 ? (c->size > 1 ? 3 : 2) * (room.all_t + room.all_b) : 0);
    result->batches = room.batches;
    most(&result->memory, 8 * reals);
  }
  arena_free(&s.arena);
  return status;
}

int solve_run(const struct solve_task *task, struct comm *c, struct solve_result *result)
{
  static struct solve s; /* outlives the failure of a batch whose worker is still at work */
  s = (struct solve){.task = task, .shape = task->systems->shape, .c = c, .out = result};
  result_start(result);
  TRY(comm_agree(c, solve_take(&s)));
  result->variant = s.device.variant;
  result->batches = s.room.batches;
  TRY(batches_run(&s));
  TRY(result_share(&s));
  worker_close(&s.worker);
  device_close(&s.device);
  arena_free(&s.arena);
  return OK;
}
