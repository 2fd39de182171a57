/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta refit: rows + dictionary + supports -> a better dictionary and its codes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/fingerprint.h"
#include "base/log.h"
#include "base/status.h"
#include "base/stop.h"
#include "cli/agreement.h"
#include "cli/command.h"
#include "cli/fit_inputs.h"
#include "cli/refit_files.h"
#include "cli/refit_publisher.h"
#include "cli/refit_resume.h"
#include "cli/report.h"
#include "cli/run_page.h"
#include "cli/threads.h"
#include "comm/buffers.h"
#include "fit/judge.h"
#include "io/rows.h"
#include "model/directions.h"
#include "model/identity.h"
#include "refit/color.h"
#include "refit/layout.h"
#include "refit/refit.h"
#include "refit/resident.h"
#include "refit/sums.h"
#include "refit/sweep_end.h"

struct refit_options {
  struct general_options general;
  struct output_options output;
  struct fit_names names;
  struct fit_compute compute;
  idx sweeps, directions, cosine_limit;
  int reroute, resume, dry_run;
  real max_seconds, save_seconds;
  const char *filter, *holdout, *device;
};
#define AT(member) offsetof(struct refit_options, member)

static const struct option_row refit_rows[] = {
    {"sweeps", OPTION_INT, AT(sweeps), "1", 1, 1 << 20, NULL, "COUNT",
     "sweeps over all atoms; with --resume those of the earlier run count"},
    {"directions", OPTION_INT, AT(directions), "4", 1, MAX_DIRECTIONS, NULL, "COUNT",
     "directions in which a frame may move in a sweep"},
    {"reroute", OPTION_FLAG, AT(reroute), "no", 0, 1, NULL, NULL,
     "route all rows again after each sweep, in as many rounds as the supports were"},
    {"holdout", OPTION_TEXTS, AT(holdout), NULL, 0, 0, NULL, "FILE[:/PATH]",
     "rows that the refit does not see: say what each sweep's atoms explain of them; of several "
     "files as --rows"},
    DEVICE_OPTION(AT(device)),
    FILTER_OPTION(AT(filter)),
    {"resume", OPTION_FLAG, AT(resume), "no", 0, 1, NULL, NULL,
     "go on from what a run that was stopped left in --output, with the inputs and options of its "
     "start; any number of ranks gives the same bits"},
    MAX_SECONDS_OPTION(AT(max_seconds), "some atoms of a sweep"),
    SAVE_SECONDS_OPTION(AT(save_seconds)),
    {"cosine-limit", OPTION_INT, AT(cosine_limit), "65536", 0, 1 << 30, NULL, "ATOMS",
     "compute the largest decoder cosine of dictionaries up to this size"},
    {"dry-run", OPTION_FLAG, AT(dry_run), "no", 0, 1, NULL, NULL,
     "print the memory and disk needed and how the rows are split, and do nothing"},
};

static const struct option_table tables[] = {
    {"Input", fit_name_rows, FIT_NAME_ROWS, AT(names)},
    {"Refit", refit_rows, LENGTH(refit_rows), 0},
    {"Result", output_rows, OUTPUT_ROWS, AT(output)},
    {"Speed, never a bit of the result", fit_compute_rows, FIT_COMPUTE_ROWS, AT(compute)},
    {"Job", general_rows, GENERAL_ROWS, AT(general)},
};

static const struct option_set refit_set = {
    .command = "sagitta refit",
    .arguments = "[DECK]",
    .doc = "Move the atoms so that they explain more: atom by atom, its K = 1 system is assembled "
           "from the residuals of its rows and solved, its frame moves, its codes are solved again."
           "\v"
           "A step is kept only if it does not make the atom's rows worse.  Atoms that share no "
           "row go side by side; a sweep is all classes once.  The folder of --output gets "
           "dictionary.h5, with /fit/history, and supports.h5, after every sweep.  rho is that of "
           "the supports.  " STOP_SIGNALS
           ", --max-seconds or a file called STOP in that folder, end the job within the sweep in "
           "work, which sweep.h5 then has for --resume, with exit code 75; routing and coding rows "
           "at its end is then done again.\n\n"
           "  mpirun -n 4 sagitta refit --rows acts.h5 --dictionary dict/dictionary.h5 \\\n"
           "      --supports run/supports.h5 --sweeps 5 --output refit/",
    .tables = tables,
    .count = LENGTH(tables),
    .max_arguments = 1,
    .has_deck = 1,
};

