/* SPDX-License-Identifier: BSD-3-Clause
 * Open the inputs, find the features, and encode all rows with them. */
#include "cli/fit_find.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "job/checkpoint.h"
#include "model/advice.h"
#include "encoding/encode_files.h"
#include "encoding/encode_ranks.h"
#include "encoding/encode_saves.h"
#include "cli/encode_report.h"
#include "results/find_files.h"
#include "find/forecast.h"
#include "refit/layout.h"
#include "cli/report.h"
#include "job/summary.h"
#include "job/threads.h"
#include "io/supports.h"
#include "io/input_agreement.h"
#include "model/identity.h"
#include "model/route.h"

/* The state of the job.  struct run (job/run.h) says why it is on the heap. */
struct find_job {
  struct run *run;
  const struct fit_options *o;
  struct rows_input rows, holdout;
  struct find_task task;
  struct find_sink sink;
  struct find_result result;
  struct find_files files;
  struct identity inputs;
  struct find_line *lines; /* [lines_max] */
  gidx count, lines_max, shown;
  int has_ended; /* supports.h5 is complete */
  double begun;
  /* Set when the search has ended. */
  float *atoms; /* [k][p] */
  real *mean;   /* [p] mean and offset together */
  struct encoder encoder;
  struct atom_array array; /* the atoms */
  struct atom_source source;
  struct encode_files supports;
  struct encode_task encode;
  struct encode_result encoded;
  struct arena arena;
};

/* Seconds between two checks for the file STOP: batches may be short, and the file system slow. */
static const real POLL_SECONDS = 0.25;

static void line_show(const struct find_job *j, const struct find_line *l)
{
  int digits = j->result.held_out_rows > 0;
  log_info("update %4lld of %lld: %d atoms, l0 %.2f: %s %.6f with l0 %.2f, dead %lld, replaced "
           "%lld",
           (long long)l->update, (long long)j->result.all, l->atoms, l->l0,
           digits ? "unseen" : "fitted", l->held, l->held_out_l0, (long long)l->dead,
           (long long)l->replaced);
}

static int lines_take(struct find_job *j, const struct find_point *p)
{
  j->inputs.rows = p->rows_hash;
  j->count = p->count;
  return lines_copy(&j->arena, &j->lines, &j->lines_max, p->lines, p->count, sizeof *j->lines);
}

static int find_points_json(const void *of, struct json *own)
{
  const struct find_job *j = of;
  const struct find_result *r = &j->result;
  summary_device_set(r->device);
  summary_inputs_set(&j->inputs);
  json_text(own, "find", "features");
  json_long(own, "rows", r->fitted_rows);
  json_long(own, "held_rows", r->held_out_rows);
  json_long(own, "columns", j->rows.source.p);
  json_long(own, "atoms", j->task.recipe.plan.k);
  json_real(own, "l0_target", j->task.recipe.plan.l0);
  json_long(own, "updates", j->count ? j->lines[j->count - 1].update : 0);
  json_array(own, "lines");
  lines_json(&find_line_form, j->lines, j->count, j->files.start.count, own);
  json_end(own);
  if (j->has_ended) json_hash(own, "fingerprint", j->encoded.fingerprint);
  json_text(own, "end", j->has_ended ? "updates" : NULL);
  return OK;
}

static int find_points_end(struct find_job *j, const struct find_point *p)
{
  size_t k = (size_t)p->k, columns = (size_t)j->files.p;
  TRY(arena_alloc(&j->arena, &j->atoms, (gidx)(k * columns), sizeof *j->atoms));
  TRY(arena_alloc(&j->arena, &j->mean, (gidx)columns, sizeof *j->mean));
  memcpy(j->atoms, p->atoms, k * columns * sizeof *j->atoms);
  for (size_t c = 0; c < columns; c++) j->mean[c] = (p->mean ? p->mean[c] : 0) + (real)p->offset[c];
  j->encoder = (struct encoder){
      .kind = ENCODER_ACTIVE, .k = p->k, .p = (idx)columns, .centered = 1, .active = p->encoder};
  return lines_take(j, p);
}

