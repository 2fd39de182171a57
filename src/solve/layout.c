/* SPDX-License-Identifier: BSD-3-Clause
 * All memory of a solve job.  Before anything is read, all batches are dealt once, to find the
 * largest part that this rank has of a batch.  A forecast runs the same allocations in a dry
 * arena. */
#include "solve/layout.h"

#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "base/sums.h"
#include "device/buffer.h"

/* If --batch is not given, a batch has about BATCH_REALS reals times the number of ranks, or times
 * BATCH_RANKS if there are more ranks.  Larger batches would take too much memory: a rank with a
 * GPU page-locks its parts of two batches and its steps, and rank 0 has the results of all
 * ranks. */
enum { BATCH_REALS = 1 << 23, BATCH_RANKS = 8 };

double solve_work(const struct systems_shape *shape)
{
  double work = 0;
  for (gidx a = 0; a < shape->count; a++) work += system_work(shape, a);
  return work;
}

gidx solve_batch_rows(const struct systems_shape *s, int ranks)
{
  gidx rows = s->row[s->count], reals = systems_reals(s, 0, s->count) / imax(rows, 1) + 1;
  return imax(imin(ranks, BATCH_RANKS) * BATCH_REALS / reals, LANE_COUNT);
}

void solve_deal(struct solve *s, gidx first)
{
  s->batch.first = first;
  s->batch.end = batch_end(s->shape, first, s->task->batch, MAX_SYSTEMS);
  batch_deal(s->shape, s->c->size, &s->batch, s->order);
}

/* s->sizes <- the largest parts that this rank has; deals all batches. */
static void sizes_find(struct solve *s)
{
  const struct systems_shape *shape = s->shape;
  struct system_batch *b = &s->batch;
  struct batch_sizes m = {0};
  for (gidx first = s->task->first; first < shape->count; first = b->end) {
    gidx own = 0, own_t = 0, own_b = 0, begin, end;
    solve_deal(s, first);
    batch_part(b, s->c->rank, &begin, &end);
    for (gidx a = first; a < b->end; a++) {
      if (b->owner[a - first] != s->c->rank) continue;
      own += systems_reals(shape, a, a + 1);
      own_t += shape->g[a + 1] - shape->g[a];
      own_b += shape->border[a + 1] - shape->border[a];
      m.largest = imax(m.largest, systems_reals(shape, a, a + 1) + steps_reals(shape, a, a + 1));
    }
    m.batches++;
    m.systems = imax(m.systems, b->end - first);
    m.read = imax(m.read, systems_reals(shape, begin, end));
    m.solve = imax(m.solve, own);
    m.own_t = imax(m.own_t, own_t);
    m.own_b = imax(m.own_b, own_b);
    m.all_t = imax(m.all_t, shape->g[b->end] - shape->g[first]);
    m.all_b = imax(m.all_b, shape->border[b->end] - shape->border[first]);
    if (b->stays) continue;
    m.sent = imax(m.sent, systems_reals(shape, begin, end));
    m.received = imax(m.received, own);
    m.moved_t = imax(m.moved_t, shape->g[b->end] - shape->g[first]);
    m.moved_b = imax(m.moved_b, shape->border[b->end] - shape->border[first]);
    m.moved = imax(m.moved, b->end - first);
  }
  s->sizes = m;
}

/* Allocate the arrays that dealing needs. */
static int order_alloc(struct solve *s, struct arena *arena)
{
  gidx count = imin(s->shape->count, MAX_SYSTEMS);
  TRY(arena_alloc(arena, &s->batch.reader, count, sizeof *s->batch.reader));
  TRY(arena_alloc(arena, &s->batch.owner, count, sizeof *s->batch.owner));
  return arena_alloc(arena, &s->order, count, sizeof *s->order);
}

/* Two page-locked arrays must not share a page, which has at most 64 KiB. */
enum { PAGE_REALS = (64 << 10) / sizeof(real) };

static int results_alloc(struct solve *s)
{
  const struct batch_sizes *m = &s->sizes;
  gidx offset_b = m->all_t + PAGE_REALS;
  if (s->c->rank) return OK;
  for (int i = 0; i < SLOTS; i++) {
    struct batch_results *r = &s->results[i];
    TRY(arena_alloc(&s->arena, &r->step_t, offset_b + m->all_b, sizeof(real)));
    r->step_b = r->step_t ? r->step_t + offset_b : NULL;
    TRY(arena_alloc(&s->arena, &r->outcomes, m->systems, sizeof *r->outcomes));
  }
  if (s->c->size == 1) return OK;
  TRY(arena_alloc(&s->arena, &s->all_t, m->moved_t + m->moved_b, sizeof(real)));
  s->all_b = s->all_t ? s->all_t + m->moved_t : NULL;
  return arena_alloc(&s->arena, &s->all_outcomes, m->moved, sizeof *s->all_outcomes);
}

