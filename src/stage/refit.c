/* SPDX-License-Identifier: BSD-3-Clause
 * Classes in order, cut into batches that fit memory; how they are cut changes no bit, since the
 * atoms of a class share no row. */
#include "stage/refit.h"

#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "stage/refit_step.h"

void refit_phases(struct phase phases[REFIT_PHASES])
{
  static const char *const names[REFIT_PHASES] = {"color",   "residual", "batch", "assemble",
                                                  "solve",   "move",     "codes", "route",
                                                  "metrics", "write"};
  for (int i = 0; i < REFIT_PHASES; i++) phases[i] = (struct phase){.name = names[i]};
}

/* All supports on rank 0, where the classes are found. */
static int colors_find(const struct fit *f, const idx *atoms, struct classes *classes)
{
  struct arena arena = {0};
  gidx *start;
  TRY(arena_take(&arena, &start, f->total + 1, sizeof *start));
  for (gidx i = 0; i <= f->total; i++) start[i] = i * f->s;
  struct support_view view = {f->total, f->k, start, atoms};
  int status = classes_color(classes, &view);
  arena_free(&arena);
  return status;
}

int refit_classes(const struct fit *f, struct classes *classes)
{
  struct comm *c = f->c;
  struct arena arena = {0};
  idx *counts = NULL, *color = NULL, *all = NULL, count = 0;
  gidx first;
  *classes = (struct classes){0};
  int status = arena_take(&arena, &counts, c->size, sizeof *counts);
  if (!status) status = arena_take(&arena, &color, f->k, sizeof *color);
  if (!status) status = arena_take(&arena, &all, c->rank ? 0 : f->total * f->s + 1, sizeof *all);
  TRY(comm_agree(c, status));
  for (int r = 0; r < c->size; r++) counts[r] = (idx)fit_rows(f->total, c->size, r, &first);
  if (f->s) TRY(comm_gather(c, f->atoms, counts, (size_t)f->s * sizeof *all, all));
  if (c->rank == 0) status = colors_find(f, all, classes);
  TRY(comm_agree(c, status));
  if (c->rank == 0) {
    memcpy(color, classes->color, (size_t)f->k * sizeof *color);
    count = classes->count;
  }
  TRY(comm_broadcast(c, color, f->k, sizeof *color));
  TRY(comm_broadcast(c, &count, 1, sizeof count));
  status = c->rank ? classes_from_colors(classes, color, f->k, count) : OK;
  arena_free(&arena);
  return comm_agree(c, status);
}

static void steps_count(const struct atom_step *step, struct sweep_counts *counts)
{
  counts->accepted += step->accepted;
  counts->rejected += !step->accepted;
  counts->escalated += step->retries > 0;
}

static int batch_refit(struct fit *f, const idx *atoms, idx count, idx q, struct phase *phases,
                       struct atom_step *steps, struct sweep_counts *counts)
{
  struct batch b;
  struct assembly a;
  struct arena arena = {0};
  struct atom_step *now;
  phase_begin(&phases[REFIT_BATCH]);
  TRY(comm_agree(f->c, arena_take(&arena, &now, count, sizeof *now)));
  TRY(batch_make(&b, f, atoms, count));
  phase_end(&phases[REFIT_BATCH], 0);
  phase_begin(&phases[REFIT_ASSEMBLE]);
  TRY(assembly_make(&a, f, &b, q));
  phase_end(&phases[REFIT_ASSEMBLE], 0);
  TRY(batch_step(f, &b, &a, &phases[REFIT_SOLVE], &phases[REFIT_MOVE], now));
  for (idx m = 0; m < count; m++) {
    steps[b.atom[m]] = now[m];
    steps_count(now + m, counts);
  }
  assembly_free(&a);
  batch_free(&b);
  arena_free(&arena);
  return OK;
}

int refit_sweep(struct fit *f, const struct classes *classes, idx q, struct phase *phases,
                struct atom_step *steps, struct sweep_counts *counts)
{
  idx most = batch_most(f, assembly_reals(f, q), (gidx)f->d * f->p);
  gidx done = 0, total = classes->start[classes->count];
  struct progress progress;
  *counts = (struct sweep_counts){0};
  for (idx a = 0; a < f->k; a++)
    steps[a] = (struct atom_step){.pair = log_pair_failed(), .log_det = nan_canonical()};
  phase_begin(&phases[REFIT_RESIDUALS]);
  TRY(comm_agree(f->c, fit_residuals(f)));
  phase_end(&phases[REFIT_RESIDUALS], 0);
  progress_start(&progress, "refit", "atoms", total);
  for (idx color = 0; color < classes->count; color++)
    for (gidx at = classes->start[color]; at < classes->start[color + 1]; at += most) {
      gidx left = classes->start[color + 1] - at;
      idx count = left < most ? (idx)left : most;
      TRY(batch_refit(f, classes->atoms + at, count, q, phases, steps, counts));
      progress_show(&progress, done += count);
    }
  return OK;
}
