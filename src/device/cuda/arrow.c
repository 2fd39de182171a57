/* SPDX-License-Identifier: BSD-3-Clause
 * Sub-batches alternate: while some are copied and solved, another one is filled or unpacked.  A
 * CPU device solves the systems that the kernels cannot take, and those that failed.  It also finds
 * out why a system failed, and tries it again (N.14, N.15). */
#include "device/cuda/arrow.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "device/cuda/arrow_subbatch.h"
#include "device/cuda/load.h"
#include "device/cuda/memory.h"

enum { LEAST_BYTES = 1 << 20 };
enum {
  /* Indices of kernels_load(): five teams, each with and without arrow_is_alone(); then one for
   * each arrow_rounds(). */
  TEAMS = 2 * 5 + ARROW_MAX_ROUNDS,
  MAX_FORMS = (ARROW_MAX_FRAME + 1) * (ARROW_MAX_COLUMNS + 1) * TEAMS,
  MAX_RECIPES = MAX_FORMS * LOT_KERNELS + 2
};

struct cuda_arrow {
  struct arrow_subbatch subbatches[PLAN_ARROW_LOTS];
  int n_subbatches;  /* sub-batches that a job uses */
  struct device cpu; /* opened when it is first needed */
  /* Flags of forms: 1 if their kernels were loaded, or failed to load. */
  char loaded[ARROW_MAX_FRAME + 1][ARROW_MAX_COLUMNS + 1][TEAMS], bus_loaded;
  struct subbatch_need *needs; /* [systems of a job] */
  gidx needs_capacity;
  struct subbatch_mapping mapping;
  gidx *rest, rest_capacity, n_rest; /* items that are left to the CPU */
  struct arrow_item *again;          /* these items as a job */
  gidx again_capacity;
};

static int arrow_open(struct cuda_state *s)
{
  if (s->arrow) return OK;
  s->arrow = calloc(1, sizeof *s->arrow);
  CHECK(s->arrow, ERR_MEMORY, "cannot allocate the state of arrow systems");
  for (int i = 0; i < PLAN_ARROW_LOTS; i++) TRY(subbatch_open(&s->arrow->subbatches[i]));
  return OK;
}

void cuda_arrow_close(struct cuda_state *s)
{
  struct cuda_arrow *w = s->arrow;
  if (!w) return;
  for (int i = 0; i < PLAN_ARROW_LOTS; i++) subbatch_close(&w->subbatches[i]);
  device_close(&w->cpu);
  free(w->needs);
  free(w->rest);
  free(w->again);
  free(w);
}

/* w->needs <- the needs of all systems.  Neighbours often have the same shape. */
static int needs_find(struct cuda_state *s, const struct arrow_job *job)
{
  struct cuda_arrow *w = s->arrow;
  TRY(array_reserve(&w->needs, &w->needs_capacity, job->count, sizeof *w->needs));
  for (gidx i = 0; i < job->count; i++) {
    const struct arrow_system *a = &job->items[i].system,
                              *before = &job->items[imax(i, 1) - 1].system;
    int same = i > 0 && before->d == a->d && before->k == a->k && before->n == a->n;
    w->needs[i] = same ? w->needs[i - 1] : subbatch_need_of(s, a);
  }
  return OK;
}

/* Load the kernels of all forms of a job at once, so that threads compile them in parallel. */
static int kernels_load(struct device *dev, const struct arrow_job *job)
{
  struct cuda_state *s = dev->state;
  struct kernel_recipe *recipes = NULL;
  gidx capacity = 0;
  int count = 0;
  const struct subbatch_mapping *m = &s->arrow->mapping;
  if ((m->is_fetched || m->is_returned) && !s->arrow->bus_loaded) {
    const struct kernel_shape any = {.d = 1, .top_k = 1};
    TRY(array_reserve(&recipes, &capacity, MAX_RECIPES, sizeof *recipes));
    kernel_recipe(KERNEL_ARROW_FETCH, &any, &recipes[count++]);
    kernel_recipe(KERNEL_ARROW_RETURN, &any, &recipes[count++]);
    s->arrow->bus_loaded = 1;
  }
  for (gidx i = 0; i < job->count; i++) {
    const struct subbatch_form *f = &s->arrow->needs[i].form;
    if (f->team == LOT_DECLINED) continue;
    int team = f->team == LOT_LONG ? 0 : f->team == WARP ? 1 : f->team == ARROW_BLOCK ? 2 : 3;
    if (f->held) team = 4;
    if (arrow_is_alone(f->k, f->team, f->mma, f->blocks)) team += 5;
    if (f->rounds) team = 9 + f->rounds;
    char *loaded = &s->arrow->loaded[f->d][f->k][team];
    if (*loaded) continue;
    if (!recipes) TRY(array_reserve(&recipes, &capacity, MAX_RECIPES, sizeof *recipes));
    count += subbatch_recipes(f, recipes + count);
    *loaded = 1;
  }
  int status = count ? cuda_load(dev, recipes, count) : OK;
  free(recipes);
  return status;
}

