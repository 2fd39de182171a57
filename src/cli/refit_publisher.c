/* SPDX-License-Identifier: BSD-3-Clause
 * All that the worker reads and changes is its own: arrays are copied, and so are the structs of
 * the job, run and communicator included, in which statuses are kept. */
#include "cli/refit_publisher.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/num.h"
#include "base/status.h"
#include "base/team.h"

struct refit_sweep {
  struct run run;
  struct refit_task task;
  struct refit_state state;
  struct refit_files files;
  struct metrics metrics;
  struct refit_result result;
  struct phase *write; /* borrowed */
  struct arena arena;
  /* Copies. */
  idx *atoms;
  float *score;
  real *codes, *frames;
  struct atom_step *steps;
  gidx *density;
  struct history_line *lines; /* [max_lines] */
  gidx max_lines;
};

static int arrays_alloc(struct refit_sweep *s, const struct refit_state *f)
{
  gidx entries = (gidx)f->n * f->s;
  TRY(arena_alloc(&s->arena, &s->atoms, entries, sizeof *s->atoms));
  TRY(arena_alloc(&s->arena, &s->score, entries, sizeof *s->score));
  TRY(arena_alloc(&s->arena, &s->codes, entries * f->d, sizeof *s->codes));
  TRY(arena_alloc(&s->arena, &s->frames, (gidx)f->k * f->d * f->p, sizeof *s->frames));
  TRY(arena_alloc(&s->arena, &s->steps, f->k, sizeof *s->steps));
  return arena_alloc(&s->arena, &s->density, f->k, sizeof *s->density);
}

static int sweep_alloc(struct refit_publisher *p, const struct refit_state *f)
{
  TRY(struct_alloc(&p->sweep, sizeof *p->sweep));
  return arrays_alloc(p->sweep, f);
}

static void sweep_free(struct refit_publisher *p)
{
  if (p->sweep) arena_free(&p->sweep->arena);
  free(p->sweep);
  p->sweep = NULL;
}

int refit_publisher_open(struct refit_publisher *p, const struct refit_state *f)
{
  enum { PART = 4 }; /* of the memory that this rank may take */
  struct refit_sweep dry = {.arena.is_dry = 1};
  TRY(arrays_alloc(&dry, f));
  gidx bytes = (gidx)dry.arena.bytes, room = memory_share(f->c->local_size) / PART;
  int status = bytes > room ? ERR_MEMORY : sweep_alloc(p, f);
  if (!status) return worker_open(&p->worker);
  if (status != ERR_MEMORY) return status;
  sweep_free(p);
  status_clear();
  log_info("files are written between sweeps: a copy of the state takes %.1f MB, of %.1f",
           1e-6 * (double)bytes, 1e-6 * (double)room);
  return OK;
}

int refit_publisher_is_busy(struct refit_publisher *p)
{
  return p->worker.state && worker_is_busy(&p->worker);
}

int refit_publisher_wait(struct refit_publisher *p)
{
  return p->worker.state ? worker_wait(&p->worker) : OK;
}

/* The worker's job. */
static int sweep_publish(void *argument)
{
  struct refit_sweep *s = argument;
  phase_begin(s->write);
  TRY(refit_dictionary_write(&s->files, &s->run, &s->result));
  TRY(refit_supports_write(&s->files, &s->run, &s->result));
  sweep_files_end(&s->files.sweep);
  phase_end(s->write, 0);
  return OK;
}

/* An array to copy, by several threads. */
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

static void arrays_copy(struct refit_sweep *s, const struct refit_result *r, int threads)
{
  const struct refit_state *f = r->state;
  gidx entries = (gidx)f->n * f->s, frame = (gidx)f->d * f->p;
  array_copy(threads, s->atoms, f->atoms, entries, sizeof *f->atoms);
  array_copy(threads, s->score, f->score, entries, sizeof *f->score);
  array_copy(threads, s->codes, f->codes, entries * f->d, sizeof *f->codes);
  array_copy(threads, s->frames, f->frames, f->k * frame, sizeof *f->frames);
  array_copy(threads, s->steps, r->steps, f->k, sizeof *r->steps);
  array_copy(threads, s->density, r->metrics->density, f->k, sizeof *s->density);
}

/* Structs whose arrays are the copies. */
static void structs_copy(struct refit_sweep *s, const struct refit_publisher *p,
                         const struct refit_result *r)
{
  s->run = *p->run;
  s->task = *r->state->task;
  s->task.threads = p->threads;
  s->state = *r->state;
  s->state.task = &s->task;
  s->state.c = &s->run.comm;
  s->state.atoms = s->atoms;
  s->state.score = s->score;
  s->state.codes = s->codes;
  s->state.frames = s->frames;
  s->files = *p->files;
  s->files.lines = s->lines;
  s->metrics = *r->metrics;
  s->metrics.density = s->density;
  s->result = (struct refit_result){&s->state, r->inputs, &s->metrics, s->steps};
  s->write = p->write;
}

/* lines <- as the file has them; room for twice as many as are needed. */
static int lines_copy(struct refit_sweep *s, const struct refit_files *files)
{
  gidx n = files->facts.sweeps + 1;
  if (n > s->max_lines) {
    s->max_lines = 2 * n;
    TRY(arena_alloc(&s->arena, &s->lines, s->max_lines, sizeof *s->lines));
  }
  memcpy(s->lines, files->lines, (size_t)n * sizeof *s->lines);
  return OK;
}

int refit_publisher_begin(struct refit_publisher *p, const struct refit_result *result)
{
  TRY(refit_publisher_wait(p));
  TRY(lines_copy(p->sweep, p->files));
  arrays_copy(p->sweep, result, p->threads);
  structs_copy(p->sweep, p, result);
  return worker_start(&p->worker, sweep_publish, p->sweep);
}

void refit_publisher_close(struct refit_publisher *p)
{
  worker_close(&p->worker);
  sweep_free(p);
  *p = (struct refit_publisher){0};
}