static int point_take(void *self, const struct find_point *p, enum find_reason why)
{
  struct find_job *j = self;
  struct comm *c = &j->run->comm;
  for (; j->shown < p->count; j->shown++)
    if (c->rank == 0) line_show(j, &p->lines[j->shown]);
  if (why == FIND_LINE) return OK;
  TRY(comm_agree(c, why == FIND_END ? find_points_end(j, p) : lines_take(j, p)));
  return find_files_publish(&j->files, p, why == FIND_END);
}

static void find_points_sink(struct find_job *j)
{
  struct job *job = &j->files.job;
  job->poll_seconds = POLL_SECONDS;
  job->stops_to_save = 1;
  job->save_seconds = j->o->save_seconds;
  job->summary = find_points_json;
  job->of = j;
  j->sink = (struct find_sink){j, point_take, job_stops(job), job_wishes(job)};
}

int fit_finds_features(const struct fit_options *o)
{
  return strcmp(o->find, "features") == 0;
}

/* Refuse options that do not go with --find features, such as those of sweeps. */
static int options_check(const struct option_set *set, const struct fit_options *o)
{
  static const struct option_advice all[] = {
      {"capture", "give rows, from `sagitta harvest`"},
      {"rates", "no rate is measured for their batches"},
      {"labels", "labels only choose '--top-s'"},
      {"max-norm", "leave such rows out beforehand"},
      {"encode-s", "rows have as many atoms as they need"},
      {"codes", "features have codes above 0"},
      {"rounds", "atoms are chosen by thresholds"},
      {"rho", "the penalty on codes is fixed"},
      {"update", "atoms move by their own rule"},
      {"passes", "atoms are solved, not descended"},
      {"directions", "atoms are solved for, and take no steps"},
      {"relaxation", "atoms are solved for, and take no steps"},
      {"revive-share", "all twins and dead atoms are replaced"},
      {"twin-cosine", "the limit is 0.6 here"},
      {"minibatch", "rows are always read in batches"},
      {"tolerance", "the number of updates is fixed"},
      {"sweeps", "the number of updates is fixed"},
      {"seeds", "fit again with another --seed, and compare"},
      {"detectors", "make detectors with `sagitta detect` afterwards"},
  };
  static const struct option_advice top_s = {"top-s",
                                             "'--l0' is the number of atoms a row, on average"};
  const struct option_advice *bad = options_first_set(set, o, all, LENGTH(all));
  /* 32 is accepted, because the identity of a job without --top-s says 32. */
  if (o->top_s_text && strcmp(o->top_s_text, "32") != 0) bad = &top_s;
  CHECK(!bad, ERR_USAGE, "'--%s' does not go with '--find features': %s; leave it out", bad->key,
        bad->advice);
  CHECK(o->l0 > 0, ERR_USAGE,
        "'--l0' is missing: give the average number of active atoms in a row, such as 25");
  return OK;
}

static int inputs_open(struct find_job *j)
{
  const struct fit_options *o = j->o;
  TRY(options_check(j->run->command->options, o));
  CHECK(o->rows, ERR_USAGE, "'--rows' is missing: give the file with the activation rows");
  CHECK(o->asked.k, ERR_USAGE, "'--atoms' is missing: give the number of atoms to learn");
  if (!o->dry_run) TRY(output_folder_check(&o->output));
  TRY(rows_input_open(&j->rows, &j->run->comm, o->rows));
  if (!o->holdout) return OK;
  TRY(rows_input_open(&j->holdout, &j->run->comm, o->holdout));
  return rows_inputs_disjoint(&j->holdout, "--holdout", &j->rows, "--rows");
}

static void task_fill(struct find_job *j)
{
  const struct fit_options *o = j->o;
  j->task = (struct find_task){.rows = &j->rows.source,
                               .held = o->holdout ? &j->holdout.source : NULL,
                               .held_out_fraction = o->asked.held_out_fraction,
                               .center = !o->uncentered,
                               .recipe = find_recipe(o->asked.k, o->l0),
                               .seed = (uint64_t)o->asked.seed,
                               .threads = threads_default(j->run, o->asked.threads),
                               .variant = o->asked.variant,
                               .device = o->asked.device};
}

