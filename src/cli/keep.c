/* SPDX-License-Identifier: BSD-3-Clause
 * dictionary.h5 is published after every sweep.  supports.h5 follows from it, and is published when
 * the job ends or is stopped.  A resumed run solves the codes of the last sweep again. */
#include "cli/keep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/num.h"
#include "base/status.h"
#include "base/stop.h"
#include "base/sums.h"
#include "job/checkpoint.h"
#include "model/advice.h"
#include "cli/report.h"
#include "job/summary.h"
#include "job/threads.h"
#include "comm/buffers.h"
#include "fit/kept_moves.h"
#include "io/encoder.h"
#include "io/input_agreement.h"
#include "model/route.h"
#include "refit/sums.h"

struct keep_job {
  struct run *run;
  struct comm *c;
  const struct refit_options *o;
  struct refit_files files;
  struct rows_input rows, unseen;
  struct dictionary_input dictionary, previous;
  struct encoder_input opened; /* with --encoder */
  struct supports_input supports;
  struct stored_encoder stored; /* the encoder in the dictionary's file, with its matrices */
  int has_encoder;
  uint64_t encoder_hash; /* 0: the dictionary has no encoder that gave the supports */
  const real *mean;
  struct kept_task task;
  struct kept kept;
  char device[128]; /* kind and variant, as result files have them */
  float *decoder;   /* [k][p] atoms times their norms, if the encoder has norms */
  struct arena arena;
};

int keep_is_wanted(const struct refit_options *o)
{
  return o->keep || o->encoder;
}

int keep_options_check(const struct refit_options *o)
{
  if (!keep_is_wanted(o)) {
    CHECK(!strcmp(o->codes, "auto"), ERR_USAGE,
          "'--codes' goes with '--keep-supports': otherwise codes have the sign of those in "
          "--supports");
    return OK;
  }
  const char *with = o->keep ? "keep-supports" : "encoder";
  CHECK(!o->rates, ERR_USAGE,
        "'--rates' does not go with '--%s', for which no rate is measured: leave it out", with);
  CHECK(!o->reroute && !o->names.classes && o->directions == 4, ERR_USAGE,
        "'--%s' does not go with '--%s': supports stay, and all atoms move at once; leave it out",
        o->reroute         ? "reroute"
        : o->names.classes ? "classes"
                           : "directions",
        with);
  CHECK(!o->encoder || (!o->names.dictionary && !o->names.supports), ERR_USAGE,
        "'--encoder' does not go with '--%s': an encoder has atoms and gives supports; leave one "
        "of them out",
        o->names.dictionary ? "dictionary" : "supports");
  CHECK(o->encoder || (o->names.dictionary && o->names.supports), ERR_USAGE,
        "'--keep-supports' needs '--encoder', or both '--dictionary' and '--supports'");
  CHECK(o->encoder || !o->holdout, ERR_USAGE,
        "'--holdout' needs '--encoder', which gives unseen rows their supports");
  return OK;
}

/* Read the encoder in the dictionary's file, if there is one.  It is kept if it gave the supports:
 * with --encoder, or if the supports name its hash. */
static int encoder_find(struct keep_job *j)
{
  struct stored_encoder *s = &j->stored;
  const struct dictionary_input *d = &j->dictionary;
  int there = 0;
  if (d->input->format != INPUT_H5 || d->source.d > 1) return OK;
  TRY(encoder_read(&d->input->h5, &j->arena, s, &there));
  if (!there || !s->has_encoder) return OK;
  const struct encoder *e = &s->encoder;
  TRY(rows_check(e->weights, e->k, e->p, 0, "/encoder/weights"));
  uint64_t hash = encoder_hash(e, items_terms(e->weights, e->k, e->p, 0));
  j->has_encoder = j->o->encoder || j->supports.inputs.encoder == hash;
  if (j->has_encoder) j->encoder_hash = hash;
  return OK;
}

/* Open --dictionary and --supports.  All rows must have the same number of atoms, unless an encoder
 * gave the supports. */
