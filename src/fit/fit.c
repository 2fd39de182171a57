/* SPDX-License-Identifier: BSD-3-Clause
 * The start, then sweeps; what decides anything is computed on rank 0 and broadcast. */
#include "fit/fit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "base/team.h"
#include "base/worker.h"
#include "comm/buffers.h"
#include "fit/judge.h"
#include "fit/revive.h"
#include "fit/update.h"
#include "model/identity.h"
#include "model/split.h"
#include "model/supports.h"
#include "refit/color.h"
#include "refit/coder.h"
#include "refit/layout.h"
#include "refit/lots.h"
#include "refit/refit.h"
#include "refit/resident.h"
#include "refit/sums.h"
#include "refit/sweep_end.h"
#include "seed/mean.h"
#include "seed/seed.h"

enum { LEAST_PART = 256 }; /* rows of a part that is chosen by memory: this times a power of 4 */

struct fit {
  const struct fit_task *task;
  struct comm *c;
  const struct fit_sink *sink;
  struct fit_result *result;
  struct row_split split;
  struct row_source fitted, held, part_source; /* the last: those in memory */
  struct row_part part;
  gidx parts, part_rows;
  enum fit_update how;
  struct atom_source table_source;
  struct support_source no_supports;
  struct refit_task refit_task;
  struct refit_state state;
  struct coder coder;
  struct coder_shape shape; /* of the coder */
  gidx gpu;                 /* bytes of its GPU that this rank takes at least; 0: it takes none */
  struct worker warmer;     /* makes the GPU's context while rows are read */
  struct coded coded;       /* the rows in memory */
  struct judge judge;
  struct classes classes;                  /* of update atoms */
  struct resident resident;                /* of update atoms, on a GPU */
  struct fit_within within;                /* the sweep in work, where it may be left */
  struct update update;                    /* of update joint */
  struct phase steps_phases[REFIT_PHASES]; /* of update atoms */
  float *table;                            /* [k][d][p] the atoms, as files hold them */
  real *mean;                              /* [p]; NULL: rows are not centred */
  struct atom_step *steps;                 /* [k] */
  unsigned char *dead;                     /* [k] */
  idx *idle;                               /* [k] parts since a row used the atom */
  idx *near;                               /* [k] the atom most like each, */
  float *likeness;                         /* [k] and their score; where twins are replaced */
  idx *shares;                             /* [ranks] */
  int stopped;                             /* before a sweep or inside it */
  int relaxes;                             /* atoms go on, in this sweep */
  real *moves;                             /* [k] squared distance of a sweep */
  struct fit_line *lines;                  /* [sweeps + 1] */
  gidx sweep, sweeps, best;                /* sweeps: at most */
  gidx first;                              /* sweep that this run began with */
  real tss;                                /* rank 0, of the rows in memory */
  double begun;
  struct arena arena;
};

enum fit_update fit_update_choose(const struct fit_task *t, idx top_s)
{
  real entries = (real)t->rows->n * top_s, gram = (real)t->k * t->k;
  if (t->update != UPDATE_AUTO) return t->update;
  if (t->minibatch) return UPDATE_JOINT;
  return t->d == 1 && t->k <= FIT_JOINT_ATOMS_MOST && gram <= 16 * entries ? UPDATE_JOINT
                                                                           : UPDATE_ATOMS;
}

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

/* The rows of part `part` are those to be in memory. */
static void part_choose(struct fit *f, gidx part)
{
  gidx first = part * f->part_rows, n = imin(f->part_rows, f->fitted.n - first);
  part_source(&f->part, &f->fitted, first, n, &f->part_source);
  f->no_supports.n = n;
  f->no_supports.entries = n * f->result->top_s;
}

/* *fitted, *held <- the rows to fit and those to judge by, which read through *split. */
static int rows_split(const struct fit_task *t, struct row_split *split, struct row_source *fitted,
                      struct row_source *held)
{
  const char *name = t->rows->name;
  CHECK(t->rows->n > 0, ERR_INPUT, "'%s' has no rows", name);
  CHECK(!t->held || t->held->n > 0, ERR_INPUT, "'%s' has no rows", t->held->name);
  CHECK(!t->held || t->held->p == t->rows->p, ERR_INPUT, "'%s' has %d columns, '%s' has %d",
        t->held->name, t->held->p, name, t->rows->p);
  real most = (real)FIT_HELD_MOST / (real)t->rows->n;
  TRY(split_draw(split, t->rows, t->held ? 0 : fmin(t->held_share, most), t->seed));
  split_sources(split, fitted, held);
  CHECK(fitted->n >= (gidx)t->k * t->d, ERR_INPUT,
        "'%s' has %lld rows, of which %lld are held out: too few for %d atoms; lower --atoms or "
        "give more rows",
        name, (long long)t->rows->n, (long long)held->n, t->k);
  if (t->held) *held = *t->held;
  return OK;
}

