/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta refit: rows + dictionary + supports -> a better dictionary and its codes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fingerprint.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/num.h"
#include "base/pace.h"
#include "base/status.h"
#include "model/advice.h"
#include "cli/keep.h"
#include "cli/refit_job.h"
#include "cli/report.h"
#include "job/summary.h"
#include "job/threads.h"
#include "comm/buffers.h"
#include "io/input_agreement.h"
#include "model/directions.h"
#include "refit/frames.h"
#include "refit/sums.h"
#include "refit/sweep_end.h"
#include "refit/times.h"

#define AT(member) offsetof(struct refit_options, member)

static const struct option_row refit_rows[] = {
    {"keep-supports", OPTION_FLAG, AT(keep), "no", 0, 1, NULL, NULL,
     "keep the supports as they are: any number of atoms per row, also atoms whose code becomes "
     "0. All atoms move at once, by the normal equations, and codes are solved again",
     .effect = OPTION_BITS},
    {"encoder", OPTION_TEXT, AT(encoder), NULL, 0, 0, NULL, "FILE",
     "in place of --dictionary and --supports: a result of `sagitta train` or `import`, whose "
     "encoder gives the supports that are kept; dictionary.h5 of the result has the encoder too",
     .effect = OPTION_BITS, .flags = OPTION_INPUT},
    {"codes", OPTION_CHOICE, AT(codes), "auto", 0, 0, "auto|signed|nonnegative", NULL,
     "may codes be negative with --keep-supports? auto: as the supports say, and nonnegative "
     "for the supports of an encoder",
     .effect = OPTION_BITS},
    {"sweeps", OPTION_INT, AT(sweeps), "1", 1, 1 << 20, NULL, "COUNT",
     "sweeps over all atoms; with --resume the sweeps of the earlier run count too, and must "
     "not be more than COUNT",
     .effect = OPTION_EXTENT},
    {"directions", OPTION_INT, AT(directions), "4", 1, MAX_DIRECTIONS, NULL, "COUNT",
     "number of directions in which an atom can move in a sweep; 1: only along the gradient. Each "
     "further direction costs a pass over the rows of the atom, and explains a little more per "
     "sweep",
     .effect = OPTION_BITS},
    {"reroute", OPTION_FLAG, AT(reroute), "no", 0, 1, NULL, NULL,
     "after each sweep choose the atoms of all rows again, in the same number of rounds as those "
     "of --supports",
     .effect = OPTION_BITS},
    {"holdout", OPTION_TEXTS, AT(holdout), NULL, 0, 0, NULL, "FILE[:/PATH]",
     "rows to which no atom is fitted: the log says how much of them the atoms of each sweep "
     "explain; several files as with --rows",
     .effect = OPTION_BITS, .flags = OPTION_INPUT},
    DEVICE_OPTION(AT(device)),
    SHARE_OPTION(AT(share)),
    FILTER_OPTION(AT(filter)),
    {"resume", OPTION_FLAG, AT(resume), "no", 0, 1, NULL, NULL,
     "continue the stopped run at --output with the same inputs and options; any number of "
     "ranks gives the same bits",
     .effect = OPTION_RUN},
    MAX_SECONDS_OPTION(AT(max_seconds), "a batch of atoms"),
    SAVE_SECONDS_OPTION(AT(save_seconds), "", "save only on a stop request"),
    COSINE_LIMIT_OPTION(AT(cosine_limit)),
    DRY_RUN_OPTION(AT(dry_run)),
    RATES_OPTION(AT(rates)),
};

static const struct option_table tables[] = {
    {"Input", fit_name_rows, FIT_NAME_ROWS, AT(names)},
    {"Refit", refit_rows, LENGTH(refit_rows), 0},
    {"Result", folder_rows, OUTPUT_ROWS, AT(output)},
    {"Speed; no bit of the result changes", fit_compute_rows, FIT_COMPUTE_ROWS, AT(compute)},
    {"Job", general_rows, GENERAL_ROWS, AT(general)},
};