static int supports_open(struct keep_job *j)
{
  struct supports_input *s = &j->supports;
  TRY(dictionary_input_open(&j->dictionary, j->o->names.dictionary));
  TRY(supports_input_open(s, j->o->names.supports));
  CHECK(strcmp(j->o->codes, "nonnegative") != 0 || s->nonnegative || s->top_s < 0, ERR_USAGE,
        "'--codes' is nonnegative, and the atoms of '%s' were chosen for codes of either sign: "
        "leave it out, or encode again with '--codes nonnegative'",
        s->source.name);
  TRY(refit_shapes_check(&j->rows.source, &j->dictionary.source, &s->source));
  CHECK(s->source.d == 1, ERR_INPUT,
        "the atoms of '%s' are frames of %d vectors: '--keep-supports' takes single vectors",
        j->dictionary.source.name, s->source.d);
  CHECK(s->encoder || s->source.n == 0 || s->source.entries % s->source.n == 0, ERR_INPUT,
        "'%s' has %lld entries in %lld rows, and names no encoder: rows of differing length must "
        "come from `sagitta encode --encoder`",
        s->source.name, (long long)s->source.entries, (long long)s->source.n);
  return supports_mean_find(s, j->dictionary.source.name, j->dictionary.mean,
                            j->dictionary.source.p, &j->mean);
}

static int unseen_open(struct keep_job *j)
{
  const struct row_source *rows = &j->rows.source, *unseen = &j->unseen.source;
  if (!j->o->holdout) return OK;
  TRY(rows_input_open(&j->unseen, j->c, j->o->holdout));
  TRY(rows_inputs_disjoint(&j->unseen, "--holdout", &j->rows, "--rows"));
  CHECK(unseen->p == rows->p, ERR_INPUT, "'%s' has %d columns, '%s' has %d", unseen->name,
        unseen->p, rows->name, rows->p);
  CHECK(unseen->n > 0, ERR_INPUT, "'%s' has no rows", unseen->name);
  return OK;
}

static int inputs_open(struct keep_job *j)
{
  const struct refit_options *o = j->o;
  CHECK(o->names.rows, ERR_USAGE, "'--rows' is missing: give the file with the activation rows");
  TRY(rows_input_open(&j->rows, j->c, o->names.rows));
  if (o->encoder) {
    TRY(encoder_dictionary_open(&j->dictionary, o->encoder));
    TRY(encoder_input_open(&j->opened, &j->dictionary));
    j->mean = j->dictionary.mean;
  } else {
    TRY(supports_open(j));
  }
  TRY(columns_check(&j->rows.source, &j->dictionary.source));
  CHECK(j->rows.source.n > 0, ERR_INPUT, "'%s' has no rows", j->rows.source.name);
  TRY(unseen_open(j));
  return encoder_find(j);
}

static void task_fill(struct keep_job *j)
{
  const struct refit_options *o = j->o;
  const struct supports_input *s = &j->supports;
  const struct encoder *e = &j->stored.encoder;
  int is_auto = !strcmp(o->codes, "auto"), says = o->encoder ? 1 : s->nonnegative;
  idx k = j->dictionary.source.k;
  gidx equal = s->source.n ? s->source.entries / s->source.n : 1;
  idx given = s->encoder ? s->top_s : (idx)imax(equal, 1);
  j->task = (struct kept_task){.rows = &j->rows.source,
                               .atoms = &j->dictionary.source,
                               .mean = j->mean,
                               .supports = o->encoder ? NULL : &s->source,
                               .encoder = o->encoder ? e : NULL,
                               .unseen = o->holdout ? &j->unseen.source : NULL,
                               .top = !o->encoder               ? given
                                      : e->kind == ENCODER_TOPK ? e->top
                                                                : k,
                               .is_equal = !o->encoder && !s->encoder,
                               .nonnegative = is_auto ? says : !strcmp(o->codes, "nonnegative"),
                               .rho = s->rho,
                               .max_cosine = o->cosine_limit,
                               .threads = threads_default(j->run, o->compute.threads),
                               .device = o->device,
                               .variant = o->compute.cpu_variant,
                               .named = s->inputs};
}