int fit_task_check(const struct fit_task *t)
{
  struct row_split split = {0};
  struct row_source fitted, held;
  TRY(rows_split(t, &split, &fitted, &held));
  split_free(&split);
  return OK;
}

/* Are atoms replaced that are almost like others? */
static int replaces_twins(const struct fit *f)
{
  const struct fit_task *t = f->task;
  return t->d == 1 && t->twin_cosine < 1 && t->revive_share > 0;
}

static int sources_open(struct fit *f)
{
  const struct fit_task *t = f->task;
  TRY(rows_split(t, &f->split, &f->fitted, &f->held));
  gidx p = f->fitted.p;
  f->part_rows = t->minibatch ? imin(t->minibatch, f->fitted.n) : f->fitted.n;
  f->parts = (f->fitted.n + f->part_rows - 1) / f->part_rows;
  f->sweeps = t->sweeps * f->parts;
  CHECK(!t->start || t->start->sweep <= f->sweeps, ERR_INPUT,
        "%lld of %lld sweeps are done: '--sweeps' is too small", (long long)t->start->sweep,
        (long long)f->sweeps);
  CHECK(f->sweeps < INT32_MAX, ERR_INPUT, "%lld sweeps over %lld parts are too many",
        (long long)t->sweeps, (long long)f->parts);
  f->result->top_s = (idx)imin(t->top_s, t->k);
  f->result->fitted_rows = f->fitted.n;
  f->result->held_rows = f->held.n;
  f->table_source = (struct atom_source){t->k, t->d, (idx)p, "the dictionary", f, table_read};
  f->no_supports = (struct support_source){.k = t->k,
                                           .d = t->d,
                                           .has_codes = 1,
                                           .name = t->rows->name,
                                           .self = f,
                                           .starts = no_starts,
                                           .read = no_entries};
  TRY(arena_alloc(&f->arena, &f->table, t->k * t->d * p, sizeof *f->table));
  TRY(arena_alloc(&f->arena, &f->mean, t->center ? p : 0, sizeof *f->mean));
  TRY(arena_alloc(&f->arena, &f->steps, t->k, sizeof *f->steps));
  TRY(arena_alloc(&f->arena, &f->dead, t->k, sizeof *f->dead));
  TRY(arena_alloc(&f->arena, &f->idle, t->k, sizeof *f->idle));
  TRY(arena_alloc(&f->arena, &f->moves, t->k, sizeof *f->moves));
  TRY(arena_alloc(&f->arena, &f->near, replaces_twins(f) ? t->k : 0, sizeof *f->near));
  TRY(arena_alloc(&f->arena, &f->likeness, replaces_twins(f) ? t->k : 0, sizeof *f->likeness));
  TRY(arena_alloc(&f->arena, &f->shares, f->c->size, sizeof *f->shares));
  TRY(arena_alloc(&f->arena, &f->lines, f->sweeps + 1, sizeof *f->lines));
  memset(f->idle, 0, (size_t)t->k * sizeof *f->idle);
  part_choose(f, 0);
  f->how = fit_update_choose(t, f->result->top_s);
  if (!t->center) f->mean = NULL;
  return OK;
}

/* Draw the start from the fitted rows, and bring it to all ranks. */
static int start_draw(struct fit *f)
{
  const struct fit_task *t = f->task;
  const struct matrix_sink sink = {f, table_write};
  struct seed_result drawn;
  struct seed_task seed = {&f->fitted, f->mean, &sink, t->k, t->d, t->seed};
  TRY(seed_run(&seed, f->c, &drawn));
  return comm_broadcast(f->c, f->table, t->k, (size_t)(t->d * f->fitted.p) * sizeof *f->table);
}

/* Take the atoms and lines of an earlier run. */
static int start_take(struct fit *f)
{
  const struct fit_point *start = f->task->start;
  size_t p = (size_t)f->fitted.p;
  memcpy(f->table, start->atoms, (size_t)f->task->k * (size_t)f->task->d * p * sizeof *f->table);
  memcpy(f->lines, start->lines, ((size_t)start->sweep + 1) * sizeof *f->lines);
  f->sweep = start->sweep;
  f->best = fit_best(f->lines, f->sweep);
  if (start->idle) memcpy(f->idle, start->idle, (size_t)f->task->k * sizeof *f->idle);
  CHECK(!f->mean || memcmp(f->mean, start->mean, p * sizeof *f->mean) == 0, ERR_INPUT,
        "the mean of the fitted rows of '%s' is not that of the earlier run: resume with the same "
        "rows",
        f->task->rows->name);
  return OK;
}