/* One refit, from command line to report. */
struct job {
  struct run *run;
  struct comm *c;
  const struct refit_options *o;
  struct refit_files files;
  struct fit_inputs inputs;
  struct refit_former former; /* of a run that is resumed */
  struct rows_input holdout;  /* rows that the refit does not see */
  real held;                  /* what the atoms explain of them; NaN: there are none */
  struct refit_task task;
  struct refit_state state;
  struct coder coder; /* with --reroute or --holdout, and on a GPU */
  struct judge judge; /* with --holdout */
  struct coded coded; /* the state's rows, where they stay on a GPU */
  struct resident resident;
  struct refit_publisher publisher; /* where the steps are taken there */
  float *table;                     /* [k][d][p] the frames as files have them */
  struct classes classes;
  struct sweep_start begun;   /* of the sweep that comes next, by the run that is resumed */
  struct sweep_facts in_work; /* it */
  struct arena arena;
  struct atom_step *steps; /* [k] */
  gidx *density;           /* [k] */
  real tss;
  struct metrics metrics;
  struct phase phases[REFIT_PHASES];
  gidx resumed;            /* sweeps that an earlier run has done */
  int is_there;            /* did it leave something to go on from? */
  struct sweep_counts all; /* of this run's sweeps */
};

static int options_check(const struct refit_options *o)
{
  CHECK(!(o->reroute && o->names.classes), ERR_USAGE,
        "'--classes' and '--reroute' exclude each other: new supports need new classes");
  return OK;
}

static int plan_print(struct job *j)
{
  const struct support_source *s = &j->inputs.supports.source;
  TRY(inputs_agree(j->c, fit_inputs_open(&j->inputs, &j->o->names)));
  j->task = fit_inputs_task(&j->inputs, j->run, &j->o->compute);
  j->task.colors = !j->o->names.classes;
  struct supports_shape shape = {.n = s->n,
                                 .k = s->k,
                                 .s = refit_task_support(&j->task),
                                 .d = s->d,
                                 .p = j->task.rows->p,
                                 .has_codes = 1};
  gidx frames = (gidx)s->k * s->d * shape.p * (gidx)sizeof(float);
  const struct fit_plan plan = {
      .task = &j->task,
      .directions = j->o->directions,
      .bytes_of = refit_batch_bytes,
      .disk = supports_bytes(&shape) + frames,
      .how_disk = ", twice that while a sweep's files take the place of the last; beside it twice "
                  "the dictionary where one in work is saved"};
  return fit_plan_print(j->run, &plan);
}

/* The coder's rows: the state's, or those to judge by. */
static struct coder_shape coder_shape_of(const struct job *j)
{
  const struct refit_options *o = j->o;
  struct coder_shape shape = refit_coder_shape(&j->state, j->inputs.supports.rounds, o->device);
  gidx first, rows = o->reroute || j->c->size == 1 ? shape.rows : 0;
  gidx held =
      o->holdout ? refit_rows_share(j->holdout.source.n, j->c->size, j->c->rank, &first) : 0;
  shape.rows = imax(rows, held);
  shape.work *= o->sweeps;
  return shape;
}

/* Begin used.in and run.log.  The inputs are those of the start, also of a run that is resumed. */
static int job_begin(struct job *j)
{
  const struct refit_files *f = &j->files;
  struct run_inputs inputs = fit_inputs_files(&j->inputs);
  if (j->o->holdout) inputs.holdout = &j->holdout;
  return run_begin_at(j->run, &f->dictionary, &inputs, f->has_dictionary || f->sweep.there);
}

static int inputs_open(struct job *j)
{
  TRY(fit_inputs_open(&j->inputs, &j->o->names));
  j->held = nan_canonical();
  if (!j->o->holdout) return OK;
  TRY(rows_input_open(&j->holdout, j->o->holdout));
  TRY(rows_inputs_disjoint(&j->holdout, "--holdout", &j->inputs.rows, "--rows"));
  const struct row_source *held = &j->holdout.source, *rows = &j->inputs.rows.source;
  CHECK(held->p == rows->p, ERR_INPUT, "'%s' has %d columns, '%s' has %d", held->name, held->p,
        rows->name, rows->p);
  CHECK(held->n > 0, ERR_INPUT, "'%s' has no rows", held->name);
  return OK;
}