/* Begin the identity: all that the atoms depend on and that is known before rows are read.
 * --top-s, which is refused here, gets a fixed value. */
static int identity_begin(struct find_job *j)
{
  struct identity_text *t = &j->run->identity;
  struct fit_options r = *j->o;
  r.top_s_text = "32"; /* also if --top-s is not given */
  r.cosine_limit = cosine_limit_resolved(r.cosine_limit, r.asked.k);
  if (r.holdout) r.asked.held_out_fraction = 0;
  TRY(identity_text_begin(t, j->run->command->options, &r));
  return identity_text_input(t, "held_out_rows", r.holdout ? "of --holdout" : "of --rows");
}

static int outputs_open(struct find_job *j)
{
  struct run *run = j->run;
  struct find_files *f = &j->files;
  const struct run_inputs inputs = {.rows = &j->rows,
                                    .holdout = j->o->holdout ? &j->holdout : NULL};
  f->k = j->o->asked.k;
  f->p = j->rows.source.p;
  f->top_s = (idx)imin(imin((gidx)ceil(j->o->l0), MAX_TOP_S), f->k);
  TRY(comm_agree(&run->comm, identity_begin(j)));
  f->job = (struct job){.run = run, .output = j->o->output, .resume = j->o->resume};
  TRY(find_files_open(f, &inputs));
  f->job.device = j->result.device;
  f->job.threads = j->task.threads;
  if (f->job.is_resumed && !f->is_complete) j->task.start = &f->start;
  j->shown = f->job.is_resumed ? f->start.count : 0;
  run->max_seconds = j->o->asked.max_seconds;
  if (run->comm.rank == 0 && f->job.is_resumed)
    log_info("resume  after update %lld%s", (long long)f->start.update,
             f->is_complete ? ", the last: only the rows are encoded again" : "");
  advice_shape(&j->rows.source);
  return threads_report(run, j->o->asked.threads);
}

static void encode_fill(struct find_job *j)
{
  idx k = j->encoder.k;
  j->array = (struct atom_array){j->atoms, k, 1, j->rows.source.p};
  j->source = atom_array_source(&j->array, j->o->output.output);
  j->encode = (struct encode_task){.rows = &j->rows.source,
                                   .atoms = &j->source,
                                   .mean = j->mean,
                                   .sink = &j->supports.file.sink,
                                   .encoder = &j->encoder,
                                   .weights = &j->source,
                                   .top_s = (idx)imin(k, ACTIVE_MOST),
                                   .rounds = 1,
                                   .groups = j->run->comm.size,
                                   .threads = j->task.threads,
                                   .device = "cpu",
                                   .variant = j->task.variant,
                                   .codes = 1,
                                   .nonnegative = 1,
                                   .max_cosine = j->o->cosine_limit};
  encode_cut_choose(&j->encode, j->run->comm.size);
}

static int supports_end(void *self)
{
  struct find_job *j = self;
  struct run_fact facts[MAX_FACTS];
  int n = run_facts(j->run, j->result.device, j->task.threads, facts);
  return encode_files_end(&j->supports, &j->encoded, facts, n);
}

/* Encode all rows into supports.h5; a resumed run encodes only the rest of them.  Collective. */
static int rows_encode(struct find_job *j)
{
  struct encode_files *f = &j->supports;
  struct encode_saves saves = {.files = f, .publish = supports_end, .self = j, .keeps_whole = 1};
  const struct row_source *rows = &j->rows.source;
  idx k = j->encoder.k, p = rows->p;
  uint64_t name = content_hash(items_terms(j->atoms, k, p, 0), k, 1, p);
  encode_fill(j);
  f->n = rows->n;
  f->task = &j->encode;
  f->all = rows;
  TRY(encode_files_resume(f, j->run, &j->files.job.more[1], j->files.job.is_resumed, name));
  f->job.save_seconds = j->o->save_seconds;
  f->job.summary = j->files.job.summary;
  f->job.of = j;
  TRY(job_begin(&f->job));
  TRY(encode_ranks_begin(f));
  encode_saves_begin(&saves);
  for (int more = 1; more;) {
    TRY(encode_run(&j->encode, &j->run->comm, &j->encoded));
    TRY(encode_saves_take(&saves, &j->encoded, &more));
  }
  TRY(encode_files_join(f, &j->encoded));
  return job_finish(&f->job, supports_end, j);
}