/* Add to the identity of the job what its result depends on besides options. */
static int identity_fill(struct keep_job *j)
{
  struct identity_text *t = &j->run->identity;
  const struct kept *w = &j->kept;
  TRY(identity_text_hash(t, "rows_hash", w->inputs.rows));
  TRY(identity_text_hash(t, "dictionary_hash", w->inputs.dictionary));
  TRY(identity_text_hash(t, "supports_hash", w->inputs.supports));
  TRY(identity_text_hash(t, "encoder_hash", j->encoder_hash));
  TRY(identity_text_hash(t, "held_out_hash", w->unseen.terms));
  TRY(identity_text_hash(t, "mean_hash", mean_hash(j->mean, w->p)));
  TRY(identity_text_input(t, "codes_sign", j->task.nonnegative ? "nonnegative" : "any"));
  return identity_text_input(t, "supports_rho", "%.17g", j->task.rho);
}

/* Rank 0: write and publish dictionary.h5 with the atoms of the last sweep. */
static int dictionary_write(void *of)
{
  struct keep_job *j = of;
  struct refit_files *f = &j->files;
  struct matrix_output *file = &f->dictionary_file;
  struct kept *w = &j->kept;
  struct stored_encoder stored = encoder_own(&j->stored.encoder);
  const float *norm = stored.encoder.norm;
  TRY(dictionary_output_create(file, f->job.place.file, w->k, 1, w->p));
  TRY(nonnegative_write(&file->result.h5, j->task.nonnegative));
  TRY(matrix_output_write(file, 0, w->k, w->atoms));
  if (j->mean) TRY(object_write_vector(&file->result.h5, "/mean", w->p, j->mean));
  f->facts.contents = w->contents;
  TRY(fit_write(file, &f->facts, f->lines, w->steps, w->k));
  stored.has_encoder = j->stored.has_encoder;
  stored.solved = 1;
  stored.decoder = norm ? j->decoder : NULL;
  for (gidx i = 0; norm && i < (gidx)w->k * w->p; i++) j->decoder[i] = norm[i / w->p] * w->atoms[i];
  if (j->has_encoder) TRY(encoder_write(file, &stored));
  return job_file_finish(&f->job, file);
}

static const char *kind_of(const struct keep_job *j)
{
  return j->o->encoder ? encoder_names[j->stored.encoder.kind] : j->supports.encoder;
}

static struct supports_shape shape_of(const struct keep_job *j)
{
  return (struct supports_shape){.n = j->task.rows->n,
                                 .k = j->task.atoms->k,
                                 .s = j->task.top,
                                 .d = 1,
                                 .p = j->task.atoms->p,
                                 .has_codes = 1,
                                 .nonnegative = j->task.nonnegative,
                                 .encoder = kind_of(j),
                                 .solved = kind_of(j) != NULL};
}

static int supports_write(struct keep_job *j)
{
  struct supports_output *file = &j->files.supports_file;
  struct kept *w = &j->kept;
  struct run_fact facts[MAX_FACTS];
  const struct supports_shape shape = shape_of(j);
  const struct job *job = &j->files.job;
  struct phase *phase = &w->phases[KEPT_WRITE];
  phase_begin(phase);
  TRY(inputs_confirm(j->c));
  int status = j->c->rank
                   ? OK
                   : supports_output_create(file, j->files.job.more[REFIT_SUPPORTS].file, &shape);
  TRY(comm_agree(j->c, status));
  TRY(kept_write(w, &file->sink));
  const struct supports_ending ending = {
      .metrics = &w->rows.metrics,
      .mean = j->mean,
      .rho = j->task.rho,
      .rounds = j->o->encoder ? 1 : j->supports.rounds,
      .sweeps = j->files.facts.sweeps,
      .inputs = {.rows = w->inputs.rows,
                 .dictionary = w->contents.dictionary,
                 .encoder = j->encoder_hash},
      .contents = {.supports = w->contents.supports, .codes = w->contents.codes}};
  if (j->c->rank == 0)
    status = supports_output_finish(file, &ending, facts,
                                    run_facts(j->run, job->device, job->threads, facts));
  phase_end(phase, 0);
  return comm_agree(j->c, status);
}

/* Add the line of the last sweep to the history.  Line 0 is about the start: the codes that were
 * solved for the given atoms. */