/* Bytes that each rank holds beside the state. */
static int beside_find(struct job *j)
{
  struct refit_state f;
  if (!j->o->holdout) return OK;
  TRY(refit_state_shape(&f, &j->task, j->c));
  struct coder_shape shape = refit_coder_shape(&f, 1, "cpu");
  return judge_bytes(&shape, j->holdout.source.n, j->c->size, &j->task.beside);
}

static int coder_prepare(struct job *j)
{
  const struct refit_options *o = j->o;
  int wanted = o->reroute || o->holdout;
  if (!wanted && (j->c->size > 1 || !strcmp(o->device, "cpu"))) return OK;
  struct coder_shape shape = coder_shape_of(j);
  TRY(comm_agree(j->c, coder_open(&j->coder, &shape)));
  TRY(comm_devices_report(j->c, &j->coder.device));
  if (!wanted && !strcmp(j->coder.device.kind, "cpu")) coder_close(&j->coder);
  if (!o->holdout) return OK;
  return judge_open(&j->judge, &j->holdout.source, j->task.mean, &j->coder, j->c);
}

static int job_open(struct job *j)
{
  const struct refit_options *o = j->o;
  const struct fit_start wanted = {
      .directions = o->directions, .reroute = o->reroute, .cosine_limit = o->cosine_limit};
  TRY(comm_agree(j->c, options_check(o)));
  TRY(refit_files_open(&j->files, j->run, &o->output, o->resume, o->sweeps, &wanted));
  TRY(inputs_agree(j->c, inputs_open(j)));
  TRY(job_begin(j));
  j->task = fit_inputs_task(&j->inputs, j->run, &o->compute);
  TRY(threads_report(j->run, o->compute.threads));
  j->task.filter = o->filter;
  j->task.colors = !o->names.classes;
  TRY(comm_agree(j->c, beside_find(j)));
  TRY(refit_total_check(&j->task, j->c, refit_batch_bytes, o->directions, 1));
  TRY(refit_state_load(&j->state, &j->task, j->c));
  int status = arena_alloc(&j->arena, &j->steps, j->state.k, sizeof *j->steps);
  if (!status) status = arena_alloc(&j->arena, &j->density, j->state.k, sizeof *j->density);
  gidx values = (gidx)j->state.k * j->state.d * j->state.p;
  if (!status) status = arena_alloc(&j->arena, &j->table, values, sizeof *j->table);
  TRY(comm_agree(j->c, status));
  TRY(refit_tss(j->c, j->state.total, j->state.x, j->state.p, &j->tss));
  return coder_prepare(j);
}

/* While rows are routed and coded: what asks this rank to end?  Only where there is something to go
 * on from; and --max-seconds where some of that is of this run, so that runs get further. */
static uint64_t coding_asked(void *self)
{
  struct job *j = self;
  int has_more = j->files.facts.sweeps > j->resumed || j->files.sweep.saves;
  j->run->max_seconds = has_more ? j->o->max_seconds : 0;
  return has_more || j->is_there ? run_stop_asked(j->run, j->files.dictionary.shown) : 0;
}

static void coding_stopped(void *self, uint64_t asked)
{
  struct job *j = self;
  run_stopped(j->run, j->files.dictionary.shown, asked);
}

static struct stops coding_stops(struct job *j)
{
  return (struct stops){coding_asked, coding_stopped, j};
}

/* What do the atoms explain of rows that the refit does not see? */
static int held_judge(struct job *j)
{
  const struct refit_state *f = &j->state;
  const struct stops stops = coding_stops(j);
  int stopped;
  if (!j->o->holdout) return OK;
  for (gidx i = 0; i < (gidx)f->k * f->d * f->p; i++) j->table[i] = (float)f->frames[i];
  TRY(comm_agree(j->c, coder_put(&j->coder, j->table)));
  return judge_rows(&j->judge, &stops, &j->held, &stopped);
}

/* What metrics and residuals say of the same codes differs by their roundings: far less. */
#define SAME_VARIANCE 1e-6

/* *explained, on rank 0 <- what the codes of the state explain, by their residuals; warn where a
 * file says something else. */