/* The range of host addresses of some arrays. */
struct span {
  uintptr_t begin, end;
};
static void span_add(struct span *s, const real *array, gidx count)
{
  uintptr_t at = (uintptr_t)array, after = at + (uintptr_t)count * sizeof(real);
  if (count <= 0) return;
  if (at < s->begin) s->begin = at;
  if (after > s->end) s->end = after;
}

/* Is the range empty, or page-locked as a whole?  *apart <- device address minus host address. */
static int is_pinned(const struct cuda_state *s, const struct span *span, ptrdiff_t *apart)
{
  const char *host = (const char *)span->begin;
  *apart = 0;
  if (span->begin > span->end) return 1;
  const char *device = cuda_pinned(s, host, (gidx)(span->end - span->begin));
  if (device) *apart = device - host;
  return device != NULL;
}

static void mapping_find(struct cuda_state *s, const struct arrow_job *job)
{
  struct subbatch_mapping *m = &s->arrow->mapping;
  struct span numbers = {UINTPTR_MAX, 0}, step_t = numbers, step_b = numbers;
  *m = (struct subbatch_mapping){0};
  if (s->n_pins == 0) return;
  for (gidx i = 0; i < job->count; i++) {
    const struct arrow_item *item = &job->items[i];
    const struct arrow_system *a = &item->system;
    gidx d = a->d, k = a->k;
    span_add(&numbers, a->h, a->n * d * d);
    span_add(&numbers, a->b, a->n * d * k);
    span_add(&numbers, a->g, a->n * d);
    span_add(&numbers, a->c, k * k);
    span_add(&numbers, a->g_b, k);
    span_add(&step_t, item->step_t, a->n * d);
    span_add(&step_b, item->step_b, k);
  }
  m->is_fetched = is_pinned(s, &numbers, &m->numbers);
  m->is_returned = is_pinned(s, &step_t, &m->step_t) && is_pinned(s, &step_b, &m->step_b);
}

static struct subbatch_size size_none(const struct cuda_arrow *w)
{
  return (struct subbatch_size){.is_fetched = w->mapping.is_fetched,
                                .is_returned = w->mapping.is_returned};
}

/* *all <- the size of all systems that are not declined; *largest <- the largest room of a system,
 * without systems of more than PLAN_ARROW_LARGEST bytes. */
static void needs_sum(const struct cuda_arrow *w, const struct arrow_job *job,
                      struct subbatch_size *all, struct subbatch_room *largest)
{
  struct subbatch_size none = size_none(w);
  const struct subbatch_need *last = NULL; /* the need whose room was computed last */
  *all = none;
  *largest = (struct subbatch_room){0, 0};
  for (gidx i = 0; i < job->count; i++) {
    const struct subbatch_need *need = &w->needs[i];
    if (need->form.team == LOT_DECLINED) continue;
    *all = subbatch_with(*all, need);
    if (last && need->in == last->in && need->out == last->out && need->units == last->units)
      continue;
    last = need;
    struct subbatch_size one = subbatch_with(none, need);
    struct subbatch_room r = subbatch_room_of(&one);
    if (r.device > PLAN_ARROW_LARGEST) continue;
    largest->device = imax(largest->device, r.device);
    largest->host = imax(largest->host, r.host);
  }
}

/* Make the room of a sub-batch such that all sub-batches are about equally large.  The first one
 * then starts soon. */
static void room_even(struct subbatch_room *room, const struct subbatch_size *all, gidx largest)
{
  gidx bytes = subbatch_room_of(all).device, subbatches = ceil_div(bytes, imax(room->device, 1));
  room->device = imin(room->device, bytes / imax(subbatches, 1) + largest);
}

/* Reserve memory for `subbatches` sub-batches.  If memory is short, reserve it for fewer, but at
 * least for one, and release the memory of all others. */
static int subbatches_take(struct cuda_state *s, int subbatches, const struct subbatch_room *room)
{
  struct cuda_arrow *w = s->arrow;
  int status = OK;
  for (w->n_subbatches = 0; w->n_subbatches < subbatches && !status; w->n_subbatches += !status)
    status = subbatch_reserve(s, &w->subbatches[w->n_subbatches], room);
  if (status != ERR_MEMORY) return status;
  for (int i = w->n_subbatches; i < PLAN_ARROW_LOTS; i++) subbatch_release(&w->subbatches[i]);
  if (w->n_subbatches == 0) return status;
  status_clear();
  return OK;
}

/* *room <- the room of a sub-batch for this job; reserves memory for the sub-batches.  If memory is
 * short, there are fewer sub-batches, and then smaller ones.  Systems that do not fit are left to
 * the CPU. */
static int subbatches_reserve(struct cuda_state *s, const struct arrow_job *job,
                              struct subbatch_room *room)
{
  struct subbatch_size all;
  struct subbatch_room largest;
  needs_sum(s->arrow, job, &all, &largest);
  *room = subbatch_room_of(&all);
  int status;
  if (!job->repeats) {
    gidx host = all.is_fetched ? PLAN_ARROW_LOT / 4 : PLAN_ARROW_LOT;
    room->device = imin(room->device, imax(largest.device, PLAN_ARROW_LOT));
    room->host = imin(room->host, imax(largest.host, host));
  }
  for (;; room->device /= 2, room->host /= 2) {
    status = subbatches_take(s, subbatch_fits(&all, room) ? 1 : PLAN_ARROW_LOTS, room);
    if (status != ERR_MEMORY || job->repeats || room->device <= LEAST_BYTES) break;
    status_clear();
  }
  room_even(room, &all, largest.device);
  return status;
}