/* Allocate all other arrays, by s->sizes, in s->arena, which may be dry. */
static int arrays_alloc(struct solve *s)
{
  const struct batch_sizes *m = &s->sizes;
  int several = s->c->size > 1;
  for (int i = 0; i < SLOTS; i++) TRY(arena_alloc(&s->arena, &s->read[i], m->read, sizeof(real)));
  TRY(arena_alloc(&s->arena, &s->send, several ? m->sent : 0, sizeof(real)));
  TRY(arena_alloc(&s->arena, &s->recv, several ? m->received : 0, sizeof(real)));
  TRY(arena_alloc(&s->arena, &s->own_t, several ? m->own_t + m->own_b : 0, sizeof(real)));
  s->own_b = s->own_t ? s->own_t + m->own_t : NULL;
  TRY(arena_alloc(&s->arena, &s->send_counts, s->c->size, sizeof *s->send_counts));
  TRY(arena_alloc(&s->arena, &s->recv_counts, s->c->size, sizeof *s->recv_counts));
  TRY(arena_alloc(&s->arena, &s->item_counts, s->c->size, sizeof *s->item_counts));
  TRY(arena_alloc(&s->arena, &s->items, m->systems, sizeof *s->items));
  TRY(arena_alloc(&s->arena, &s->mine, m->systems, sizeof *s->mine));
  TRY(arena_alloc(&s->arena, &s->outcomes, m->systems, sizeof *s->outcomes));
  return results_alloc(s);
}

static struct device_options device_options_of(const struct solve *s)
{
  const struct solve_task *t = s->task;
  return (struct device_options){.p = 1,
                                 .d = 1,
                                 .threads = t->threads,
                                 .variant = t->variant,
                                 .kind = t->device,
                                 .work = solve_work(s->shape),
                                 .local_rank = s->c->local_rank,
                                 .kernels = t->kernels};
}

/* The most bytes of GPU memory that solving takes, if device_open() would take a GPU; otherwise 0.
 * Solving also takes at most this number of page-locked bytes of the host. */
static gidx gpu_bytes(const struct solve *s)
{
  struct device dry = {0};
  struct device_options options = device_options_of(s);
  gidx forms;
  device_open_dry(&dry, &options, &forms);
  return strcmp(dry.kind, "cpu") ? device_arrow_bytes(&dry, s->sizes.largest) : 0;
}

/* ERR_MEMORY if the arrays need more than this rank's share of the free memory of its machine. */
static int memory_check(const struct solve *s)
{
  struct solve dry = *s;
  gidx present = memory_per_process(s->c->local_size);
  dry.arena = (struct arena){.is_dry = 1};
  TRY(arrays_alloc(&dry));
  gidx needed = (gidx)dry.arena.bytes + gpu_bytes(s);
  CHECK(needed <= present, ERR_MEMORY,
        "%lld bytes are needed (two batches as read %lld, exchanged %lld), %lld are present for "
        "each rank: lower --batch, if a batch has several systems, or start fewer ranks on each "
        "machine",
        (long long)needed, (long long)(SLOTS * s->sizes.read * (gidx)sizeof(real)),
        (long long)((s->sizes.sent + s->sizes.received) * (gidx)sizeof(real)), (long long)present);
  return OK;
}

/* Find the sizes, and check them. */
static int sizes_ready(struct solve *s)
{
  const struct batch_sizes *m = &s->sizes;
  TRY(device_check_fma());
  TRY(device_check_subnormals(s->task->threads));
  TRY(order_alloc(s, &s->arena));
  sizes_find(s);
  CHECK(s->c->size == 1 || imax(m->read, m->solve) < INT32_MAX, ERR_MEMORY,
        "a rank has %lld numbers of a batch, more than one exchange carries: solve this file on "
        "one rank",
        (long long)imax(m->read, m->solve));
  return memory_check(s);
}

static void array_pin(struct solve *s, real *array, gidx reals, int is_on)
{
  if (reals == 0) return;
  if (is_on)
    host_pin(&s->device, array, reals * (gidx)sizeof *array);
  else
    host_unpin(&s->device, array);
}

void solve_pin(struct solve *s, int is_on)
{
  const struct batch_sizes *m = &s->sizes;
  for (int i = 0; i < SLOTS; i++) {
    array_pin(s, s->read[i], m->read, is_on);
    if (s->c->rank) continue;
    array_pin(s, s->results[i].step_t, m->own_t, is_on);
    array_pin(s, s->results[i].step_b, m->own_b, is_on);
  }
  if (s->c->size > 1) array_pin(s, s->own_t, m->own_t + m->own_b, is_on);
}

static int arrays_open(struct solve *s)
{
  struct device_options options = device_options_of(s);
  TRY(arrays_alloc(s));
  s->out->batches = s->sizes.batches;
  s->out->memory = (gidx)s->arena.bytes;
  TRY(device_open(&s->device, &options));
  solve_pin(s, 1);
  TRY(worker_open(&s->reader));
  return worker_open(&s->writer);
}

int solve_open(struct solve *s)
{
  TRY(comm_agree(s->c, sizes_ready(s))); /* no rank allocates before all ranks have checked */
  return comm_agree(s->c, arrays_open(s));
}

int solve_plan(const struct solve_task *task, int ranks, struct solve_result *result)
{
  struct comm view = {.size = ranks};
  struct solve s = {.task = task, .shape = task->systems->shape, .c = &view};
  struct arena order = {0}; /* not dry: dealing really needs it */
  gidx program = memory_program();
  *result = (struct solve_result){0};
  int status = order_alloc(&s, &order);
  for (; status == OK && view.rank < ranks; view.rank++) {
    s.arena = (struct arena){.is_dry = 1};
    sizes_find(&s);
    status = arrays_alloc(&s);
    result->batches = s.sizes.batches;
    result->gpu = imax(result->gpu, gpu_bytes(&s));
    gidx held = program + (gidx)(order.bytes + s.arena.bytes) + gpu_bytes(&s);
    result->memory = imax(result->memory, held);
  }
  arena_free(&order);
  return status;
}