static void report(const struct find_job *j)
{
  const struct find_result *r = &j->result;
  const struct find_line *last = &j->lines[j->count - 1];
  log_info("find    rows=%lld held_out=%lld atoms=%d l0=%g updates=%lld ranks=%d device='%s' "
           "seconds=%.2f fingerprint=%016llx",
           (long long)r->fitted_rows, (long long)r->held_out_rows, j->encoder.k, j->o->l0,
           (long long)last->update, j->run->comm.size, r->device, log_seconds() - j->begun,
           (unsigned long long)j->encoded.fingerprint);
  if (r->held_out_rows || j->files.is_complete)
    log_info("%-22s %.6g, with %.4g atoms a row", "unseen rows", last->held, last->held_out_l0);
  else
    log_warn_named("few-held-out",
                   "no rows were held out: what is explained of unseen rows is not known; give "
                   "--holdout or --holdout-share, or encode other rows");
  log_info("all rows of --rows:");
  report_metrics(&j->encoded.metrics, 1);
  advice_dead(j->encoded.metrics.dead_atoms, j->encoder.k);
  log_info("wrote   %s", j->files.job.place.shown);
  log_info("wrote   %s", j->files.job.more[1].shown);
}

/* Note the entries of run.json, and log the report unless the job was stopped.  Rank 0. */
static int end_report(struct find_job *j)
{
  j->has_ended = !j->run->stopped;
  TRY(job_summary(&j->files.job));
  if (j->has_ended) report(j);
  return OK;
}

static void job_free(struct find_job *j)
{
  encode_free(&j->encoded);
  encode_files_free(&j->supports);
  rows_input_close(&j->rows);
  if (j->o->holdout) rows_input_close(&j->holdout);
  find_files_free(&j->files);
  arena_free(&j->arena);
  free(j);
}

/* Find the atoms, or take those of the dictionary.h5 that an earlier run completed. */
static int atoms_find(struct find_job *j)
{
  struct comm *c = &j->run->comm;
  find_points_sink(j);
  if (j->files.is_complete) return comm_agree(c, find_points_end(j, &j->files.start));
  j->task.beside = (gidx)(j->arena.bytes + j->files.arena.bytes);
  TRY(find_run(&j->task, c, &j->sink, &j->result));
  return report_phases(c, j->result.phases, FIND_PHASES);
}

/* The memory of the whole job on rank 0, and the sizes of its files, in bytes. */
struct plan {
  struct find_forecast f;
  gidx encoding, most;
  gidx dictionary, state, supports, disk; /* disk: the most at one time */
};

/* Fill the plan.  Rows have different numbers of atoms; their mean is taken to be --l0. */
static int plan_find(struct find_job *j, struct plan *p)
{
  const idx k = j->o->asked.k, columns = j->rows.source.p;
  gidx item = (gidx)sizeof(float);
  struct encode_memory m;
  TRY(find_forecast(&j->task, &j->run->comm, &p->f));
  j->encoder = (struct encoder){
      .kind = ENCODER_ACTIVE, .k = k, .p = columns, .centered = 1, .active = find_standard(1)};
  encode_fill(j);
  TRY(encode_memory(&j->encode, j->run->comm.size, 0, &m));
  const struct supports_shape shape = {.n = j->rows.source.n,
                                       .k = k,
                                       .s = (idx)ceil(j->o->l0),
                                       .d = 1,
                                       .p = columns,
                                       .has_codes = 1};
  p->encoding = memory_program() + m.host + (gidx)k * columns * item;
  p->most = imax(p->f.bytes, p->encoding);
  p->dictionary = matrix_bytes((gidx)k * columns);
  p->state = matrix_bytes((gidx)p->f.grown * columns);
  p->supports = supports_bytes(&shape);
  p->disk = p->state + imax(p->state, p->dictionary + p->supports);
  return OK;
}