/* The coder of this job. */
static struct coder_shape coder_shape_of(const struct fit *f)
{
  enum { SWEEPS_EXPECTED = 20 };
  const struct fit_task *t = f->task;
  struct coder_shape shape = refit_coder_shape(&f->state, t->rounds, t->device);
  gidx first, rows = refit_rows_share(f->part_rows, f->c->size, 0, &first);
  gidx held = refit_rows_share(f->held.n, f->c->size, 0, &first);
  shape.rows = imax(rows, held);
  shape.work *= (double)imin(t->sweeps, SWEEPS_EXPECTED);
  return shape;
}

/* Read the rows of a part, and hand them to the coder. */
static int part_load(struct fit *f, gidx part)
{
  struct refit_state *state = &f->state;
  coded_close(&f->coder, &f->coded);
  refit_state_free(state);
  part_choose(f, part);
  TRY(refit_state_load(state, &f->refit_task, f->c));
  TRY(refit_tss(f->c, state->total, state->x, state->p, &f->tss));
  if (!f->coder.device.backend) {
    worker_close(&f->warmer);
    TRY(comm_agree(f->c, coder_open(&f->coder, &f->shape)));
    TRY(comm_devices_report(f->c, &f->coder.device));
    snprintf(f->result->device, sizeof f->result->device, "%s %s", f->coder.device.kind,
             f->coder.device.variant);
  }
  return comm_agree(f->c, coded_open(&f->coder, &f->coded, state->n, state->first, state->x,
                                     state->atoms, state->score));
}

/* Bytes of its GPU that this rank takes at least, if it takes one. */
static int gpu_find(struct fit *f, gidx held)
{
  struct device dry;
  gidx host;
  TRY(coder_device_dry(&f->shape, f->state.n, held, &dry));
  if (f->how == UPDATE_JOINT) TRY(update_plan(&f->state, &dry, 0, &host));
  f->gpu = device_is_gpu(&dry) ? dry.planned_device : 0;
  return OK;
}

/* Bytes that each rank holds beside the rows that it fits, and all of its GPU. */
static int beside_find(struct fit *f)
{
  int size = f->c->size;
  gidx first, held = refit_rows_share(f->held.n, size, f->c->rank, &first);
  TRY(refit_state_shape(&f->state, &f->refit_task, f->c));
  f->shape = coder_shape_of(f);
  TRY(judge_bytes(&f->shape, f->held.n, size, &f->refit_task.beside));
  f->refit_task.beside += f->task->beside;
  TRY(gpu_find(f, held));
  f->state = (struct refit_state){0};
  return OK;
}

/* *bytes <- the memory of this rank's GPU, without the part that a device keeps free; asking for it
 * takes time, so a job that fits any GPU does not. */
static int gpu_memory(const struct fit *f, gidx *bytes)
{
  static const gidx ANY_GPU = (gidx)1 << 30;
  *bytes = INT64_MAX;
  if (f->gpu <= ANY_GPU) return OK;
  TRY(coder_device_memory(&f->shape, f->c->local_size, bytes));
  *bytes -= *bytes / 32;
  return OK;
}

/* Is the rank's GPU large enough, as far as can be told before it is opened? */
static int gpu_check(const struct fit *f)
{
  gidx present;
  TRY(gpu_memory(f, &present));
  CHECK(f->gpu <= present, ERR_MEMORY,
        "%lld bytes of a GPU are needed, %lld are there for each rank: more GPUs hold fewer rows "
        "each, --device cpu needs none",
        (long long)f->gpu, (long long)present);
  return OK;
}

/* Does a part of so many rows take three quarters of this rank's memory at most, since others use
 * it too?  ERR_MEMORY: it does not. */
static int part_check(struct fit *f, gidx rows, gidx present)
{
  struct refit_memory m;
  gidx gpu;
  f->part_rows = rows;
  part_choose(f, 0);
  TRY(beside_find(f));
  TRY(refit_memory(&f->refit_task, f->c, update_bytes, 1, &m));
  TRY(gpu_memory(f, &gpu));
  return m.total <= present - present / 4 && f->gpu <= gpu - gpu / 4 ? OK : ERR_MEMORY;
}

/* *rows <- of the largest part that this rank holds with the joint update, fewer than now; 0: it
 * holds none.  By powers of 4, so that ranks and machines that differ a little choose the same. */
