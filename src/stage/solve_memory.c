/* SPDX-License-Identifier: BSD-3-Clause
 * What a rank holds: all batches are gone through for the largest parts before anything is read. */
#include "base/order.h"
#include "base/status.h"
#include "stage/solve_inside.h"

enum { BATCH_REALS = 1 << 24 };

gidx solve_batch(const struct systems_shape *s)
{
  gidx rows = s->row[s->count], reals = systems_reals(s, 0, s->count) / (rows > 0 ? rows : 1) + 1;
  gidx batch = BATCH_REALS / reals;
  return batch > LANE_COUNT ? batch : LANE_COUNT;
}

void solve_deal(struct solve *s, gidx first)
{
  s->batch.first = first;
  s->batch.end = batch_end(s->shape, first, s->task->batch, SYSTEMS_MOST);
  batch_deal(s->shape, s->c->size, &s->batch, s->order);
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
    solve_deal(s, first);
    batch_part(b, rank, &begin, &end);
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

int solve_take(struct solve *s)
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

int solve_plan(const struct solve_task *task, const struct comm *c, struct solve_result *result)
{
  struct comm view = *c;
  struct solve s = {.task = task, .shape = task->systems->shape, .c = &view};
  *result = (struct solve_result){0};
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