static int plan_json(const struct find_job *j, const struct plan *p)
{
  struct json o;
  TRY(facts_begin(j->run, &o));
  json_text(&o, "update", "features");
  json_long(&o, "rows", p->f.fitted);
  json_long(&o, "held_rows", p->f.held);
  json_long(&o, "columns", j->rows.source.p);
  json_long(&o, "part_rows", p->f.batch);
  json_long(&o, "atoms", j->o->asked.k);
  json_long(&o, "grown", p->f.grown);
  json_real(&o, "l0", j->o->l0);
  json_long(&o, "updates", p->f.updates);
  json_object(&o, "multiply_adds");
  json_real(&o, "scores", p->f.scores);
  json_real(&o, "encoding", encode_work(&j->encode));
  json_end(&o);
  json_object(&o, "rank_bytes");
  json_long(&o, "most", p->most);
  json_long(&o, "fit", p->f.bytes);
  json_long(&o, "encoding", p->encoding);
  json_end(&o);
  json_long(&o, "gpu_bytes", p->f.gpu);
  json_long(&o, "present_bytes", memory_per_process(j->run->comm.local_size));
  json_object(&o, "file_bytes");
  json_long(&o, "dictionary.h5", p->dictionary);
  json_long(&o, "state.h5", p->state);
  json_long(&o, "supports.h5", p->supports);
  json_end(&o);
  json_long(&o, "disk_bytes", p->disk);
  return facts_end(&o);
}

/* Print the lines or the object of --dry-run.  Rank 0. */
static int plan_show(struct find_job *j)
{
  struct plan p;
  TRY(plan_find(j, &p));
  if (j->run->wants_json) return plan_json(j, &p);
  printf("fit         features: %lld updates, by growth and thresholds\n", (long long)p.f.updates);
  printf("rows        %lld x %d fitted, %lld held out, about %d at a time\n", (long long)p.f.fitted,
         j->rows.source.p, (long long)p.f.held, p.f.batch);
  printf("atoms       %d x %d, of %d that are grown; about %g a row in supports.h5\n",
         j->o->asked.k, j->rows.source.p, p.f.grown, j->o->l0);
  printf("work        scores of updates: %.3g multiply-adds; encoding %.3g\n", p.f.scores,
         encode_work(&j->encode));
  printf("memory      up to %.1f MB a rank: fitting %.1f, encoding %.1f\n", 1e-6 * (double)p.most,
         1e-6 * (double)p.f.bytes, 1e-6 * (double)p.encoding);
  if (p.f.gpu) printf("GPU         %.1f MB per GPU\n", 1e-6 * (double)p.f.gpu);
  report_present(p.most, memory_per_process(j->run->comm.local_size));
  printf("disk        about %.1f MB at a time: dictionary.h5 %.1f, state.h5 %.1f, supports.h5 "
         "%.1f\n",
         1e-6 * (double)p.disk, 1e-6 * (double)p.dictionary, 1e-6 * (double)p.state,
         1e-6 * (double)p.supports);
  return OK;
}

int fit_find_command(struct run *run, const struct fit_options *o)
{
  struct find_job *j;
  TRY(comm_agree(&run->comm, struct_alloc(&j, sizeof *j)));
  j->run = run;
  j->o = o;
  TRY(inputs_agree(&run->comm, inputs_open(j)));
  task_fill(j);
  TRY(comm_agree(&run->comm, find_task_check(&j->task)));
  if (o->dry_run) {
    TRY(comm_agree(&run->comm, run->comm.rank ? OK : plan_show(j)));
    job_free(j);
    return OK;
  }
  TRY(outputs_open(j));
  j->begun = log_seconds();
  stop_listen();
  TRY(atoms_find(j));
  if (!run->stopped) TRY(rows_encode(j));
  TRY(comm_agree(&run->comm, run->comm.rank ? OK : end_report(j)));
  job_free(j);
  return OK;
}
