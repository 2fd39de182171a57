/* SPDX-License-Identifier: BSD-3-Clause
 * Two lots take turns: while one is copied and solved, the other is filled and unpacked.  What the
 * kernels do not take, and what fails in them, is solved by a CPU device beside this one, which
 * also finds out why a system failed and tries it again (N.14, N.15). */
#include "device/cuda/arrow.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "device/cuda/arrow_lot.h"
#include "device/cuda/load.h"
#include "device/cuda/memory.h"

enum { LOTS = 2, LEAST_BYTES = 1 << 20 };
enum {
  TEAMS = 5 + ARROW_MAX_ROUNDS,
  MAX_FORMS = (ARROW_MAX_FRAME + 1) * (ARROW_MAX_COLUMNS + 1) * TEAMS
};

struct cuda_arrow {
  struct cuda_lot lots[LOTS];
  struct device cpu; /* opened when it is needed */
  /* Forms whose kernels are loaded, or were tried. */
  char loaded[ARROW_MAX_FRAME + 1][ARROW_MAX_COLUMNS + 1][TEAMS], fetch_loaded;
  struct lot_need *needs; /* of the systems of a job */
  gidx needs_capacity;
  int is_fetched;                    /* the device reads systems where the caller has them, */
  ptrdiff_t apart;                   /* so many bytes from where the host does */
  gidx *rest, rest_capacity, n_rest; /* items that are left to the CPU */
  struct arrow_item *again;          /* the same as a job */
  gidx again_capacity;
};

static int arrow_open(struct cuda_state *s)
{
  if (s->arrow) return OK;
  s->arrow = calloc(1, sizeof *s->arrow);
  CHECK(s->arrow, ERR_MEMORY, "cannot allocate the state of arrow systems");
  for (int i = 0; i < LOTS; i++) TRY(lot_open(&s->arrow->lots[i]));
  return OK;
}

void cuda_arrow_close(struct cuda_state *s)
{
  struct cuda_arrow *w = s->arrow;
  if (!w) return;
  for (int i = 0; i < LOTS; i++) lot_close(&w->lots[i]);
  device_close(&w->cpu);
  free(w->needs);
  free(w->rest);
  free(w->again);
  free(w);
}

/* w->needs <- of all systems.  Neighbours are often of one shape. */
static int needs_find(struct cuda_state *s, const struct arrow_job *job)
{
  struct cuda_arrow *w = s->arrow;
  TRY(array_reserve(&w->needs, &w->needs_capacity, job->count, sizeof *w->needs));
  for (gidx i = 0; i < job->count; i++) {
    const struct arrow_system *a = &job->items[i].system,
                              *before = &job->items[imax(i, 1) - 1].system;
    int same = i > 0 && before->d == a->d && before->k == a->k && before->n == a->n;
    w->needs[i] = same ? w->needs[i - 1] : lot_need_of(s, a);
  }
  return OK;
}

/* Load the kernels of all forms of a job, side by side because the first job compiles them. */
static int kernels_load(struct device *dev, const struct arrow_job *job)
{
  struct cuda_state *s = dev->state;
  struct kernel_recipe *recipes = NULL;
  gidx capacity = 0;
  int count = 0;
  if (s->arrow->is_fetched && !s->arrow->fetch_loaded) {
    TRY(array_reserve(&recipes, &capacity, MAX_FORMS * LOT_KERNELS + 1, sizeof *recipes));
    kernel_recipe(KERNEL_ARROW_FETCH, &(struct kernel_shape){.d = 1, .top_k = 1},
                  &recipes[count++]);
    s->arrow->fetch_loaded = 1;
  }
  for (gidx i = 0; i < job->count; i++) {
    const struct lot_form *f = &s->arrow->needs[i].form;
    if (f->team == LOT_DECLINED) continue;
    int team = f->team == LOT_LONG ? 0 : f->team == WARP ? 1 : f->team == ARROW_BLOCK ? 2 : 3;
    if (f->held) team = 4;
    if (f->rounds) team = 4 + f->rounds;
    char *loaded = &s->arrow->loaded[f->d][f->k][team];
    if (*loaded) continue;
    if (!recipes)
      TRY(array_reserve(&recipes, &capacity, MAX_FORMS * LOT_KERNELS + 1, sizeof *recipes));
    count += lot_recipes(f, recipes + count);
    *loaded = 1;
  }
  int status = count ? cuda_load(dev, recipes, count) : OK;
  free(recipes);
  return status;
}

/* Do all numbers of a job stand in one piece of memory that is page-locked?  *apart <- from the
 * host's addresses to the device's. */
static int is_pinned(const struct cuda_state *s, const struct arrow_job *job, ptrdiff_t *apart)
{
  uintptr_t begin = UINTPTR_MAX, end = 0;
  if (s->n_pins == 0) return 0;
  for (gidx i = 0; i < job->count; i++) {
    const struct arrow_system *a = &job->items[i].system;
    gidx d = a->d, k = a->k;
    const real *arrays[] = {a->h, a->b, a->g, a->c, a->g_b};
    const gidx counts[] = {a->n * d * d, a->n * d * k, a->n * d, k * k, k};
    for (int j = 0; j < LENGTH(arrays); j++) {
      if (counts[j] <= 0) continue;
      uintptr_t at = (uintptr_t)arrays[j], after = at + (uintptr_t)counts[j] * sizeof(real);
      if (at < begin) begin = at;
      if (after > end) end = after;
    }
  }
  if (begin > end) return 0;
  const char *host = (const char *)begin, *device = cuda_pinned(s, host, (gidx)(end - begin));
  if (device) *apart = device - host;
  return device != NULL;
}