static const struct option_set refit_set = {
    .command = "sagitta refit",
    .arguments = "[DECK]",
    .doc =
        "Move the atoms of a dictionary so that they explain more of the rows.  Each atom takes a "
        "Newton step from the residuals of its rows; then its codes are solved again."
        "\v"
        "A step is kept only if the rows of the atom are not described worse after it.  Atoms "
        "that share no row form a class and move together; a sweep goes through all classes.  "
        "After every sweep the folder of --output gets dictionary.h5, with /fit/history, and "
        "supports.h5.  On a GPU a sweep is not written if it ends while an earlier one is being "
        "written, unless it is the last.  The penalty rho is that of the supports.\n\n"
        "--max-seconds stops a job after a given time.  To stop a running job, create a file STOP "
        "in the folder of --output, " STOP_SIGNALS "A stopped job ends with exit code 75 within "
        "the sweep, and sweep.h5 holds the unfinished sweep.  A job that is stopped at the end of "
        "a sweep, while atoms and codes of rows are found, repeats this step with --resume.\n\n"
        "  mpirun -n 4 sagitta refit --rows acts.h5 --dictionary dict/dictionary.h5 \\\n"
        "      --supports run/supports.h5 --sweeps 5 --output refit/\n\n"
        "With --keep-supports or --encoder the supports stay as they are: each sweep finds the "
        "best atoms for them, and then the best codes.  If the supports are those of an encoder, "
        "dictionary.h5 has the encoder too: `encode --encoder` then finds the supports of other "
        "rows with the encoder, and solves their codes.\n\n"
        "  sagitta refit --rows acts.h5 --encoder sae/ --holdout unseen.h5 --sweeps 4 \\\n"
        "      --output better/\n"
        "  sagitta encode --rows unseen.h5 --encoder better/ --output codes/",
    .tables = tables,
    .count = LENGTH(tables),
    .max_arguments = 1,
    .has_config = 1,
};

static int options_check(const struct refit_options *o)
{
  CHECK(!(o->reroute && o->names.classes), ERR_USAGE,
        "'--classes' does not go with '--reroute', whose new supports need new classes: leave one "
        "of them out");
  return output_folder_check(&o->output);
}

/* Complete the task with the members that depend on options, and on whether ranks divide the
 * rows. */
static int task_complete(struct refit_job *j)
{
  const struct refit_options *o = j->o;
  j->task.colors = !o->names.classes;
  j->task.has_table = 1;
  j->task.routes =
      o->reroute || o->holdout || (j->rows->size == 1 && strcmp(o->device, "cpu") != 0);
  j->task.max_cosine = o->cosine_limit;
  j->task.shares = 0;
  return comm_is_alone(j->rows) ? OK : refit_frames_choose(&j->task, j->c, o->share);
}

/* Number of this rank's held-out rows. */
static gidx held_out_rows(const struct refit_job *j)
{
  gidx first, n = j->o->holdout ? j->holdout.source.n : 0;
  return refit_rows_partition(n, j->rows->size, j->rows->rank, &first);
}

/* The shape of a coder.  It has room for this rank's held-out rows.  With --reroute, or if this
 * rank has all rows, it has room for this rank's fitted rows, too. */
static struct sparse_coder_shape sparse_coder_shape_of(const struct refit_job *j,
                                                       const struct refit_state *f)
{
  const struct refit_options *o = j->o;
  struct sparse_coder_shape shape =
      refit_sparse_coder_shape(f, j->inputs.supports.rounds, o->device);
  gidx rows = o->reroute || j->rows->size == 1 ? shape.rows : 0;
  shape.rows = imax(rows, held_out_rows(j));
  shape.work *= o->sweeps;
  return shape;
}

/* Open the job.  A resumed run loads the same inputs as the first run (refit_files.c). */
static int files_open(struct refit_job *j)
{
  const struct refit_options *o = j->o;
  struct refit_files *f = &j->files;
  struct run_inputs inputs = fit_inputs_files(&j->inputs);
  if (o->holdout) inputs.holdout = &j->holdout;
  f->job = (struct job){.run = j->run, .output = o->output, .resume = o->resume};
  f->write = &j->phases[REFIT_WRITE];
  f->sweeps = o->sweeps;
  f->facts.start = (struct fit_start){
      .directions = o->directions, .reroute = o->reroute, .cosine_limit = o->cosine_limit};
  return refit_files_open(f, &inputs);
}