/* Fill a sub-batch with systems from *next on.  Systems for the CPU are put on its list. */
static int subbatch_fill(struct device *dev, struct arrow_subbatch *subbatch, struct arrow_job *job,
                         const struct subbatch_room *room, gidx *next)
{
  const struct cuda_state *s = dev->state;
  struct cuda_arrow *w = s->arrow;
  struct subbatch_size none = size_none(w);
  TRY(subbatch_begin(subbatch, job, job->count - *next, &w->mapping));
  for (; *next < job->count; ++*next) {
    const struct subbatch_need *need = &w->needs[*next];
    int is_declined = need->form.team == LOT_DECLINED;
    struct subbatch_size with = subbatch_with(subbatch->size, need);
    if (!is_declined && subbatch_fits(&with, room)) {
      subbatch_add(subbatch, need, *next, &with);
      continue;
    }
    struct subbatch_size one = subbatch_with(none, need);
    if (!is_declined && subbatch_fits(&one, room)) break; /* goes into the next sub-batch */
    w->rest[w->n_rest++] = *next;
    dev->counts.declined++;
  }
  return OK;
}

static int subbatches_run(struct device *dev, struct arrow_job *job,
                          const struct subbatch_room *room)
{
  struct cuda_arrow *w = ((struct cuda_state *)dev->state)->arrow;
  const struct arrow_subbatch *last = NULL; /* the one that was started last */
  gidx next = 0, failed = 0;
  int turn = 0;
  for (int i = 0; i < PLAN_ARROW_LOTS; i++)
    w->subbatches[i].job = NULL; /* an earlier job may have failed */
  for (; next < job->count; turn = (turn + 1) % w->n_subbatches) {
    struct arrow_subbatch *subbatch = &w->subbatches[turn];
    gidx before = w->n_rest;
    TRY(subbatch_finish(subbatch, w->rest, &w->n_rest));
    failed += w->n_rest - before;
    TRY(subbatch_fill(dev, subbatch, job, room, &next));
    TRY(subbatch_start(dev, subbatch, last));
    last = subbatch;
  }
  for (int r = 0; r < job->repeats; r++)
    TRY(subbatch_measure(dev, &w->subbatches[0], &job->seconds[r]));
  gidx before = w->n_rest;
  for (int i = 0; i < w->n_subbatches; i++, turn = (turn + 1) % w->n_subbatches)
    TRY(subbatch_finish(&w->subbatches[turn], w->rest,
                        &w->n_rest)); /* in the order in which they were started */
  dev->counts.retried += failed + w->n_rest - before;
  return OK;
}

/* Solve the remaining systems on the CPU. */
static int rest_solve(struct cuda_state *s, struct arrow_job *job)
{
  struct cuda_arrow *w = s->arrow;
  struct device_options options = {
      .p = 1, .d = 1, .threads = s->options.threads, .variant = s->options.variant};
  if (w->n_rest == 0) return OK;
  if (!w->cpu.backend) TRY(device_open(&w->cpu, &options));
  TRY(array_reserve(&w->again, &w->again_capacity, w->n_rest, sizeof *w->again));
  for (gidx i = 0; i < w->n_rest; i++) w->again[i] = job->items[w->rest[i]];
  struct arrow_job rest = {.options = job->options, .items = w->again, .count = w->n_rest};
  TRY(device_arrow(&w->cpu, &rest));
  for (gidx i = 0; i < w->n_rest; i++) job->items[w->rest[i]].outcome = w->again[i].outcome;
  return OK;
}

/* Reserve everything that a job needs; *room <- the room of a sub-batch. */
static int job_ready(struct device *dev, const struct arrow_job *job, struct subbatch_room *room)
{
  struct cuda_state *s = dev->state;
  TRY(arrow_open(s));
  TRY(array_reserve(&s->arrow->rest, &s->arrow->rest_capacity, job->count, sizeof(gidx)));
  TRY(needs_find(s, job));
  mapping_find(s, job);
  TRY(kernels_load(dev, job));
  return subbatches_reserve(s, job, room);
}

int cuda_arrow_ready(struct device *dev, const struct arrow_job *job)
{
  struct subbatch_room room;
  return job_ready(dev, job, &room);
}

int cuda_arrow(struct device *dev, struct arrow_job *job)
{
  struct cuda_state *s = dev->state;
  struct subbatch_room room;
  TRY(job_ready(dev, job, &room));
  s->arrow->n_rest = 0;
  int status = subbatches_run(dev, job, &room);
  for (int i = 0; i < PLAN_ARROW_LOTS && status; i++) subbatch_wait(&s->arrow->subbatches[i]);
  return status ? status : rest_solve(s, job);
}