/* *room <- of a lot for this job, and memory for both.  Where memory is short, lots are smaller,
 * and systems that do not fit are left to the CPU. */
static int lots_reserve(struct cuda_state *s, const struct arrow_job *job, struct lot_room *room)
{
  int is_fetched = s->arrow->is_fetched;
  struct lot_size all = {.is_fetched = is_fetched}, none = all;
  struct lot_room largest = {0, 0};
  for (gidx i = 0; i < job->count; i++) {
    const struct lot_need *need = &s->arrow->needs[i];
    if (need->form.team == LOT_DECLINED) continue;
    struct lot_size one = lot_with(none, need);
    struct lot_room r = lot_room_of(&one);
    all = lot_with(all, need);
    if (r.device > PLAN_ARROW_LARGEST) continue;
    largest.device = imax(largest.device, r.device);
    largest.host = imax(largest.host, r.host);
  }
  *room = lot_room_of(&all);
  int lots = job->repeats ? 1 : LOTS, status;
  if (!job->repeats) {
    gidx host = is_fetched ? PLAN_ARROW_LOT / 4 : PLAN_ARROW_LOT;
    room->device = imin(room->device, imax(largest.device, PLAN_ARROW_LOT));
    room->host = imin(room->host, imax(largest.host, host));
  }
  for (;; room->device /= 2, room->host /= 2) {
    status = OK;
    for (int i = 0; i < lots && !status; i++) status = lot_reserve(s, &s->arrow->lots[i], room);
    if (status != ERR_MEMORY || job->repeats || room->device <= LEAST_BYTES) return status;
    status_clear();
  }
}

/* Fill a lot with systems from *next on; those that are declined are noted. */
static int lot_fill(struct device *dev, struct cuda_lot *lot, struct arrow_job *job,
                    const struct lot_room *room, gidx *next)
{
  const struct cuda_state *s = dev->state;
  struct cuda_arrow *w = s->arrow;
  struct lot_size none = {.is_fetched = w->is_fetched};
  TRY(lot_begin(lot, job, job->count - *next, w->is_fetched));
  lot->apart = w->apart;
  for (; *next < job->count; ++*next) {
    const struct lot_need *need = &w->needs[*next];
    struct lot_size one = lot_with(none, need), with = lot_with(lot->size, need);
    if (need->form.team == LOT_DECLINED || !lot_fits(&one, room)) {
      w->rest[w->n_rest++] = *next;
      dev->counts.declined++;
      continue;
    }
    if (!lot_fits(&with, room)) break;
    lot_add(lot, need, *next);
  }
  return OK;
}

static int lots_run(struct device *dev, struct arrow_job *job, const struct lot_room *room)
{
  struct cuda_arrow *w = ((struct cuda_state *)dev->state)->arrow;
  gidx next = 0, failed = 0;
  for (int i = 0; i < LOTS; i++) w->lots[i].job = NULL; /* after a job that failed */
  for (int turn = 0; next < job->count; turn = !turn) {
    struct cuda_lot *lot = &w->lots[turn];
    gidx before = w->n_rest;
    TRY(lot_finish(lot, w->rest, &w->n_rest));
    failed += w->n_rest - before;
    TRY(lot_fill(dev, lot, job, room, &next));
    TRY(lot_start(dev, lot));
  }
  for (int r = 0; r < job->repeats; r++) TRY(lot_measure(dev, &w->lots[0], &job->seconds[r]));
  gidx before = w->n_rest;
  for (int i = 0; i < LOTS; i++) TRY(lot_finish(&w->lots[i], w->rest, &w->n_rest));
  dev->counts.retried += failed + w->n_rest - before;
  return OK;
}

/* Solve on the CPU what is left. */
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

/* Everything that a job needs; *room <- of a lot. */
static int job_ready(struct device *dev, const struct arrow_job *job, struct lot_room *room)
{
  struct cuda_state *s = dev->state;
  TRY(arrow_open(s));
  TRY(array_reserve(&s->arrow->rest, &s->arrow->rest_capacity, job->count, sizeof(gidx)));
  TRY(needs_find(s, job));
  s->arrow->is_fetched = is_pinned(s, job, &s->arrow->apart);
  TRY(kernels_load(dev, job));
  return lots_reserve(s, job, room);
}

int cuda_arrow_ready(struct device *dev, const struct arrow_job *job)
{
  struct lot_room room;
  return job_ready(dev, job, &room);
}

int cuda_arrow(struct device *dev, struct arrow_job *job)
{
  struct cuda_state *s = dev->state;
  struct lot_room room;
  TRY(job_ready(dev, job, &room));
  s->arrow->n_rest = 0;
  int status = lots_run(dev, job, &room);
  for (int i = 0; i < LOTS && status; i++) lot_wait(&s->arrow->lots[i]);
  return status ? status : rest_solve(s, job);
}