static void line_add(struct keep_job *j)
{
  const struct kept *w = &j->kept;
  gidx sweep = j->files.facts.sweeps, accepted = 0, dead = 0;
  for (idx a = 0; a < w->k; a++) {
    accepted += w->steps[a].accepted;
    dead += w->density[a] == 0;
  }
  real unseen = j->o->holdout ? w->unseen.metrics.explained_variance : nan_canonical();
  struct history_line *line = &j->files.lines[sweep];
  *line = (struct history_line){.sweep = (real)sweep,
                                .explained_variance = w->rows.metrics.explained_variance,
                                .held_out = unseen,
                                .dead = (real)dead,
                                .accepted = (real)accepted};
  char more[40] = "";
  if (j->o->holdout) snprintf(more, sizeof more, ", unseen %.6g", unseen);
  log_info("sweep   %lld: explained_variance %.6g%s", (long long)sweep, line->explained_variance,
           more);
}

/* Continue an earlier run: take its atoms, and solve the codes for them. */
static int sweeps_resume(struct keep_job *j)
{
  const struct identity *was = &j->files.facts.contents, *is = &j->kept.contents;
  TRY(comm_agree(j->c, j->c->rank ? OK : job_file_check(&j->files.job, &j->files.job.place)));
  log_info("resumed after sweep %lld", (long long)j->files.facts.sweeps);
  TRY(inputs_agree(j->c, dictionary_input_open(&j->previous, j->files.job.place.shown)));
  CHECK(j->previous.source.k == j->kept.k && j->previous.source.p == j->kept.p &&
            j->previous.source.d == 1,
        ERR_INPUT, "'%s' belongs to other atoms: begin again, with --force and not --resume",
        j->files.job.place.shown);
  TRY(kept_atoms_take(&j->kept, &j->previous.source));
  TRY(kept_solve(&j->kept));
  CHECK(was->dictionary == is->dictionary && was->codes == is->codes, ERR_INPUT,
        "'%s' is damaged: its atoms do not give the codes that it names", j->files.job.place.shown);
  return OK;
}

static int sweeps_begin(struct keep_job *j)
{
  const struct kept *w = &j->kept;
  struct fit_start *start = &j->files.facts.start;
  gidx rows = w->rows.total;
  *start = (struct fit_start){.directions = j->o->directions,
                              .cosine_limit = j->o->cosine_limit,
                              .rounds = j->o->encoder ? 1 : j->supports.rounds,
                              .top_s = imin(imax(ceil_div(w->rows.entries, rows), 1), MAX_TOP_S),
                              .rho = j->task.rho,
                              .inputs = w->inputs,
                              .held.rows = w->unseen.terms};
  start->inputs.encoder = j->encoder_hash;
  TRY(kept_solve(&j->kept));
  if (j->c->rank == 0) line_add(j);
  return OK;
}

static int sweep_run(struct keep_job *j)
{
  TRY(kept_move(&j->kept));
  TRY(kept_solve(&j->kept));
  j->files.facts.sweeps++;
  if (j->c->rank == 0) line_add(j);
  phase_begin(&j->kept.phases[KEPT_WRITE]);
  summary_inputs_set(&j->files.facts.start.inputs);
  TRY(job_checkpoint(&j->files.job));
  phase_end(&j->kept.phases[KEPT_WRITE], 0);
  return OK;
}

static int sweeps_run(struct keep_job *j)
{
  stop_listen();
  while (j->files.facts.sweeps < j->o->sweeps && !j->run->stopped) {
    int stop = 0;
    if (j->files.facts.sweeps) TRY(job_poll(&j->files.job, &stop));
    if (!stop) TRY(sweep_run(j));
    /* Set only now, so that --max-seconds stops no run before its first sweep has ended. */
    j->run->max_seconds = j->o->max_seconds;
  }
  return supports_write(j);
}

static int entries_json(const struct keep_job *j, gidx sweeps, uint64_t mark)
{
  const struct history_line *lines = j->files.lines;
  const struct kept *w = &j->kept;
  struct json *own;
  TRY(summary_entries(&own));
  json_long(own, "rows", w->rows.total);
  json_long(own, "atoms", w->k);
  json_long(own, "entries", w->rows.entries);
  json_text(own, "encoder", kind_of(j));
  json_flag(own, "nonnegative", j->task.nonnegative);
  json_long(own, "sweeps", sweeps);
  json_real(own, "given", w->rows.own);
  json_real(own, "before", lines[0].explained_variance);
  if (j->o->holdout) {
    json_real(own, "unseen_given", w->unseen.own);
    json_real(own, "unseen_before", lines[0].held_out);
    json_real(own, "unseen", w->unseen.metrics.explained_variance);
  }
  json_hash(own, "fingerprint", mark);
  return OK;
}