static int parts_find(struct fit *f, gidx *rows)
{
  gidx present = memory_share(f->c->local_size), most = f->part_rows;
  f->refit_task.colors = 0;
  f->how = UPDATE_JOINT;
  for (*rows = (gidx)1 << 40; *rows >= LEAST_PART; *rows /= 4) {
    if (*rows >= most) continue;
    int status = part_check(f, *rows, present);
    if (status == OK) return OK;
    if (status != ERR_MEMORY) return status;
    status_clear();
  }
  *rows = 0;
  return OK;
}

/* All rows do not fit into memory: why[capacity] <- what was short, *rows <- of the largest part
 * that every rank holds, 0: none.  Collective. */
static int parts_agree(struct fit *f, gidx *rows, char *why, size_t capacity)
{
  gidx *all;
  snprintf(why, capacity, "%s", status_message());
  status_clear();
  int status = arena_alloc(&f->arena, &all, f->c->size, sizeof *all);
  if (!status) status = parts_find(f, rows);
  TRY(comm_agree(f->c, status));
  TRY(comm_allgather_long(f->c, *rows, all));
  for (int r = 0; r < f->c->size; r++) *rows = imin(*rows, all[r]);
  return OK;
}

/* The job does not fit into memory; which parts would?  Collective; ERR_MEMORY. */
static int memory_fail(struct fit *f)
{
  char why[1024];
  gidx rows = 0;
  TRY(parts_agree(f, &rows, why, sizeof why));
  CHECK(rows == 0, ERR_MEMORY, "%s; '--update joint --minibatch %lld' holds so many at a time", why,
        (long long)rows);
  FAIL(ERR_MEMORY, "%s; no '--minibatch' fits either: lower --atoms, or hold out fewer rows", why);
}

static int coder_warm_run(void *shape)
{
  coder_warm(shape);
  return OK;
}

static int warmer_start(struct fit *f)
{
  TRY(worker_open(&f->warmer));
  return worker_start(&f->warmer, coder_warm_run, &f->shape);
}

/* Does the job fit into memory?  Collective; ERR_MEMORY says what is short. */
static int memory_plan(struct fit *f)
{
  const struct fit_task *t = f->task;
  int joint = f->how == UPDATE_JOINT;
  f->refit_task = (struct refit_task){.rows = &f->part_source,
                                      .atoms = &f->table_source,
                                      .supports = &f->no_supports,
                                      .mean = f->mean,
                                      .rho = t->rho,
                                      .nonnegative = t->nonnegative,
                                      .top_s = f->result->top_s,
                                      .threads = t->threads,
                                      .variant = t->variant,
                                      .colors = !joint};
  f->refit_task.filter = t->filter;
  TRY(comm_agree(f->c, beside_find(f)));
  TRY(refit_total_check(&f->refit_task, f->c, joint ? update_bytes : refit_batch_bytes,
                        t->directions, 1));
  return comm_agree(f->c, gpu_check(f));
}

/* Nothing is read before it is known that it fits. */
static int state_plan(struct fit *f)
{
  int status = memory_plan(f);
  if (status == ERR_MEMORY) return memory_fail(f);
  TRY(status);
  return comm_agree(f->c, warmer_start(f));
}

static int state_open(struct fit *f)
{
  const struct fit_task *t = f->task;
  int joint = f->how == UPDATE_JOINT;
  TRY(part_load(f, f->sweep % f->parts));
  TRY(judge_open(&f->judge, &f->held, f->mean, &f->coder, f->c));
  if (joint) TRY(comm_agree(f->c, update_open(&f->update, &f->state, &f->coder.device)));
  if (!joint)
    TRY(comm_agree(f->c, resident_open(&f->resident, &f->state, &f->coder, &f->coded, f->table,
                                       t->directions)));
  /* A core is left to the thread that writes: who waits for the last of a team waits for it. */
  if (f->resident.is_on && t->threads > 2) f->refit_task.threads = t->threads - 1;
  if (joint && t->start && t->start->gram)
    TRY(comm_agree(f->c, update_put(&f->update, t->start->gram, t->start->target)));
  return OK;
}

/* The same, with what helps where memory is short after all: others use a GPU too. */
static int state_start(struct fit *f)
{
  char why[1024];
  int status = state_open(f);
  if (status != ERR_MEMORY || !device_is_gpu(&f->coder.device)) return status;
  snprintf(why, sizeof why, "%s", status_message());
  FAIL(ERR_MEMORY, "%s; '--update joint' and a %s '--minibatch' holds fewer rows at a time", why,
       f->parts > 1 ? "smaller" : "small");
}