static int state_judge(struct job *j, const char *file, real said, real *explained)
{
  real rss;
  TRY(comm_agree(j->c, refit_state_residuals(&j->state)));
  TRY(refit_rss(&j->state, &rss));
  if (j->c->rank) return OK;
  struct metrics m = {.n = j->state.total, .p = j->state.p};
  metrics_fit(&m, rss, j->tss, 0, 0);
  *explained = m.explained_variance;
  if (fabs(said - *explained) > SAME_VARIANCE)
    log_warn("'%s' says that its codes explain %.6g, with these rows and atoms they explain %.6g: "
             "were they solved for others?",
             file, said, *explained);
  return OK;
}

/* Write line 0 of the history: what the codes explain as they come. */
static int start_judge(struct job *j)
{
  const struct supports_input *supports = &j->inputs.supports;
  real is = 0;
  refit_start_note(&j->files.facts.start, &j->inputs, &j->state);
  TRY(state_judge(j, supports->source.name, supports->explained_variance, &is));
  j->files.facts.start.held.rows = j->judge.hash;
  TRY(held_judge(j));
  if (j->c->rank) return OK;
  gidx dead = 0;
  for (idx a = 0; a < j->state.k; a++) dead += refit_atom_rows(&j->state, a) == 0;
  j->files.lines[0] =
      (struct history_line){.explained_variance = is, .held_out = j->held, .dead = (real)dead};
  return OK;
}

/* Round, code and judge the state. */
static int state_finish(struct job *j, int reroute)
{
  struct phase *phase = &j->phases[reroute ? REFIT_ROUTE : REFIT_CODES];
  int is_there = j->resident.is_on;
  const struct sweep_end_options options = {reroute || is_there ? &j->coder : NULL,
                                            is_there ? &j->coded : NULL,
                                            reroute,
                                            j->table,
                                            j->o->cosine_limit,
                                            coding_stops(j)};
  int stopped;
  phase_begin(phase);
  TRY(refit_sweep_end(&j->state, &options, j->density, j->tss, &j->metrics, &stopped));
  phase_end(phase, 0);
  return OK;
}

static struct refit_result result_of(const struct job *j)
{
  return (struct refit_result){&j->state, &j->inputs, &j->metrics, j->steps};
}

static int state_write(struct job *j, int with_dictionary)
{
  const struct refit_result result = result_of(j);
  run_page_inputs(&j->files.facts.start.inputs);
  phase_begin(&j->phases[REFIT_WRITE]);
  TRY(inputs_confirm(j->c));
  if (with_dictionary) TRY(refit_dictionary_write(&j->files, j->run, &result));
  TRY(refit_supports_write(&j->files, j->run, &result));
  phase_end(&j->phases[REFIT_WRITE], 0);
  return OK;
}

/* Publish what a sweep gave; beside the next sweep where there is a publisher.  The list of inputs
 * is its worker's while it publishes. */
static int sweep_publish(struct job *j)
{
  struct phase *wait = &j->phases[REFIT_WAIT];
  if (!j->publisher.sweep) {
    TRY(state_write(j, 1));
    sweep_files_end(&j->files.sweep);
    return OK;
  }
  const struct refit_result result = result_of(j);
  j->files.facts.contents = j->state.contents;
  phase_begin(wait);
  TRY(refit_publisher_wait(&j->publisher));
  run_page_inputs(&j->files.facts.start.inputs);
  TRY(inputs_confirm(j->c));
  TRY(refit_publisher_begin(&j->publisher, &result));
  phase_end(wait, 0);
  return OK;
}

/* All that sweeps gave is there, or will not be. */
static int publisher_end(struct job *j, int status)
{
  struct phase *wait = &j->phases[REFIT_WAIT];
  if (!status && j->publisher.worker.state) {
    phase_begin(wait);
    status = refit_publisher_wait(&j->publisher);
    phase_end(wait, 0);
  }
  refit_publisher_close(&j->publisher);
  return status;
}

static int classes_find(struct job *j)
{
  struct class_report report;
  phase_begin(&j->phases[REFIT_COLOR]);
  classes_free(&j->classes);
  TRY(fit_inputs_classes(&j->inputs, &j->state, resident_looker(&j->resident), &j->classes));
  phase_end(&j->phases[REFIT_COLOR], 0);
  classes_report(&j->classes, j->state.s, &report);
  if (j->phases[REFIT_COLOR].calls == 1) color_log(&report);
  return OK;
}

