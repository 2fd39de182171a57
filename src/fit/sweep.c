/* SPDX-License-Identifier: BSD-3-Clause
 * A sweep: atoms move, unused atoms are replaced, and all atoms are rounded.  Then the sweep ends
 * (sweep_end.c). */
#include "fit/sweep.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/num.h"
#include "base/status.h"
#include "base/team.h"
#include "device/refit.h"
#include "fit/fit_impl.h"
#include "fit/resample.h"
#include "fit/start.h"
#include "fit/sweep_end.h"
#include "model/identity.h"
#include "refit/color.h"
#include "refit/frames.h"

/* Are atoms relaxed in this sweep (N.21)?  Not if the factor is 1, there are several parts, or an
 * earlier sweep lowered the explained variance of the fitted rows. */
static int relaxes(const struct fit *f)
{
  if (f->task->relaxation == 1 || f->parts > 1) return 0;
  for (gidx i = 1; i < f->sweep; i++)
    if (f->lines[i].fitted < f->lines[i - 1].fitted) return 0;
  return 1;
}

/* A task of team_run().  Relax atom a, unless this sweep relaxes none or has replaced it, and round
 * it to float32.  moves[a] <- the square of its distance from where it was, in f->table. */
static void atom_round(void *self, gidx a)
{
  struct fit *f = self;
  gidx values = (gidx)f->task->d * f->fitted.p;
  const struct frame_end end = {f->task->d, f->fitted.p,
                                f->relaxes && !f->dead[a] ? f->task->relaxation - 1 : 0,
                                f->state.frames + a * values, f->table + a * values};
  f->moves[a] = device_frame_end(&f->state.device, &end);
}

/* Relax and round all atoms.  line->move <- the largest distance that an atom moved. */
static void atoms_round(struct fit *f, struct fit_line *line)
{
  real most = 0;
  f->relaxes = relaxes(f);
  team_run(f->refit_task.threads, f->task->k, atom_round, f);
  for (gidx a = 0; a < f->task->k; a++) most = fmax(most, f->moves[a]);
  line->move = sqrt(most);
}

static void classes_log(const struct fit *f)
{
  struct class_report report;
  classes_report(&f->classes, f->state.s, &report);
  color_log(&report);
}

static int atoms_color(struct fit *f)
{
  struct phase *color = &f->result->phases[FIT_COLOR];
  phase_begin(color);
  classes_free(&f->classes);
  TRY(color_state(&f->state, resident_looker(&f->resident), &f->classes));
  phase_end(color, 0);
  if (f->sweep == f->first + 1) classes_log(f);
  return OK;
}

/* Begin a sweep that can be stopped inside.  *start <- the steps of this sweep that an earlier run
 * has done. */
static int within_begin(struct fit *f, uint64_t classes, struct sweep_start *start)
{
  f->within = (struct fit_within){.sweep = f->sweep - 1,
                                  .atoms = f->table,
                                  .classes = classes,
                                  .rows_hash = f->state.inputs.rows,
                                  .held_out_hash = f->validation.hash};
  return comm_agree(f->c, f->sink->begins(f->sink->self, &f->within, start));
}

/* The estimated seconds of coding, which follows the move of the atoms. */
static double coding_seconds(const struct fit *f)
{
  return sparse_coder_seconds(&f->coder, (gidx)f->state.n + f->validation.n, 1);
}

/* Every atom takes a step by its own system. */
static int atoms_step(struct fit *f, struct sweep_counts *counts)
{
  if (f->resident.is_on) return resident_sweep(&f->resident, &f->classes, f->steps, counts);
  char what[64];
  snprintf(what, sizeof what, "sweep   %lld of %lld:", (long long)f->sweep, (long long)f->sweeps);
  struct sweep_task task = {.classes = &f->classes,
                            .q = f->task->directions,
                            .what = what,
                            .watch = {f->sink->within, f->sink->self},
                            .after = coding_seconds(f)};
  TRY(within_begin(f, classes_hash(f->classes.color, f->task->k), &task.start));
  return refit_sweep(&f->state, &task, f->steps_phases, f->steps, counts, &f->stopped);
}