/* Do atoms go on in this sweep: was every one before it a gain for the fitted rows? */
static int relaxes(const struct fit *f)
{
  if (f->task->relaxation == 1 || f->parts > 1) return 0;
  for (gidx i = 1; i < f->sweep; i++)
    if (f->lines[i].fitted < f->lines[i - 1].fitted) return 0;
  return 1;
}

/* Let atom a go on the way that it moved (N.21); one that was replaced stays. */
static void atom_relax(const struct fit *f, gidx a)
{
  idx d = f->task->d, p = f->fitted.p;
  gidx values = (gidx)d * p;
  real *frame = f->state.frames + a * values, further = f->task->relaxation - 1;
  const float *before = f->table + a * values;
  if (f->dead[a]) return;
  for (gidx i = 0; i < values; i++) frame[i] = fma(further, frame[i] - before[i], frame[i]);
  if (frame_orthonormalize(frame, d, p) == d) return;
  for (gidx i = 0; i < values; i++) frame[i] = before[i];
}

/* A task: atom a goes on if atoms do, and is rounded as files hold it; its move is the squared
 * distance from what the table had of it. */
static void atom_round(void *self, gidx a)
{
  struct fit *f = self;
  gidx values = (gidx)f->task->d * f->fitted.p;
  real *frame = f->state.frames + a * values, move = 0;
  float *table = f->table + a * values;
  if (f->relaxes) atom_relax(f, a);
  for (gidx i = 0; i < values; i++) {
    real step = frame[i] - table[i];
    move = fma(step, step, move);
    table[i] = (float)frame[i];
    frame[i] = table[i];
  }
  f->moves[a] = move;
}

/* Atoms go on in their way where they do, and are rounded. */
static void atoms_round(struct fit *f, struct fit_line *line)
{
  real most = 0;
  f->relaxes = relaxes(f);
  team_run(f->refit_task.threads, f->task->k, atom_round, f);
  for (gidx a = 0; a < f->task->k; a++) most = fmax(most, f->moves[a]);
  line->move = sqrt(most);
}

/* The codes become the state's. */
static int codes_take(struct fit *f)
{
  struct refit_state *state = &f->state;
  const float *codes = f->coded.codes.host;
  gidx count = (gidx)state->n * state->s * state->d;
  TRY(coded_get(&f->coder, &f->coded, CODED_CODES));
  for (gidx i = 0; i < count; i++) state->codes[i] = codes[i];
  return OK;
}

/* Residuals of all rows by the atoms as they have moved. */
static int residuals_make(struct fit *f)
{
  TRY(codes_take(f));
  return refit_state_residuals(&f->state);
}

static int lot_run(void *self, idx first, idx n)
{
  struct fit *f = self;
  return coder_run(&f->coder, &f->coded, first, n, f->task->rho);
}

/* Bring what became of this rank's rows to where it is needed. */
static int codes_bring(struct fit *f)
{
  TRY(coded_get(&f->coder, &f->coded, CODED_SUPPORTS | CODED_QUALITY));
  if (f->how != UPDATE_JOINT) return f->resident.is_on ? OK : codes_take(f);
  /* Other ranks are sent them. */
  return f->c->size > 1 ? coded_get(&f->coder, &f->coded, CODED_CODES) : OK;
}

/* Route and code the rows in memory, a lot at a time, unless that is stopped. */
static int rows_code(struct fit *f)
{
  const struct lots lots = {f->state.n, coder_lot(&f->coder, 1), lot_run, f, &f->sink->coding};
  TRY(lots_run(&lots, f->c, coder_put(&f->coder, f->table), f->state.first, &f->stopped));
  return f->stopped ? OK : comm_agree(f->c, codes_bring(f));
}

/* Route and code the rows in memory, and judge by them, and by the held-out rows; unless that is
 * stopped. */
static int rows_encode(struct fit *f, struct fit_line *line)
{
  struct refit_state *state = &f->state;
  struct metrics m = {.n = state->total, .p = state->p};
  TRY(rows_code(f));
  if (f->stopped) return OK;
  struct phase *index = &f->result->phases[FIT_INDEX];
  phase_begin(index);
  TRY(f->how == UPDATE_JOINT ? refit_state_count(state) : refit_state_index(state));
  phase_end(index, 0);
  TRY(coded_metrics(&f->coded, f->c, f->tss, &m));
  line->fitted = m.explained_variance;
  line->dead = 0;
  for (idx a = 0; a < state->k; a++) line->dead += refit_atom_rows(state, a) == 0;
  return judge_rows(&f->judge, &f->sink->coding, &line->held, &f->stopped);
}