static void line_add(struct job *j, const struct sweep_counts *counts)
{
  gidx sweep = j->files.facts.sweeps;
  j->files.lines[sweep] = (struct history_line){.sweep = (real)sweep,
                                                .explained_variance = j->metrics.explained_variance,
                                                .held_out = j->held,
                                                .dead = (real)j->metrics.dead_atoms,
                                                .accepted = (real)counts->accepted,
                                                .rejected = (real)counts->rejected,
                                                .escalated = (real)counts->escalated};
  char unseen[40] = "";
  if (j->o->holdout) snprintf(unseen, sizeof unseen, ", unseen %.6g", j->held);
  log_info("sweep   %lld: explained_variance %.6g -> %.6g%s, steps accepted %lld, rejected %lld, "
           "escalated %lld",
           (long long)sweep, j->files.lines[sweep - 1].explained_variance,
           j->metrics.explained_variance, unseen, (long long)counts->accepted,
           (long long)counts->rejected, (long long)counts->escalated);
  j->all.accepted += counts->accepted;
  j->all.rejected += counts->rejected;
  j->all.escalated += counts->escalated;
}

/* Between two atoms: the sweep is saved where that is due, and the job may end.  A run takes some
 * steps, however long all else took. */
static int steps_look(void *self, const struct sweep_point *at, int *stop)
{
  struct job *j = self;
  struct sweep_files *files = &j->files.sweep;
  char device[64];
  uint64_t asked;
  TRY(sweep_files_ask(files, at, &asked));
  j->run->max_seconds = j->o->max_seconds;
  if (!asked) return OK;
  snprintf(device, sizeof device, "cpu %s", j->state.device.variant);
  phase_begin(&j->phases[REFIT_WRITE]);
  TRY(inputs_confirm(j->c));
  TRY(sweep_files_save(files, &j->in_work, at, device, j->task.threads, asked, stop));
  phase_end(&j->phases[REFIT_WRITE], 0);
  return OK;
}

/* What sweep comes next, and what a run that is resumed has done of it. */
static int sweep_find(struct job *j)
{
  const struct fit_facts *facts = &j->files.facts;
  const struct refit_state *f = &j->state;
  struct sweep_files *files = &j->files.sweep;
  files->k = f->k;
  files->d = f->d;
  files->p = f->p;
  files->seconds = j->o->save_seconds;
  j->in_work = (struct sweep_facts){.sweeps = facts->sweeps, .start = facts->start};
  j->in_work.classes = classes_hash(j->classes.color, f->k);
  if (facts->sweeps) j->in_work.contents = facts->contents;
  if (j->resident.is_on) return OK; /* which makes a whole sweep in the time that reading takes */
  if (files->there)
    for (gidx i = 0; i < (gidx)f->k * f->d * f->p; i++) j->table[i] = (float)f->frames[i];
  return sweep_files_begin(files, &j->in_work, j->table, &j->begun);
}

/* Every atom takes a step. */
static int steps_take(struct job *j, struct sweep_counts *counts, int *stopped)
{
  struct phase *phase = &j->phases[REFIT_STEPS];
  char what[64];
  *stopped = 0;
  TRY(comm_agree(j->c, sweep_find(j)));
  snprintf(what, sizeof what, "sweep   %lld of %lld:", (long long)j->files.facts.sweeps + 1,
           (long long)j->o->sweeps);
  const struct coder *routes = j->o->reroute ? &j->coder : NULL;
  const struct sweep_task sweep = {.classes = &j->classes,
                                   .q = j->o->directions,
                                   .what = what,
                                   .watch = {steps_look, j},
                                   .start = j->begun,
                                   .after =
                                       refit_sweep_end_seconds(&j->state, routes, j->o->reroute)};
  if (!j->resident.is_on)
    return refit_sweep(&j->state, &sweep, j->phases, j->steps, counts, stopped);
  phase->device = j->coder.device.kind;
  phase_begin(phase);
  TRY(resident_sweep(&j->resident, &j->classes, j->steps, counts));
  phase_end(phase, 0);
  return OK;
}

