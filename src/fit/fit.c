/* SPDX-License-Identifier: BSD-3-Clause
 * The start, then sweeps; what decides anything is computed on rank 0 and broadcast. */
#include "fit/fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "encode/encode.h"
#include "encode/shard.h"
#include "fit/revive.h"
#include "fit/update.h"
#include "model/split.h"
#include "model/supports.h"
#include "refit/color.h"
#include "refit/layout.h"
#include "refit/refit.h"
#include "refit/sums.h"
#include "refit/sweep_end.h"
#include "seed/mean.h"
#include "seed/seed.h"

struct fit {
  const struct fit_task *task;
  struct comm *c;
  const struct fit_sink *sink;
  struct fit_result *result;
  struct row_split split;
  struct row_source fitted, held;
  struct atom_source table_source;
  struct support_source no_supports;
  struct refit_task refit_task;
  struct refit_state state;
  struct classes classes; /* of update atoms */
  struct update update;   /* of update joint */
  struct phase phases[REFIT_PHASES];
  float *table;            /* [k][d][p] the atoms, as files hold them */
  real *mean;              /* [p]; NULL: rows are not centred */
  struct atom_step *steps; /* [k] */
  gidx *density;           /* [k] */
  struct fit_line *lines;  /* [sweeps + 1] */
  gidx sweep, best;
  real tss; /* rank 0 */
  double begun;
  struct arena arena;
};

static int table_read(void *self, idx first, idx count, float *out)
{
  const struct fit *f = self;
  gidx frame = (gidx)f->task->d * f->fitted.p;
  memcpy(out, f->table + first * frame, (size_t)(count * frame) * sizeof *out);
  return OK;
}

static int table_write(void *self, gidx first, gidx count, const float *values)
{
  struct fit *f = self;
  gidx frame = (gidx)f->task->d * f->fitted.p;
  memcpy(f->table + first * frame, values, (size_t)(count * frame) * sizeof *values);
  return OK;
}

/* The supports of a state that is about to be routed: each row has the first atoms, with codes
 * 0. */
static int no_starts(void *self, gidx first, gidx count, gidx *out)
{
  const struct fit *f = self;
  for (gidx i = 0; i <= count; i++) out[i] = (first + i) * f->result->top_s;
  return OK;
}

static int no_entries(void *self, gidx first, gidx count, idx *atoms, float *score, float *codes)
{
  const struct fit *f = self;
  for (gidx i = 0; i < count; i++) {
    atoms[i] = (idx)((first + i) % f->result->top_s);
    if (score) score[i] = 0;
  }
  if (codes) memset(codes, 0, (size_t)(count * f->task->d) * sizeof *codes);
  return OK;
}

static int sources_open(struct fit *f)
{
  const struct fit_task *t = f->task;
  CHECK(t->rows->n > 0, ERR_INPUT, "'%s' has no rows", t->rows->name);
  CHECK(!t->held || t->held->p == t->rows->p, ERR_INPUT, "'%s' has %d columns, '%s' has %d",
        t->held->name, t->held->p, t->rows->name, t->rows->p);
  TRY(split_draw(&f->split, t->rows, t->held ? 0 : t->held_share, t->seed));
  split_sources(&f->split, &f->fitted, &f->held);
  if (t->held) f->held = *t->held;
  gidx p = f->fitted.p;
  f->result->top_s = (idx)imin(t->top_s, t->k);
  f->table_source = (struct atom_source){t->k, t->d, (idx)p, "the dictionary", f, table_read};
  f->no_supports = (struct support_source){.n = f->fitted.n,
                                           .entries = f->fitted.n * f->result->top_s,
                                           .k = t->k,
                                           .d = t->d,
                                           .has_codes = 1,
                                           .name = t->rows->name,
                                           .self = f,
                                           .starts = no_starts,
                                           .read = no_entries};
  TRY(arena_alloc(&f->arena, &f->table, t->k * t->d * p, sizeof *f->table));
  TRY(arena_alloc(&f->arena, &f->mean, t->center ? p : 0, sizeof *f->mean));
  TRY(arena_alloc(&f->arena, &f->steps, t->k, sizeof *f->steps));
  TRY(arena_alloc(&f->arena, &f->density, t->k, sizeof *f->density));
  TRY(arena_alloc(&f->arena, &f->lines, t->sweeps + 1, sizeof *f->lines));
  if (!t->center) f->mean = NULL;
  return OK;
}