/* Count how long atoms are idle, by the rows in memory. */
static void idle_count(struct fit *f)
{
  for (idx a = 0; a < f->task->k; a++)
    f->idle[a] = refit_atom_rows(&f->state, a) ? 0 : f->idle[a] + 1;
}

/* Of rows that are all the same the explained variance is no number.  A part of them is passed
 * over, since others follow; else nothing is left to judge by. */
static int worth_check(const struct fit *f, const struct fit_line *line)
{
  CHECK(f->held.n > 0 || f->parts > 1 || !isnan(line->fitted), ERR_INPUT,
        "the fitted rows of '%s' do not vary: their explained variance, by which the fit is "
        "judged, is not defined",
        f->task->rows->name);
  return OK;
}

real fit_worth(const struct fit_line *line)
{
  real worth = isnan(line->held) ? line->fitted : line->held;
  return isnan(worth) ? -INFINITY : worth;
}

gidx fit_best(const struct fit_line *lines, gidx sweep)
{
  gidx best = 0;
  for (gidx i = 1; i <= sweep; i++)
    if (fit_worth(&lines[i]) > fit_worth(&lines[best])) best = i;
  return best;
}

/* Hand the state to the sink. */
static int sweep_show(struct fit *f)
{
  struct fit_sweep done = {.point = {.sweep = f->sweep,
                                     .lines = f->lines,
                                     .atoms = f->table,
                                     .mean = f->mean,
                                     .rows_hash = f->state.inputs.rows,
                                     .held_hash = f->judge.hash},
                           .best = f->best,
                           .fitted_rows = f->fitted.n,
                           .parts = f->parts};
  if (f->parts > 1) {
    TRY(update_get(&f->update, &done.point.gram, &done.point.target));
    done.point.idle = f->idle;
  }
  return f->sink->sweep(f->sink->self, &done);
}

/* Judge the state, whose atoms are rounded, and hand it to the sink. */
static int sweep_close(struct fit *f)
{
  struct fit_line *line = &f->lines[f->sweep];
  line->sweep = f->sweep;
  TRY(rows_encode(f, line));
  if (f->stopped) return OK;
  idle_count(f);
  line->seconds = log_seconds() - f->begun;
  TRY(comm_broadcast(f->c, line, 1, sizeof *line));
  TRY(worth_check(f, line));
  f->best = fit_best(f->lines, f->sweep);
  phase_begin(&f->result->phases[FIT_SHOW]);
  TRY(sweep_show(f));
  phase_end(&f->result->phases[FIT_SHOW], 0);
  return OK;
}

/* The state that an earlier run left: do the rows give what it said? */
static int sweep_reopen(struct fit *f)
{
  const struct fit_point *start = f->task->start;
  const struct fit_line *then = &start->lines[start->sweep];
  struct fit_line now = {0};
  const char *name = f->task->rows->name;
  CHECK(f->state.inputs.rows == start->rows_hash, ERR_INPUT,
        "the earlier run was begun with other rows than those of '%s': rows_hash %016llx, not "
        "%016llx; resume with the same",
        name, (unsigned long long)start->rows_hash, (unsigned long long)f->state.inputs.rows);
  TRY(rows_encode(f, &now));
  if (f->stopped) return OK;
  if (!start->idle) idle_count(f);
  TRY(comm_broadcast(f->c, &now, 1, sizeof now));
  TRY(worth_check(f, &now));
  CHECK(f->judge.hash == start->held_hash, ERR_INPUT,
        "the earlier run was judged by other rows than this one: rows_hash %016llx, not %016llx; "
        "resume with the same",
        (unsigned long long)start->held_hash, (unsigned long long)f->judge.hash);
  CHECK(memcmp(&now.fitted, &then->fitted, sizeof now.fitted) == 0 &&
            memcmp(&now.held, &then->held, sizeof now.held) == 0,
        ERR_INPUT,
        "the atoms of the earlier run explain %.17g and %.17g of the fitted and of the held-out "
        "rows, and it said %.17g and %.17g",
        now.fitted, now.held, then->fitted, then->held);
  return OK;
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

static int steps_look(void *self, const struct sweep_point *at, int *stop)
{
  struct fit *f = self;
  return f->sink->within(f->sink->self, &f->within, at, stop);
}

/* A sweep begins that may be left: *start <- what an earlier run has done of it. */
static int within_begin(struct fit *f, uint64_t classes, struct sweep_start *start)
{
  f->within = (struct fit_within){.sweep = f->sweep - 1,
                                  .atoms = f->table,
                                  .classes = classes,
                                  .rows_hash = f->state.inputs.rows,
                                  .held_hash = f->judge.hash};
  return comm_agree(f->c, f->sink->begins(f->sink->self, &f->within, start));
}

/* What follows when atoms have moved, roughly. */
static double coding_seconds(const struct fit *f)
{
  return coder_seconds(&f->coder, (gidx)f->state.n + f->judge.n, 1);
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
                            .watch = {steps_look, f},
                            .after = coding_seconds(f)};
  TRY(within_begin(f, classes_hash(f->classes.color, f->task->k), &task.start));
  return refit_sweep(&f->state, &task, f->steps_phases, f->steps, counts, &f->stopped);
}