static int sweep_run(struct job *j)
{
  struct sweep_counts counts;
  int stopped;
  TRY(steps_take(j, &counts, &stopped));
  if (stopped) return OK;
  TRY(state_finish(j, j->o->reroute));
  if (!j->run->stopped) TRY(held_judge(j));
  if (j->run->stopped) return OK;
  j->files.facts.sweeps++;
  if (j->c->rank == 0) line_add(j, &counts);
  TRY(sweep_publish(j));
  return j->o->reroute && j->files.facts.sweeps < j->o->sweeps ? classes_find(j) : OK;
}

/* Take the place of a run that was stopped.  Where its supports are not of its last sweep, they are
 * made again: their atoms are those of the start, or are routed. */
static int job_resume(struct job *j)
{
  real is = 0;
  uint64_t hash = j->judge.hash, held = j->files.facts.start.held.rows;
  TRY(refit_resume(&j->former, &j->files, &j->inputs, &j->state));
  log_info("resumed after sweep %lld", (long long)j->files.facts.sweeps);
  TRY(held_judge(j));
  if (j->run->stopped) return OK;
  CHECK(hash == held, ERR_INPUT,
        "'%s' was judged by other held-out rows: rows_hash %016llx, not %016llx; resume with the "
        "same '--holdout'",
        j->files.dictionary_path, (unsigned long long)held, (unsigned long long)hash);
  if (j->former.has_supports)
    return state_judge(j, j->files.supports_path, j->former.supports.explained_variance, &is);
  TRY(state_finish(j, j->o->reroute));
  if (j->run->stopped) return OK;
  TRY(comm_agree(j->c, refit_contents_check(&j->files, &j->state)));
  return state_write(j, 0);
}

/* *out <- the fingerprint of frames, supports, codes and determinants, as they are written. */
static int fingerprint_find(const struct job *j, uint64_t *out)
{
  const struct refit_state *f = &j->state;
  gidx entries = (gidx)f->n * f->s, at = f->first * f->s, frame = (gidx)f->k * f->d * f->p;
  uint64_t sum = fingerprint(f->atoms, entries, 4, at) + 3 * fingerprint(f->score, entries, 4, at) +
                 5 * fingerprint(f->codes, entries * f->d, 8, at * f->d);
  if (f->c->rank == 0) {
    sum += 7 * fingerprint(f->frames, frame, 8, 0);
    for (idx a = 0; a < f->k; a++) sum += 11 * fingerprint(&j->steps[a].log_det, 1, 8, a);
  }
  gidx total = (gidx)sum;
  TRY(comm_sum(f->c, &total, 1));
  *out = (uint64_t)total;
  return OK;
}

static int entries_tell(const struct job *j, gidx sweeps, uint64_t mark)
{
  const struct history_line *lines = j->files.lines;
  struct json *own;
  TRY(run_page_own(&own));
  json_long(own, "rows", j->state.total);
  json_long(own, "atoms", j->state.k);
  json_long(own, "top_s", j->state.s);
  json_long(own, "classes", j->classes.count);
  json_long(own, "sweeps", sweeps);
  json_real(own, "before", lines[0].explained_variance);
  if (j->o->holdout) json_real(own, "unseen_before", lines[0].held_out);
  if (j->o->holdout) json_real(own, "unseen", j->held);
  json_long(own, "accepted", j->all.accepted);
  json_long(own, "rejected", j->all.rejected);
  json_long(own, "escalated", j->all.escalated);
  page_hash_tell(own, "fingerprint", mark);
  return OK;
}

static int report(struct job *j, gidx resumed, double seconds)
{
  uint64_t mark = 0;
  const struct history_line *lines = j->files.lines;
  gidx sweeps = j->files.facts.sweeps;
  TRY(fingerprint_find(j, &mark));
  TRY(comm_agree(j->c, j->c->rank ? OK : entries_tell(j, sweeps - resumed, mark)));
  const struct device *device = j->resident.is_on ? &j->coder.device : &j->state.device;
  log_info("refit   rows=%lld atoms=%d top_s=%d classes=%d sweeps=%lld ranks=%d device='%s/%s' "
           "seconds=%.2f fingerprint=%016llx",
           (long long)j->state.total, j->state.k, j->state.s, j->classes.count,
           (long long)(sweeps - resumed), j->c->size, device->kind, device->variant, seconds,
           (unsigned long long)mark);
  TRY(report_phases(j->c, j->phases, REFIT_PHASES));
  if (j->c->rank) return OK;
  log_info("%-22s %.6g", "before", lines[0].explained_variance);
  if (j->o->holdout) {
    log_info("%-22s %.6g", "unseen rows, before", lines[0].held_out);
    log_info("%-22s %.6g", "unseen rows", j->held);
  }
  report_metrics(&j->metrics, 1);
  log_info("%-22s %lld accepted, %lld rejected, %lld escalated", "steps",
           (long long)j->all.accepted, (long long)j->all.rejected, (long long)j->all.escalated);
  log_info("wrote   %s", j->files.dictionary_path);
  log_info("wrote   %s", j->files.supports_path);
  return OK;
}