static int report(struct keep_job *j, gidx resumed, double seconds)
{
  const struct kept *w = &j->kept;
  const struct identity *is = &w->contents;
  const struct history_line *lines = j->files.lines;
  const char *kind = kind_of(j), *given = kind ? "codes of the encoder" : "codes as given";
  uint64_t mark = is->dictionary + 3 * is->supports + 5 * is->codes;
  gidx sweeps = j->files.facts.sweeps - resumed;
  TRY(comm_agree(j->c, j->c->rank ? OK : entries_json(j, sweeps, mark)));
  log_info("refit   rows=%lld atoms=%d supports=%s entries=%lld sweeps=%lld ranks=%d "
           "device='%s/%s' seconds=%.2f fingerprint=%016llx",
           (long long)w->rows.total, w->k, kind ? kind : "given", (long long)w->rows.entries,
           (long long)sweeps, j->c->size, w->device.kind, w->device.variant, seconds,
           (unsigned long long)mark);
  TRY(report_phases(j->c, w->phases, KEPT_PHASES));
  if (j->c->rank) return OK;
  log_info("%-22s %.6g", given, w->rows.own);
  log_info("%-22s %.6g", "before", lines[0].explained_variance);
  if (j->o->holdout) {
    log_info("unseen rows            %.6g by %s, %.6g before, %.6g now", w->unseen.own, given,
             lines[0].held_out, w->unseen.metrics.explained_variance);
    advice_explained(w->unseen.metrics.explained_variance, "the unseen rows");
  }
  report_metrics(&w->rows.metrics, 1);
  log_info("wrote   %s", j->files.job.place.shown);
  log_info("wrote   %s", j->files.job.more[REFIT_SUPPORTS].shown);
  return OK;
}

static int plan_print(struct keep_job *j)
{
  gidx bytes, first, each;
  const struct kept_task *t = &j->task;
  const struct supports_shape shape = shape_of(j);
  gidx disk = supports_bytes(&shape) + (gidx)t->atoms->k * t->atoms->p * (gidx)sizeof(float);
  each = refit_rows_partition(t->rows->n, j->c->size, 0, &first);
  TRY(kept_memory(t, j->c, &bytes));
  if (j->c->rank) return OK;
  const char *more = !t->supports && t->top == t->atoms->k ? ", and 12 bytes for each code" : "";
  if (j->run->wants_json) {
    struct json json;
    TRY(facts_begin(j->run, &json));
    json_long(&json, "rows", t->rows->n);
    json_long(&json, "columns", t->rows->p);
    json_long(&json, "rank_rows", each);
    json_long(&json, "atoms", t->atoms->k);
    json_long(&json, "top_s", t->top);
    json_object(&json, "rank_bytes");
    json_long(&json, "most", bytes);
    json_end(&json);
    json_long(&json, "present_bytes", memory_per_process(j->c->local_size));
    json_long(&json, "disk_bytes", disk);
    return facts_end(&json);
  }
  printf("rows        %lld x %d, up to %lld a rank: whole blocks of %d rows\n",
         (long long)t->rows->n, t->rows->p, (long long)each, ROW_BLOCK);
  printf("atoms       %d, up to %d a row\n", t->atoms->k, t->top);
  printf("memory      up to %.1f MB a rank%s\n", 1e-6 * (double)bytes, more);
  printf("present     %.1f MB a rank\n", 1e-6 * (double)memory_per_process(j->c->local_size));
  printf("disk        %.1f MB%s\n", 1e-6 * (double)disk, more);
  return OK;
}

static int files_open(struct keep_job *j)
{
  struct refit_files *f = &j->files;
  const struct refit_options *o = j->o;
  const struct run_inputs inputs = {.name = {j->dictionary.file, j->supports.file},
                                    .rows = &j->rows,
                                    .holdout = o->holdout ? &j->unseen : NULL};
  f->job = (struct job){.run = j->run, .output = o->output, .resume = o->resume};
  f->sweeps = o->sweeps;
  f->facts.start = (struct fit_start){.directions = o->directions, .cosine_limit = o->cosine_limit};
  f->save_instead = dictionary_write;
  TRY(refit_files_open(f, &inputs));
  f->job.of = j;
  return OK;
}

