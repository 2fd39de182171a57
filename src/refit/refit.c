/* SPDX-License-Identifier: BSD-3-Clause
 * Classes in order, cut into batches that fit memory; how they are cut changes no bit, since the
 * atoms of a class share no row. */
#include "refit/refit.h"

#include "base/num.h"
#include "base/log.h"
#include "base/status.h"
#include "refit/batch_systems.h"
#include "refit/step.h"

void refit_phases(struct phase phases[REFIT_PHASES])
{
  static const char *const names[REFIT_PHASES] = {"color", "residual", "batch", "assemble",
                                                  "solve", "move",     "steps", "codes",
                                                  "route", "metrics",  "write"};
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

/* Assemble, solve and move the atoms of one batch.  A failure of this rank after the last exchange
 * is left to that of the next batch. */
static int batch_refit(struct refit_state *f, const idx *atoms, idx count, idx q,
                       struct phase *phases, struct atom_step *steps, struct sweep_counts *counts)
{
  struct atom_batch b = {0};
  struct batch_systems a;
  struct arena arena = {0};
  struct atom_step *now = NULL;
  phase_begin(&phases[REFIT_BATCH]);
  LOCALLY(f->c, arena_alloc(&arena, &now, count, sizeof *now));
  LOCALLY(f->c, atom_batch_make(&b, f, atoms, count));
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

int refit_sweep(struct refit_state *f, const struct classes *classes, idx q, const char *what,
                struct phase *phases, struct atom_step *steps, struct sweep_counts *counts)
{
  idx max = 1;
  gidx done = 0, total = classes->start[classes->count];
  struct progress progress;
  *counts = (struct sweep_counts){0};
  for (idx a = 0; a < f->k; a++)
    steps[a] = (struct atom_step){.pair = det_pair_failed(), .log_det = nan_canonical()};
  TRY(comm_agree(f->c, atom_batch_max(f, refit_batch_bytes, q, &max)));
  phase_begin(&phases[REFIT_RESIDUALS]);
  TRY(comm_agree(f->c, refit_state_residuals(f)));
  phase_end(&phases[REFIT_RESIDUALS], 0);
  progress_start(&progress, what, "atoms", total);
  for (idx color = 0; color < classes->count; color++)
    for (gidx at = classes->start[color]; at < classes->start[color + 1]; at += max) {
      gidx left = classes->start[color + 1] - at;
      idx count = left < max ? (idx)left : max;
      TRY(batch_refit(f, classes->atoms + at, count, q, phases, steps, counts));
      progress_show(&progress, done += count);
    }
  return comm_agree(f->c, OK);
}