static int inputs_open(struct refit_job *j)
{
  TRY(fit_inputs_open(&j->inputs, j->c, &j->o->names));
  j->held = nan_canonical();
  if (!j->o->holdout) return OK;
  TRY(rows_input_open(&j->holdout, j->c, j->o->holdout));
  TRY(rows_inputs_disjoint(&j->holdout, "--holdout", &j->inputs.rows, "--rows"));
  const struct row_source *held = &j->holdout.source, *rows = &j->inputs.rows.source;
  CHECK(held->p == rows->p, ERR_INPUT,
        "'%s' has %d columns, '%s' has %d: give rows with as many columns as the fitted rows",
        held->name, held->p, rows->name, rows->p);
  CHECK(held->n > 0, ERR_INPUT, "'%s' has no rows: give some, or leave --holdout out", held->name);
  return OK;
}

/* j->task.beside <- the bytes that a rank needs for --holdout, in addition to the state. */
static int beside_find(struct refit_job *j)
{
  struct refit_state f;
  j->task.beside = 0;
  if (!j->o->holdout) return OK;
  TRY(refit_state_shape(&f, &j->task, j->rows));
  struct sparse_coder_shape shape = refit_sparse_coder_shape(&f, 1, "cpu");
  return fit_validation_bytes(&shape, j->holdout.source.n, j->rows->size, &j->task.beside);
}

/* Complete the task, and check that the memory suffices.  Called before rows are read. */
static int memory_plan(struct refit_job *j)
{
  TRY(task_complete(j));
  TRY(comm_agree(j->rows, beside_find(j)));
  return refit_total_check(&j->task, j->rows, refit_batch_bytes, j->o->directions, 1);
}

static int has_gpu(const struct refit_job *j)
{
  struct refit_state f;
  if (refit_state_shape(&f, &j->task, j->rows)) return 0;
  struct sparse_coder_shape shape = sparse_coder_shape_of(j, &f);
  return resident_fits(&f, &shape, held_out_rows(j), j->o->directions);
}

/* Decide whether every rank gets all rows (refit/resident.h), and set j->rows. */
static int alone_plan(struct refit_job *j)
{
  if (j->c->size == 1 || !strcmp(j->o->device, "cpu") || !strcmp(j->o->share, "yes")) return OK;
  TRY(comm_alone(j->c, &j->alone));
  j->rows = &j->alone;
  int status = memory_plan(j);
  if (status && status != ERR_MEMORY && status != ERR_INPUT) return status;
  return resident_agree(j->c, !status && has_gpu(j), &j->rows);
}

/* Rank 0 alone. */
static int times_find(const struct refit_job *j, struct plan_rates *rates, struct times *times)
{
  const struct refit_options *o = j->o;
  const struct refit_extent extent = {.sweeps = o->sweeps,
                                      .held_out = o->holdout ? j->holdout.source.n : 0,
                                      .held_out_bytes = j->holdout.source.row_bytes,
                                      .q = o->directions,
                                      .rounds = j->inputs.supports.rounds,
                                      .reroute = o->reroute,
                                      .has_classes = o->names.classes != NULL};
  TRY(report_rates_read(j->run, o->rates, j->task.threads, o->device, rates, times));
  if (rates->path) refit_times(&j->task, &extent, j->c->size, &rates->rates, times);
  return OK;
}

static int plan_print(struct refit_job *j)
{
  const struct support_source *s = &j->inputs.supports.source;
  struct plan_rates rates;
  struct times times;
  TRY(inputs_agree(j->c, inputs_open(j)));
  j->task = fit_inputs_task(&j->inputs, j->run, &j->o->compute);
  TRY(alone_plan(j));
  if (!comm_is_alone(j->rows)) {
    TRY(task_complete(j));
    TRY(comm_agree(j->c, beside_find(j)));
  }
  struct supports_shape shape = {.n = s->n,
                                 .k = s->k,
                                 .s = refit_task_support(&j->task),
                                 .d = s->d,
                                 .p = j->task.rows->p,
                                 .has_codes = 1};
  gidx frames = (gidx)s->k * s->d * shape.p * (gidx)sizeof(float);
  const struct fit_plan plan = {
      .task = &j->task,
      .rows = j->rows,
      .directions = j->o->directions,
      .bytes_of = refit_batch_bytes,
      .disk = supports_bytes(&shape) + frames,
      .how_disk = ", twice that while a sweep's files take the place of the last; beside it twice "
                  "the dictionary where one in work is saved",
      .rates = &rates,
      .times = &times};
  TRY(comm_agree(j->c, j->c->rank ? OK : times_find(j, &rates, &times)));
  return fit_plan_print(j->run, &plan);
}