/* All atoms at once.  Of T parts, those before the last T count less and less. */
static int atoms_solve(struct fit *f)
{
  const struct update_rows rows = {&f->coded.atoms, &f->coded.codes, &f->coded.x};
  TRY(update_add(&f->update, &rows, 1 - 1 / (real)imin(f->sweep, f->parts)));
  return update_apply(&f->update, f->task->passes, f->steps);
}

/* The same, or as an earlier run has left them behind that; then the sweep may be left.  Not by
 * parts, whose sums would have to be kept too. */
static int atoms_update(struct fit *f, struct sweep_counts *counts)
{
  struct sweep_start start = {0};
  *counts = (struct sweep_counts){0};
  if (f->parts == 1) TRY(within_begin(f, 0, &start));
  TRY(start.atoms ? start.take(start.self, f->state.frames, f->steps) : atoms_solve(f));
  for (idx a = 0; a < f->task->k; a++) counts->accepted += f->steps[a].accepted;
  const struct sweep_point at = {f->task->k, f->state.frames, f->steps, coding_seconds(f)};
  return f->parts > 1 ? OK : f->sink->within(f->sink->self, &f->within, &at, &f->stopped);
}

/* The atoms as they were when rows were coded, each with the one most like it. */
static int twins_find(struct fit *f)
{
  gidx first, count;
  for (int r = 0; r < f->c->size; r++) {
    comm_share(f->task->k, f->c->size, r, &first, &count);
    f->shares[r] = (idx)count;
  }
  comm_share(f->task->k, f->c->size, f->c->rank, &first, &count);
  TRY(comm_agree(f->c, coder_nearest(&f->coder, (idx)first, (idx)count, f->near + first,
                                     f->likeness + first)));
  TRY(comm_allgather(f->c, f->near + first, f->shares, sizeof *f->near, f->near));
  return comm_allgather(f->c, f->likeness + first, f->shares, sizeof *f->likeness, f->likeness);
}

/* Is there an atom almost like atom a that has more rows, or as many and comes first? */
static int is_twin(const struct fit *f, idx a)
{
  idx b = f->near[a];
  if (b < 0 || !(fabsf(f->likeness[a]) > f->task->twin_cosine)) return 0;
  gidx own = refit_atom_rows(&f->state, a), other = refit_atom_rows(&f->state, b);
  return other > own || (other == own && b < a);
}

/* Replace atoms that no row used in a whole pass, or in the last parts. */
static int atoms_revive(struct fit *f, struct fit_line *line)
{
  const struct fit_task *t = f->task;
  idx patience = (idx)imin(f->parts, FIT_PATIENCE);
  int any = 0;
  if (replaces_twins(f)) TRY(twins_find(f));
  for (idx a = 0; a < t->k; a++) {
    f->dead[a] = t->d == 1 && (f->idle[a] >= patience || (replaces_twins(f) && is_twin(f, a)));
    any |= f->dead[a];
  }
  if (any && f->how == UPDATE_JOINT) TRY(comm_agree(f->c, residuals_make(f)));
  if (any && f->resident.is_on) TRY(resident_residuals(&f->resident));
  TRY(fit_revive(&f->state, (idx)ceil(t->revive_share * t->k), f->dead, &line->revived));
  if (f->parts > 1) TRY(comm_agree(f->c, update_forget(&f->update, f->dead)));
  for (idx a = 0; a < t->k; a++)
    if (f->dead[a]) f->idle[a] = 0;
  return OK;
}

static int sweep_run(struct fit *f)
{
  struct sweep_counts counts;
  struct fit_line *line = &f->lines[++f->sweep];
  struct phase *phases = f->result->phases;
  if (f->how != UPDATE_JOINT) TRY(atoms_color(f));
  phase_begin(&phases[FIT_UPDATE]);
  TRY(f->how == UPDATE_JOINT ? atoms_update(f, &counts) : atoms_step(f, &counts));
  phase_end(&phases[FIT_UPDATE], 0);
  if (f->stopped) return OK;
  phase_begin(&phases[FIT_REVIVE]);
  TRY(atoms_revive(f, line));
  phase_end(&phases[FIT_REVIVE], 0);
  line->accepted = counts.accepted;
  line->rejected = counts.rejected;
  line->escalated = counts.escalated;
  phase_begin(&phases[FIT_ROUND]);
  atoms_round(f, line);
  phase_end(&phases[FIT_ROUND], 0);
  if (f->parts > 1) {
    phase_begin(&phases[FIT_PART]);
    TRY(part_load(f, f->sweep % f->parts));
    phase_end(&phases[FIT_PART], 0);
  }
  return sweep_close(f);
}