static struct update_rows coded_rows(struct fit *f)
{
  return (struct update_rows){&f->coded.atoms, &f->coded.codes, &f->coded.x};
}

/* Update all atoms at once.  beta, the weight of earlier rows, is 1 - 1 / min(sweep, number of
 * parts). */
static int atoms_solve(struct fit *f)
{
  const struct update_rows rows = coded_rows(f);
  const real beta = 1 - 1 / (real)imin(f->sweep, f->parts);
  if (f->how == UPDATE_CONJUGATE)
    return conjugate_move(&f->conjugate, &rows, beta, f->task->passes, f->steps);
  TRY(update_add(&f->update, &rows, beta));
  return update_apply(&f->update, f->task->passes, f->steps);
}

/* Update all atoms at once.  If an earlier run has done this in this sweep, take its atoms instead.
 * Afterwards the sink may stop the sweep.  With several parts neither is possible: the sums would
 * have to be saved too. */
static int atoms_update(struct fit *f, struct sweep_counts *counts)
{
  struct sweep_start start = {0};
  *counts = (struct sweep_counts){0};
  if (f->parts == 1) TRY(within_begin(f, 0, &start));
  TRY(start.atoms ? start.take(start.self, f->state.frames, f->steps) : atoms_solve(f));
  if (start.atoms) TRY(refit_frames_send(&f->state));
  for (idx a = 0; a < f->task->k; a++) counts->accepted += f->steps[a].accepted;
  const struct sweep_point at = {f->task->k, f->state.frames, f->steps, coding_seconds(f)};
  return f->parts > 1 ? OK : f->sink->within(f->sink->self, &at, &f->stopped);
}

/* near[a], likeness[a] <- the atom most similar to atom a, and their cosine.  It compares the atoms
 * of the coder, by which the rows were coded. */
static int near_duplicates_find(struct fit *f)
{
  gidx first, count;
  for (int r = 0; r < f->c->size; r++) {
    comm_partition(f->task->k, f->c->size, r, &first, &count);
    f->shares[r] = (idx)count;
  }
  comm_partition(f->task->k, f->c->size, f->c->rank, &first, &count);
  TRY(comm_agree(f->c, sparse_coder_nearest(&f->coder, (idx)first, (idx)count, f->near + first,
                                            f->likeness + first)));
  TRY(comm_allgather(f->c, f->near + first, f->shares, sizeof *f->near, f->near));
  return comm_allgather(f->c, f->likeness + first, f->shares, sizeof *f->likeness, f->likeness);
}

int fit_replaces_duplicates(const struct fit *f)
{
  const struct fit_task *t = f->task;
  return t->d == 1 && t->duplicate_cosine < 1 && t->resample_fraction > 0;
}

/* Does atom a almost equal the atom most similar to it?  And has that atom more rows, or as many
 * rows and a lower index? */
static int is_near_duplicate(const struct fit *f, idx a)
{
  idx b = f->near[a];
  if (b < 0 || !(fabsf(f->likeness[a]) > f->task->duplicate_cosine)) return 0;
  gidx own = refit_atom_rows(&f->state, a), other = refit_atom_rows(&f->state, b);
  return other > own || (other == own && b < a);
}

/* *energy <- [n] the residual energies of the rows, if all atoms move at once; otherwise NULL. */
static int energies_find(struct fit *f, const real **energy)
{
  const struct update_rows rows = coded_rows(f);
  int is_joint = f->how == UPDATE_JOINT;
  if (fit_moves_all(f->how))
    TRY(comm_agree(f->c, is_joint ? update_energies(&f->update, &rows)
                                  : conjugate_energies(&f->conjugate, &rows)));
  *energy = is_joint ? f->update.energy.host : f->conjugate.energy;
  return OK;
}

/* Forget what earlier parts added to the sums of replaced atoms. */
static int sums_clear(struct fit *f)
{
  if (f->how == UPDATE_JOINT) return update_clear(&f->update, f->dead);
  conjugate_clear(&f->conjugate, f->dead);
  return OK;
}

/* For d = 1: replace near-duplicates, and atoms that no row used in the last n parts.  n is the
 * number of parts of a pass, but at most FIT_PATIENCE. */