static int sparse_coder_prepare(struct refit_job *j)
{
  const struct refit_options *o = j->o;
  int wanted = o->reroute || o->holdout;
  if (!wanted && (j->rows->size > 1 || !strcmp(o->device, "cpu"))) return OK;
  struct sparse_coder_shape shape = sparse_coder_shape_of(j, &j->state);
  TRY(comm_agree(j->c, sparse_coder_open(&j->coder, &shape)));
  TRY(comm_is_alone(j->rows) ? sparse_coder_join(&j->coder, j->c)
                             : comm_devices_report(j->c, &j->coder.device));
  if (!wanted && !strcmp(j->coder.device.kind, "cpu")) sparse_coder_close(&j->coder);
  if (!o->holdout) return OK;
  TRY(fit_validation_open(&j->validation, &j->holdout.source, j->task.mean, &j->coder, j->rows));
  return fit_validation_advise(&j->validation);
}

/* Warn if the metrics mislead: because of a few rows of massive norm, or a mean that is not
 * subtracted. */
static int rows_advise(const struct refit_job *j)
{
  const struct refit_state *f = &j->state;
  const struct dictionary_input *d = &j->inputs.dictionary;
  struct metrics m = {.explained_variance = j->inputs.supports.explained_variance};
  TRY(refit_norms(j->rows, f->total, f->x, f->p, j->tss, "these rows", &m));
  if (!j->task.mean && !d->rounds)
    advice_mean(&m, d->file,
                "encode with --center, and refit a dictionary that has /mean beside its atoms");
  return OK;
}

static int refit_open(struct refit_job *j)
{
  const struct refit_options *o = j->o;
  TRY(comm_agree(j->c, options_check(o)));
  TRY(comm_agree(j->c, identity_text_begin(&j->run->identity, j->run->command->options, o)));
  TRY(inputs_agree(j->c, inputs_open(j)));
  TRY(files_open(j));
  j->task = fit_inputs_task(&j->inputs, j->run, &o->compute);
  TRY(threads_report(j->run, o->compute.threads));
  j->task.filter = o->filter;
  j->task.writes = 1;
  TRY(alone_plan(j));
  if (!comm_is_alone(j->rows)) TRY(memory_plan(j));
  TRY(refit_state_load(&j->state, &j->task, j->rows));
  TRY(comm_agree(j->c, refit_identity_fill(&j->run->identity, &j->inputs, &j->state)));
  snprintf(j->device, sizeof j->device, "cpu %s", j->state.device.variant);
  j->files.job.device = j->device;
  j->files.job.threads = j->task.threads;
  int status = arena_alloc(&j->arena, &j->steps, j->state.k, sizeof *j->steps);
  if (!status) status = arena_alloc(&j->arena, &j->density, j->state.k, sizeof *j->density);
  TRY(comm_agree(j->c, status));
  TRY(refit_tss(j->rows, j->state.total, j->state.x, j->state.p, &j->tss));
  TRY(rows_advise(j));
  return sparse_coder_prepare(j);
}

/* *out <- the fingerprint of the state: frames, supports, scores, codes and log-determinants. */
static int fingerprint_find(const struct refit_job *j, uint64_t *out)
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

static int entries_json(const struct refit_job *j, gidx sweeps, uint64_t mark)
{
  const struct history_line *lines = j->files.lines;
  struct json *own;
  TRY(summary_entries(&own));
  json_long(own, "rows", j->state.total);
  json_long(own, "atoms", j->state.k);
  json_long(own, "top_s", j->state.s);
  json_long(own, "classes", j->classes.count);
  json_long(own, "shared_bytes", j->state.shared.bytes);
  json_long(own, "sweeps", sweeps);
  json_real(own, "before", lines[0].explained_variance);
  if (j->o->holdout) json_real(own, "unseen_before", lines[0].held_out);
  if (j->o->holdout) json_real(own, "unseen", j->held);
  json_long(own, "accepted", j->all.accepted);
  json_long(own, "rejected", j->all.rejected);
  json_long(own, "escalated", j->all.escalated);
  json_hash(own, "fingerprint", mark);
  return OK;
}

