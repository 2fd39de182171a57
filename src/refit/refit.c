/* SPDX-License-Identifier: BSD-3-Clause
 * A sweep goes through the classes in order.  Each class is divided into batches that fit in
 * memory.  The division changes no bit, since the atoms of a class share no row.  So a sweep may be
 * ended after any batch, and resumed with other batches. */
#include "refit/refit.h"

#include "base/num.h"
#include "base/log.h"
#include "base/status.h"
#include "refit/batch_systems.h"
#include "refit/frames.h"
#include "refit/replay.h"
#include "refit/step.h"

void refit_phases(struct phase phases[REFIT_PHASES])
{
  static const char *const names[REFIT_PHASES] = {"color", "residual", "batch", "assemble",
                                                  "solve", "move",     "steps", "codes",
                                                  "route", "metrics",  "write", "wait"};
  for (int i = 0; i < REFIT_PHASES; i++) phases[i] = (struct phase){.name = names[i]};
}

static void steps_count(const struct atom_step *step, struct sweep_counts *counts)
{
  counts->accepted += step->accepted;
  counts->rejected += !step->accepted;
  counts->escalated += step->retries > 0;
}

int refit_batch_bytes(const struct refit_state *f, const struct atom_batch *b, idx q, gidx *bytes)
{
  struct batch_systems_bytes systems;
  gidx step;
  TRY(batch_systems_bytes(f, b, q, &systems));
  TRY(atom_batch_step_bytes(f, b, q, &step));
  *bytes = (gidx)b->arena.bytes + imax(systems.peak, systems.held + step);
  return OK;
}

/* Assemble, solve and move the atoms of one batch.  Ranks do not check for failures here: all
 * ranks learn of a failure in sweep_poll(). */
static int batch_refit(struct refit_state *f, const idx *atoms, idx count, idx q,
                       struct phase *phases, struct atom_step *steps, struct sweep_counts *counts)
{
  struct atom_batch b = {0};
  struct batch_systems a;
  struct arena arena = {0};
  struct atom_step *now = NULL;
  phase_begin(&phases[REFIT_BATCH]);
  if (comm_proceeds(f->c))
    TRY(comm_record_needed(f->c, arena_alloc(&arena, &now, count, sizeof *now)));
  if (comm_proceeds(f->c)) TRY(comm_record_needed(f->c, atom_batch_make(&b, f, atoms, count)));
  phase_end(&phases[REFIT_BATCH], 0);
  phase_begin(&phases[REFIT_ASSEMBLE]);
  TRY(batch_systems_make(&a, f, &b, q));
  phase_end(&phases[REFIT_ASSEMBLE], 0);
  TRY(atom_batch_step(f, &b, &a, &phases[REFIT_SOLVE], &phases[REFIT_MOVE], now));
  for (idx m = 0; m < count; m++) {
    steps[b.atom[m]] = now[m];
    steps_count(now + m, counts);
  }
  batch_systems_free(&a);
  atom_batch_free(&b);
  arena_free(&arena);
  return OK;
}

/* A sweep in progress. */
struct sweep {
  struct refit_state *f;
  const struct sweep_task *task;
  struct phase *phases;
  struct atom_step *steps;
  struct sweep_counts *counts;
  idx max;   /* largest number of atoms of a batch */
  gidx done; /* atoms done */
  /* Since the last sweep_poll(): */
  idx batches;
  double work;
};

/* May a second have passed since the last poll?  It is estimated from counts that all ranks have,
 * so that short batches need no exchange for it. */
static int is_due(struct sweep *w, const idx *atoms, idx count)
{
  enum { BATCHES = 32 }; /* if ranks wait for each other, these may take a part of a second */
  static const double RANK = 0x1p28; /* multiply-adds of a rank */
  const struct refit_state *f = w->f;
  double rows = 0;
  if (!w->task->watch.look) return 0;
  for (idx i = 0; i < count; i++) rows += (double)refit_atom_rows(f, atoms[i]);
  w->work += rows * f->p * f->d * (4 + w->task->q);
  if (++w->batches < BATCHES && w->work < RANK * f->c->size) return 0;
  w->batches = 0;
  w->work = 0;
  return 1;
}

/* Call the watch of the sweep; after: as in struct sweep_point. */
static int sweep_poll(struct sweep *w, double after, int *stop)
{
  const struct sweep_watch *watch = &w->task->watch;
  const struct sweep_point at = {w->done, w->f->frames, w->steps, after};
  TRY(comm_agree(w->f->c, OK));
  TRY(refit_frames_sync(w->f));
  return watch->look ? watch->look(watch->self, &at, stop) : OK;
}

/* Do the next batch; *stop <- the sweep ends after this batch. */
static int batch_next(struct sweep *w, const idx *atoms, idx count, int *stop)
{
  TRY(batch_refit(w->f, atoms, count, w->task->q, w->phases, w->steps, w->counts));
  w->done += count;
  if (!is_due(w, atoms, count)) return OK;
  comm_lockstep_end(w->f->c); /* the watch may take time */
  TRY(sweep_poll(w, 0, stop));
  comm_lockstep_begin(w->f->c);
  return OK;
}

/* Compute the residuals at the start of the sweep, then repeat the moves that an earlier run made.
 */
static int sweep_begin(struct sweep *w)
{
  const struct sweep_start *start = &w->task->start;
  const struct classes *classes = w->task->classes;
  struct refit_state *f = w->f;
  for (idx a = 0; a < f->k; a++)
    w->steps[a] = (struct atom_step){.pair = det_pair_failed(), .log_det = nan_canonical()};
  TRY(comm_agree(f->c, atom_batch_max(f, refit_batch_bytes, w->task->q, &w->max)));
  phase_begin(&w->phases[REFIT_RESIDUALS]);
  TRY(comm_agree(f->c, refit_state_residuals(f)));
  if (start->atoms) {
    TRY(start->take(start->self, f->frames, w->steps));
    TRY(refit_frames_send(f));
    TRY(comm_agree(f->c, moves_replay(f, classes, w->max, start, w->steps)));
  }
  phase_end(&w->phases[REFIT_RESIDUALS], 0);
  for (gidx i = 0; i < start->atoms; i++) steps_count(w->steps + classes->atoms[i], w->counts);
  w->done = start->atoms;
  return OK;
}

/* Do the remaining batches, or as many as the watch allows. */
static int batches_run(struct sweep *w, int *stopped)
{
  const struct classes *classes = w->task->classes;
  struct progress progress;
  progress_start(&progress, w->task->what, "atoms", classes->start[classes->count]);
  progress.before = w->done;
  for (idx color = 0; color < classes->count; color++)
    while (w->done < classes->start[color + 1] && !*stopped) {
      idx count = (idx)imin(classes->start[color + 1] - w->done, w->max);
      TRY(batch_next(w, classes->atoms + w->done, count, stopped));
      progress_show(&progress, w->done);
    }
  return OK;
}

int refit_sweep(struct refit_state *f, const struct sweep_task *task, struct phase *phases,
                struct atom_step *steps, struct sweep_counts *counts, int *stopped)
{
  struct sweep w = {f, task, phases, steps, counts, .max = 1};
  *counts = (struct sweep_counts){0};
  *stopped = 0;
  TRY(sweep_begin(&w));
  comm_lockstep_begin(f->c); /* batches do not agree on failures; sweep_poll() does */
  TRY(batches_run(&w, stopped));
  comm_lockstep_end(f->c);
  return *stopped ? comm_agree(f->c, OK) : sweep_poll(&w, task->after, stopped);
}