/* Where one rank has a GPU the rows stay there from sweep to sweep. */
static int rows_settle(struct job *j)
{
  struct refit_state *f = &j->state;
  if (j->c->size > 1 || !j->coder.device.backend) return OK;
  if (!strcmp(j->coder.device.kind, "cpu")) return OK;
  TRY(coded_open(&j->coder, &j->coded, f->n, f->first, f->x, f->atoms, f->score));
  TRY(coded_put(&j->coder, &j->coded, f->codes));
  TRY(resident_open(&j->resident, f, &j->coder, &j->coded, j->table, j->o->directions));
  if (!j->resident.is_on) {
    coded_close(&j->coder, &j->coded);
    return OK;
  }
  struct phase *write = &j->phases[REFIT_WRITE];
  j->publisher = (struct refit_publisher){
      .run = j->run, .files = &j->files, .write = write, .threads = j->task.threads};
  TRY(refit_publisher_open(&j->publisher, f));
  write->background = j->publisher.sweep != NULL;
  if (write->background && j->task.threads > 2)
    j->task.threads--; /* a team would wait for the one that writes */
  return OK;
}

/* Sweep after sweep, until there are as many as are wanted or the job is asked to stop. */
static int sweeps_run(struct job *j)
{
  while (j->files.facts.sweeps < j->o->sweeps && !j->run->stopped) {
    int stop = 0;
    if (j->files.facts.sweeps > 0) TRY(run_safe_point(j->run, j->files.dictionary.shown, &stop));
    if (!stop) TRY(sweep_run(j));
    if (!j->run->stopped) j->run->max_seconds = j->o->max_seconds;
  }
  return OK;
}

static int job_run(struct job *j)
{
  double begun = log_seconds();
  TRY(job_open(j));
  gidx resumed = j->resumed = j->files.facts.sweeps;
  j->is_there = resumed > 0 || j->files.sweep.there;
  TRY(resumed ? job_resume(j) : start_judge(j));
  if (j->run->stopped) return report_phases(j->c, j->phases, REFIT_PHASES);
  if (resumed >= j->o->sweeps) {
    log_info("nothing is left to do: %lld sweeps were wanted", (long long)j->o->sweeps);
    return OK;
  }
  TRY(classes_find(j));
  TRY(comm_agree(j->c, refit_classes_check(&j->files, &j->classes, j->o->names.classes)));
  TRY(comm_agree(j->c, rows_settle(j)));
  stop_listen();
  TRY(publisher_end(j, sweeps_run(j)));
  if (j->run->stopped) return report_phases(j->c, j->phases, REFIT_PHASES);
  return report(j, resumed, log_seconds() - begun);
}

static int refit_command(struct run *run, const void *options, const char **arguments)
{
  struct job *j = calloc(1, sizeof *j); /* kept after a failure, see command.h */
  (void)arguments;
  CHECK(j, ERR_MEMORY, "cannot allocate %zu bytes", sizeof *j);
  j->run = run;
  j->c = &run->comm;
  j->o = options;
  refit_phases(j->phases);
  TRY(j->o->dry_run ? plan_print(j) : job_run(j));
  classes_free(&j->classes);
  judge_close(&j->judge);
  resident_close(&j->resident);
  coded_close(&j->coder, &j->coded);
  coder_close(&j->coder);
  refit_state_free(&j->state);
  fit_inputs_close(&j->inputs);
  if (j->o->holdout) rows_input_close(&j->holdout);
  refit_former_close(&j->former);
  refit_files_free(&j->files);
  arena_free(&j->arena);
  free(j);
  return OK;
}

const struct command command_refit = {"refit",    "supports + dictionary -> better atoms and codes",
                                      &refit_set, sizeof(struct refit_options),
                                      1,          refit_command};