/* Rank 0: with --resume, refuse a sweep.h5, which is of another job: a refit with --keep-supports
 * saves no such file. */
static int sweep_check(const struct keep_job *j)
{
  const struct sweep_files *s = &j->files.sweep;
  return s->there ? job_file_check(&j->files.job, &s->place) : OK;
}

/* Warn if the metrics mislead: because of a few rows of massive norm, or a mean that is not
 * subtracted. */
static int rows_advise(const struct keep_job *j)
{
  const struct kept_rows *r = &j->kept.rows, *u = &j->kept.unseen;
  struct metrics m = {.explained_variance = r->own}, unseen = {0};
  idx p = j->kept.p;
  TRY(refit_norms(j->c, r->total, r->x, p, r->tss, "these rows", &m));
  if (!j->mean && !j->has_encoder && j->c->rank == 0)
    advice_mean(&m, j->dictionary.file,
                "encode with --center, and refit a dictionary that has /mean beside its atoms");
  if (!j->o->holdout) return OK;
  return refit_norms(j->c, u->total, u->x, p, u->tss, "the held-out rows", &unseen);
}

static int keep_open(struct keep_job *j)
{
  const struct refit_options *o = j->o;
  struct refit_options counts = *o;
  counts.keep = 1; /* --encoder implies this, and with --codes auto nonnegative codes */
  if (o->encoder && !strcmp(o->codes, "auto")) counts.codes = "nonnegative";
  TRY(comm_agree(j->c, identity_text_begin(&j->run->identity, j->run->command->options, &counts)));
  TRY(comm_agree(j->c, output_folder_check(&o->output)));
  TRY(inputs_agree(j->c, inputs_open(j)));
  TRY(files_open(j));
  TRY(comm_agree(j->c, j->c->rank ? OK : sweep_check(j)));
  task_fill(j);
  TRY(threads_report(j->run, o->compute.threads));
  TRY(kept_open(&j->kept, &j->task, j->c));
  TRY(comm_devices_report(j->c, &j->kept.device));
  snprintf(j->device, sizeof j->device, "%s %s", j->kept.device.kind, j->kept.device.variant);
  j->files.job.device = j->device;
  j->files.job.threads = j->task.threads;
  TRY(rows_advise(j));
  const gidx values = j->stored.encoder.norm ? (gidx)j->kept.k * j->kept.p : 0;
  TRY(comm_agree(j->c, arena_alloc(&j->arena, &j->decoder, values, sizeof *j->decoder)));
  return comm_agree(j->c, identity_fill(j));
}

static int job_run(struct keep_job *j)
{
  double begun = log_seconds();
  TRY(keep_open(j));
  gidx resumed = j->files.facts.sweeps;
  TRY(resumed ? sweeps_resume(j) : sweeps_begin(j));
  if (resumed >= j->o->sweeps)
    log_info("nothing is left to do but supports.h5: all %lld sweeps are done",
             (long long)j->o->sweeps);
  TRY(sweeps_run(j));
  return j->run->stopped ? report_phases(j->c, j->kept.phases, KEPT_PHASES)
                         : report(j, resumed, log_seconds() - begun);
}

int keep_command(struct run *run, const struct refit_options *o)
{
  struct keep_job *j;
  TRY(comm_agree(&run->comm, struct_alloc(&j, sizeof *j)));
  j->run = run;
  j->c = &run->comm;
  j->o = o;
  if (o->dry_run) {
    TRY(inputs_agree(j->c, inputs_open(j)));
    task_fill(j);
    TRY(comm_agree(j->c, plan_print(j)));
  } else {
    TRY(job_run(j));
  }
  kept_close(&j->kept);
  rows_input_close(&j->rows);
  if (o->holdout) rows_input_close(&j->unseen);
  dictionary_input_close(&j->previous);
  encoder_input_close(&j->opened);
  supports_input_close(&j->supports);
  dictionary_input_close(&j->dictionary);
  refit_files_free(&j->files);
  arena_free(&j->arena);
  free(j);
  return OK;
}