static int report(struct refit_job *j, gidx resumed, double seconds)
{
  uint64_t mark = 0;
  const struct history_line *lines = j->files.lines;
  gidx sweeps = j->files.facts.sweeps;
  TRY(fingerprint_find(j, &mark));
  TRY(comm_agree(j->c, j->c->rank ? OK : entries_json(j, sweeps - resumed, mark)));
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
    advice_explained(j->held, "the unseen rows");
  }
  report_metrics(&j->metrics, 1);
  log_info("%-22s %lld accepted, %lld rejected, %lld escalated", "steps",
           (long long)j->all.accepted, (long long)j->all.rejected, (long long)j->all.escalated);
  log_info("wrote   %s", j->files.job.place.shown);
  log_info("wrote   %s", j->files.job.more[REFIT_SUPPORTS].shown);
  return OK;
}

/* Announce the bytes that a stop writes: dictionary.h5 and supports.h5 of the previous sweep, which
 * may not be on disk yet; then sweep.h5, or the two files of this sweep. */
static void ending_set(const struct refit_job *j)
{
  const struct support_source *s = j->task.supports;
  gidx frames = (gidx)s->k * s->d * j->task.rows->p, entry = 2 * (gidx)sizeof(float);
  gidx results = frames * (gidx)sizeof(float) + s->entries * (entry + s->d * (gidx)sizeof(float));
  gidx bytes = results + imax(results, 2 * frames * (gidx)sizeof(real));
  pace_ending_set(bytes, 0);
}

static int job_run(struct refit_job *j)
{
  double begun = log_seconds();
  TRY(refit_open(j));
  gidx resumed = j->resumed = j->files.facts.sweeps;
  j->files.job.save_seconds = j->o->save_seconds;
  j->files.job.may_stop = refit_may_stop;
  j->files.job.of = j;
  ending_set(j);
  TRY(resumed ? refit_job_resume(j) : refit_start_evaluate(j));
  if (j->run->stopped) return report_phases(j->c, j->phases, REFIT_PHASES);
  int is_left = resumed < j->o->sweeps;
  if (is_left || j->o->names.classes) {
    TRY(refit_classes_find(j));
    TRY(comm_agree(j->c, refit_classes_check(&j->files, &j->classes, j->o->names.classes)));
  }
  if (!is_left) {
    TRY(inputs_confirm(j->c));
    log_info("nothing is left to do: all %lld sweeps are done", (long long)j->o->sweeps);
    sweep_files_over(&j->files.sweep, resumed);
    return OK;
  }
  TRY(refit_sweeps_run(j));
  if (j->run->stopped) return report_phases(j->c, j->phases, REFIT_PHASES);
  return report(j, resumed, log_seconds() - begun);
}

static int refit_command(struct run *run, const void *options, const char **arguments)
{
  const struct refit_options *o = options;
  TRY(comm_agree(&run->comm, report_rates_check(o->rates, o->dry_run)));
  TRY(comm_agree(&run->comm, keep_options_check(options)));
  if (keep_is_wanted(options)) return keep_command(run, options);
  struct refit_job *j;
  (void)arguments;
  TRY(comm_agree(&run->comm, struct_alloc(&j, sizeof *j)));
  j->run = run;
  j->c = j->rows = &run->comm;
  j->o = o;
  refit_phases(j->phases);
  TRY(j->o->dry_run ? plan_print(j) : job_run(j));
  classes_free(&j->classes);
  fit_validation_close(&j->validation);
  resident_close(&j->resident);
  coded_close(&j->coder, &j->coded);
  sparse_coder_leave(&j->coder);
  TRY(comm_unite(j->c, &j->alone));
  sparse_coder_close(&j->coder);
  refit_state_free(&j->state);
  fit_inputs_close(&j->inputs);
  if (j->o->holdout) rows_input_close(&j->holdout);
  refit_files_free(&j->files);
  arena_free(&j->arena);
  free(j);
  return OK;
}

const struct command command_refit = {"refit",    "supports + dictionary -> better atoms and codes",
                                      &refit_set, sizeof(struct refit_options),
                                      1,          refit_command};