static int atoms_resample(struct fit *f, struct fit_line *line)
{
  const struct fit_task *t = f->task;
  const real *energy = NULL;
  idx patience = (idx)imin(f->parts, FIT_PATIENCE);
  int any = 0;
  if (fit_replaces_duplicates(f)) TRY(near_duplicates_find(f));
  for (idx a = 0; a < t->k; a++) {
    f->dead[a] = t->d == 1 && (f->idle[a] >= patience ||
                               (fit_replaces_duplicates(f) && is_near_duplicate(f, a)));
    any |= f->dead[a];
  }
  if (any) TRY(energies_find(f, &energy));
  if (any && f->resident.is_on) TRY(comm_agree(f->c, resident_residuals(&f->resident)));
  TRY(fit_resample(&f->state, energy, (idx)ceil(t->resample_fraction * t->k), f->dead,
                   &line->revived));
  if (f->parts > 1) TRY(comm_agree(f->c, sums_clear(f)));
  for (idx a = 0; a < t->k; a++)
    if (f->dead[a]) f->idle[a] = 0;
  return OK;
}

int fit_sweep_run(struct fit *f)
{
  struct sweep_counts counts;
  struct fit_line *line = &f->lines[++f->sweep];
  struct phase *phases = f->result->phases;
  if (!fit_moves_all(f->how)) TRY(atoms_color(f));
  phase_begin(&phases[FIT_UPDATE]);
  TRY(fit_moves_all(f->how) ? atoms_update(f, &counts) : atoms_step(f, &counts));
  phase_end(&phases[FIT_UPDATE], 0);
  if (f->stopped) return OK;
  phase_begin(&phases[FIT_REVIVE]);
  TRY(atoms_resample(f, line));
  phase_end(&phases[FIT_REVIVE], 0);
  line->accepted = counts.accepted;
  line->rejected = counts.rejected;
  line->escalated = counts.escalated;
  phase_begin(&phases[FIT_ROUND]);
  atoms_round(f, line);
  phase_end(&phases[FIT_ROUND], 0);
  if (f->parts > 1) {
    phase_begin(&phases[FIT_PART]);
    TRY(fit_part_load(f, f->sweep % f->parts));
    fit_part_begin(f);
    phase_end(&phases[FIT_PART], 0);
  }
  return OK;
}

real fit_gain(const struct fit *f, gidx sweep)
{
  gidx before = sweep - FIT_PATIENCE * f->parts;
  const struct fit_line *lines = f->lines;
  if (before < 0 || sweep % f->parts != 0) return nan_canonical();
  real best = fit_worth(&lines[fit_best(lines, sweep)]);
  return isfinite(best) ? best - fit_worth(&lines[fit_best(lines, before)]) : nan_canonical();
}

/* Does the fit end after this sweep, because the gain is too small?  fit_gain() is NaN inside a
 * pass.  So this is true only at the end of a pass, when all rows have been used equally often. */
static int is_settled(const struct fit *f, gidx sweep)
{
  return fit_gain(f, sweep) < f->task->tolerance;
}

int fit_start_check(const struct fit *f)
{
  for (gidx sweep = 0; sweep < f->first; sweep++)
    CHECK(!is_settled(f, sweep), ERR_INPUT,
          "with '--tolerance %g' the fit ends after sweep %lld, and the earlier run has done %lld: "
          "resume with its tolerance, or a smaller one",
          f->task->tolerance, (long long)sweep, (long long)f->first);
  return OK;
}

int fit_goes_on(const struct fit *f, enum fit_end *end)
{
  const struct fit_task *t = f->task;
  gidx sweep = f->sweep;
  const struct fit_line *lines = f->lines;
  real seconds = lines[sweep].seconds;
  real last = sweep > f->first ? seconds - lines[sweep - 1].seconds : 0;
  if (is_settled(f, sweep)) {
    *end = FIT_SETTLED;
    return 0;
  }
  *end = sweep >= f->sweeps ? FIT_SWEEPS : FIT_SECONDS;
  return sweep < f->sweeps && !(t->max_seconds > 0 && seconds + last > t->max_seconds);
}
