/* SPDX-License-Identifier: BSD-3-Clause
 * Arrays and structs are copied.  The communicator is copied, too, so that the writing thread
 * records the statuses of its calls in the copy. */
#include "refit/state_copy.h"

#include <string.h>

#include "base/log.h"
#include "base/num.h"
#include "base/status.h"
#include "base/team.h"

static int arrays_alloc(struct state_copy *s, const struct refit_state *f)
{
  gidx entries = (gidx)f->n * f->s;
  TRY(arena_alloc(&s->arena, &s->atoms, entries, sizeof *s->atoms));
  TRY(arena_alloc(&s->arena, &s->score, entries, sizeof *s->score));
  TRY(arena_alloc(&s->arena, &s->codes, entries * f->d, sizeof *s->codes));
  TRY(arena_alloc(&s->arena, &s->frames, (gidx)f->k * f->d * f->p, sizeof *s->frames));
  TRY(arena_alloc(&s->arena, &s->steps, f->k, sizeof *s->steps));
  return arena_alloc(&s->arena, &s->density, f->k, sizeof *s->density);
}

int state_copy_open(struct state_copy *s, const struct refit_state *f, int *is_open)
{
  enum { PART = 4 }; /* 1 / PART of the memory that this rank may take */
  struct state_copy dry = {.arena.is_dry = 1};
  TRY(arrays_alloc(&dry, f));
  gidx bytes = (gidx)dry.arena.bytes, room = memory_per_process(f->c->local_size) / PART;
  int status = bytes > room ? ERR_MEMORY : arrays_alloc(s, f);
  *is_open = !status;
  if (status != ERR_MEMORY) return status;
  state_copy_free(s);
  status_clear();
  log_info("files are written between sweeps: a copy of the state takes %.1f MB, and may take "
           "%.1f MB",
           1e-6 * (double)bytes, 1e-6 * (double)room);
  return OK;
}

/* An array that several threads copy. */
struct copying {
  char *to;
  const char *from;
  gidx bytes;
};
enum { PIECE_BYTES = 1 << 20 };

static void piece_copy(void *self, gidx piece)
{
  const struct copying *c = self;
  gidx at = piece * PIECE_BYTES;
  memcpy(c->to + at, c->from + at, (size_t)imin(c->bytes - at, PIECE_BYTES));
}

static void array_copy(int threads, void *to, const void *from, gidx count, size_t size)
{
  struct copying c = {to, from, count * (gidx)size};
  team_run(threads, ceil_div(c.bytes, PIECE_BYTES), piece_copy, &c);
}

/* Copy the structs, and set their pointers to the copied arrays. */
static void structs_copy(struct state_copy *s, const struct refit_state *f,
                         const struct metrics *metrics)
{
  s->task = *f->task;
  s->c = *f->c;
  s->state = *f;
  s->state.task = &s->task;
  s->state.c = &s->c;
  s->state.atoms = s->atoms;
  s->state.score = s->score;
  s->state.codes = s->codes;
  s->state.frames = s->frames;
  s->metrics = *metrics;
  s->metrics.density = s->density;
}

void state_copy_take(struct state_copy *s, const struct refit_state *f,
                     const struct metrics *metrics, const struct atom_step *steps, int threads)
{
  gidx entries = (gidx)f->n * f->s, frame = (gidx)f->d * f->p;
  array_copy(threads, s->atoms, f->atoms, entries, sizeof *f->atoms);
  array_copy(threads, s->score, f->score, entries, sizeof *f->score);
  array_copy(threads, s->codes, f->codes, entries * f->d, sizeof *f->codes);
  array_copy(threads, s->frames, f->frames, f->k * frame, sizeof *f->frames);
  array_copy(threads, s->steps, steps, f->k, sizeof *steps);
  array_copy(threads, s->density, metrics->density, f->k, sizeof *s->density);
  structs_copy(s, f, metrics);
}

void state_copy_free(struct state_copy *s)
{
  arena_free(&s->arena);
  *s = (struct state_copy){0};
}