/* Does the fit go on?  If not, *end says why. */
static int goes_on(const struct fit *f, enum fit_end *end)
{
  const struct fit_task *t = f->task;
  gidx sweep = f->sweep, before = sweep - FIT_PATIENCE * f->parts;
  const struct fit_line *lines = f->lines;
  real seconds = lines[sweep].seconds;
  real last = sweep > f->first ? seconds - lines[sweep - 1].seconds : 0;
  real best = fit_worth(&lines[fit_best(lines, sweep)]);
  /* At the end of a pass alone: then every row has had its say equally often. */
  if (before >= 0 && sweep % f->parts == 0 && isfinite(best) &&
      best - fit_worth(&lines[fit_best(lines, before)]) < t->tolerance) {
    *end = FIT_SETTLED;
    return 0;
  }
  *end = sweep >= f->sweeps ? FIT_SWEEPS : FIT_SECONDS;
  return sweep < f->sweeps && !(t->max_seconds > 0 && seconds + last > t->max_seconds);
}

static void fit_close(struct fit *f)
{
  classes_free(&f->classes);
  resident_close(&f->resident);
  update_free(&f->update);
  judge_close(&f->judge);
  coded_close(&f->coder, &f->coded);
  worker_close(&f->warmer);
  coder_close(&f->coder);
  refit_state_free(&f->state);
  split_free(&f->split);
  arena_free(&f->arena);
  free(f);
}

int fit_parts_choose(const struct fit_task *task, struct comm *c, gidx *rows, char *why,
                     size_t capacity)
{
  struct fit *f;
  struct fit_result none = {0};
  *rows = 0;
  *why = '\0';
  if (task->update == UPDATE_ATOMS) return OK;
  TRY(comm_agree(c, struct_alloc(&f, sizeof *f)));
  f->task = task;
  f->c = c;
  f->result = &none;
  TRY(comm_agree(c, sources_open(f)));
  int status = memory_plan(f);
  if (status == ERR_MEMORY)
    TRY(parts_agree(f, rows, why, capacity));
  else
    TRY(status);
  fit_close(f);
  return OK;
}

static const struct phase phase_names[FIT_PHASES] = {
    [FIT_START] = {.name = "start"},
    [FIT_COLOR] = {.name = "color"},
    [FIT_UPDATE] = {.name = "update"},
    [FIT_REVIVE] = {.name = "revive"},
    [FIT_ROUND] = {.name = "round"},
    [FIT_PART] = {.name = "read"},
    [FIT_INDEX] = {.name = "index"},
    [FIT_SHOW] = {.name = "wait"},
    [FIT_WRITE] = {"write", .unit = "GB", .background = 1},
};

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
  refit_phases(f->steps_phases);
  memcpy(result->phases, phase_names, sizeof phase_names);
  phase_begin(&result->phases[FIT_START]);
  TRY(comm_agree(c, sources_open(f)));
  TRY(state_plan(f));
  if (f->mean) TRY(mean_compute(c, &f->fitted, f->mean));
  TRY(task->start ? comm_agree(c, start_take(f)) : start_draw(f));
  f->first = f->sweep;
  TRY(state_start(f));
  result->phases[FIT_UPDATE].device =
      f->resident.is_on || f->how == UPDATE_JOINT ? f->coder.device.kind : f->state.device.kind;
  phase_end(&result->phases[FIT_START], 0);
  TRY(task->start ? comm_agree(c, sweep_reopen(f)) : sweep_close(f));
  while (!f->stopped && goes_on(f, &result->end)) {
    TRY(sink->stops(sink->self, &f->stopped));
    if (f->stopped) break;
    TRY(sweep_run(f));
    if (f->stopped) f->sweep--;
  }
  if (f->stopped) result->end = FIT_STOPPED;
  result->sweeps = f->sweep;
  result->best = f->best;
  result->phases[FIT_ROUTE] = f->coder.route;
  result->phases[FIT_CODES] = f->coder.codes;
  result->phases[FIT_COPY] = f->coder.copy;
  fit_close(f);
  return OK;
}