/* Draw the start from the fitted rows, and bring it to all ranks. */
static int start_draw(struct fit *f)
{
  const struct fit_task *t = f->task;
  const struct matrix_sink sink = {f, table_write};
  struct seed_result drawn;
  if (f->mean) TRY(mean_compute(f->c, &f->fitted, f->mean));
  struct seed_task seed = {&f->fitted, f->mean, &sink, t->k, t->d, t->seed};
  TRY(seed_run(&seed, f->c, &drawn));
  return comm_broadcast(f->c, f->table, t->k, (size_t)(t->d * f->fitted.p) * sizeof *f->table);
}

static int state_open(struct fit *f)
{
  const struct fit_task *t = f->task;
  f->refit_task = (struct refit_task){.rows = &f->fitted,
                                      .atoms = &f->table_source,
                                      .supports = &f->no_supports,
                                      .mean = f->mean,
                                      .rho = t->rho,
                                      .nonnegative = t->nonnegative,
                                      .top_s = f->result->top_s,
                                      .threads = t->threads,
                                      .variant = t->variant,
                                      .filter = t->filter,
                                      .colors = t->update != UPDATE_JOINT};
  int joint = t->update == UPDATE_JOINT;
  TRY(refit_total_check(&f->refit_task, f->c, joint ? update_bytes : refit_batch_bytes,
                        t->directions, 1));
  TRY(refit_state_load(&f->state, &f->refit_task, f->c));
  if (joint) TRY(comm_agree(f->c, update_open(&f->update, &f->state)));
  return refit_tss(&f->state, &f->tss);
}

/* The largest distance of an atom's frame from what it was in the table. */
static real move_find(const struct fit *f)
{
  gidx frame = (gidx)f->task->d * f->fitted.p;
  real most = 0;
  for (gidx a = 0; a < f->task->k; a++) {
    real squares = 0;
    for (gidx i = a * frame; i < (a + 1) * frame; i++) {
      real step = f->state.frames[i] - f->table[i];
      squares = fma(step, step, squares);
    }
    most = fmax(most, squares);
  }
  return sqrt(most);
}

/* Round the atoms, route and code the fitted rows, and judge by them. */
static int rows_encode(struct fit *f, struct fit_line *line)
{
  const struct sweep_end_options options = {1, f->task->rounds, 0};
  struct metrics metrics = {.explained_variance = nan_canonical()};
  TRY(refit_sweep_end(&f->state, &options, f->density, f->tss, &metrics));
  line->move = move_find(f);
  gidx values = (gidx)f->task->k * f->task->d * f->fitted.p;
  for (gidx i = 0; i < values; i++) f->table[i] = (float)f->state.frames[i];
  line->fitted = metrics.explained_variance;
  line->dead = metrics.dead_atoms;
  return OK;
}

static int nothing_write(void *self, const struct support_block *block)
{
  (void)self, (void)block;
  return OK;
}

/* Encode the held-out rows, without penalty. */
static int held_judge(struct fit *f, struct fit_line *line)
{
  const struct fit_task *t = f->task;
  const struct support_sink nowhere = {NULL, nothing_write};
  struct encode_result result;
  int size = f->c->size;
  line->held = nan_canonical();
  if (f->held.n == 0) return OK;
  struct encode_task task = {.rows = &f->held,
                             .atoms = &f->table_source,
                             .mean = f->mean,
                             .sink = &nowhere,
                             .top_s = f->result->top_s,
                             .rounds = (idx)imin(t->rounds, f->result->top_s),
                             .tile = (idx)imin(tile_width_default(t->k, size), t->k),
                             .threads = t->threads,
                             .device = "cpu",
                             .variant = t->variant,
                             .filter = t->filter,
                             .codes = 1,
                             .nonnegative = t->nonnegative};
  task.block = encode_block_rows(&task, size);
  TRY(encode_run(&task, f->c, &result));
  line->held = result.metrics.explained_variance;
  encode_free(&result);
  return OK;
}

/* What a line is judged by: the held-out rows, where there are any. */
static real line_worth(const struct fit *f, gidx sweep)
{
  return f->held.n ? f->lines[sweep].held : f->lines[sweep].fitted;
}

/* Judge the state, and hand it to the sink. */
static int sweep_close(struct fit *f)
{
  struct fit_line *line = &f->lines[f->sweep];
  line->sweep = f->sweep;
  TRY(rows_encode(f, line));
  TRY(held_judge(f, line));
  line->seconds = log_seconds() - f->begun;
  TRY(comm_broadcast(f->c, line, 1, sizeof *line));
  if (f->sweep && !(line_worth(f, f->sweep) <= line_worth(f, f->best))) f->best = f->sweep;
  struct fit_sweep done = {.lines = f->lines,
                           .sweep = f->sweep,
                           .best = f->best,
                           .atoms = f->table,
                           .mean = f->mean,
                           .fitted_rows = f->fitted.n,
                           .held_rows = f->held.n};
  return f->sink->sweep(f->sink->self, &done);
}

/* Every atom takes a step by its own system. */
static int atoms_step(struct fit *f, struct sweep_counts *counts)
{
  classes_free(&f->classes);
  TRY(color_state(&f->state, &f->classes));
  return refit_sweep(&f->state, &f->classes, f->task->directions, f->phases, f->steps, counts);
}

/* All atoms at once. */
static int atoms_update(struct fit *f, struct sweep_counts *counts)
{
  *counts = (struct sweep_counts){0};
  TRY(update_add(&f->update, 0));
  TRY(update_apply(&f->update, f->task->passes, &counts->accepted));
  return comm_agree(f->c, refit_state_residuals(&f->state));
}

static int sweep_run(struct fit *f)
{
  const struct fit_task *t = f->task;
  struct sweep_counts counts;
  struct fit_line *line = &f->lines[++f->sweep];
  TRY(t->update == UPDATE_JOINT ? atoms_update(f, &counts) : atoms_step(f, &counts));
  TRY(fit_revive(&f->state, (idx)ceil(t->revive_share * t->k), &line->revived));
  line->accepted = counts.accepted;
  line->rejected = counts.rejected;
  line->escalated = counts.escalated;
  return sweep_close(f);
}

/* The best worth of sweeps 0 .. sweep. */
static real worth_until(const struct fit *f, gidx sweep)
{
  real best = line_worth(f, 0);
  for (gidx i = 1; i <= sweep; i++) best = fmax(best, line_worth(f, i));
  return best;
}

/* Does the fit go on?  If not, *end says why. */
static int goes_on(const struct fit *f, enum fit_end *end)
{
  const struct fit_task *t = f->task;
  gidx sweep = f->sweep, before = sweep - FIT_PATIENCE;
  real seconds = f->lines[sweep].seconds;
  real last = sweep ? seconds - f->lines[sweep - 1].seconds : 0;
  if (before >= 0 && worth_until(f, sweep) - worth_until(f, before) < t->tolerance) {
    *end = FIT_SETTLED;
    return 0;
  }
  *end = sweep >= t->sweeps ? FIT_SWEEPS : FIT_SECONDS;
  return sweep < t->sweeps && !(t->max_seconds > 0 && seconds + last > t->max_seconds);
}

static void fit_close(struct fit *f)
{
  classes_free(&f->classes);
  update_free(&f->update);
  refit_state_free(&f->state);
  split_free(&f->split);
  arena_free(&f->arena);
  free(f);
}

int fit_run(const struct fit_task *task, struct comm *c, const struct fit_sink *sink,
            struct fit_result *result)
{
  struct fit *f; /* on the heap: struct run of cli/command.h says why */
  *result = (struct fit_result){0};
  TRY(comm_agree(c, struct_alloc(&f, sizeof *f)));
  f->task = task;
  f->c = c;
  f->sink = sink;
  f->result = result;
  f->begun = log_seconds();
  refit_phases(f->phases);
  TRY(comm_agree(c, sources_open(f)));
  TRY(start_draw(f));
  TRY(state_open(f));
  TRY(sweep_close(f));
  while (goes_on(f, &result->end)) TRY(sweep_run(f));
  result->sweeps = f->sweep;
  result->best = f->best;
  fit_close(f);
  return OK;
}
