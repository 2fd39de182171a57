/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta train: rows -> a dictionary with an encoder, evaluated on held-out rows. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/num.h"
#include "base/pace.h"
#include "base/status.h"
#include "base/stop.h"
#include "model/advice.h"
#include "io/input_agreement.h"
#include "encode/content.h"
#include "cli/report.h"
#include "job/summary.h"
#include "job/threads.h"
#include "cli/train_job.h"
#include "model/route.h"
#include "model/split.h"

struct train_options {
  struct general_options general;
  struct output_options output;
  struct train_task asked; /* options that the task takes unchanged; j->task is complete */
  const char *rows, *holdout, *start, *fixed, *selection, *nested, *pre_bias, *precision, *rates;
  int uncentered, resume, dry_run;
  real max_seconds, save_seconds, max_norm;
};
#define AT(member) offsetof(struct train_options, member)

static const struct option_row input_rows[] = {
    ROWS_OPTION(AT(rows)),
    HOLDOUT_OPTION(AT(holdout)),
    {"holdout-share", OPTION_REAL, AT(asked.held_out_fraction), "0.1", 0, 0.9, NULL, "SHARE",
     "hold out about this share of --rows, at most about 65,536 rows: each window of 128 rows is "
     "drawn with this probability, so with few rows the share may be far off. The dictionary is "
     "not trained on held-out rows, but judged by them; 0: no row is held out",
     .effect = OPTION_BITS},
    MAX_NORM_OPTION(AT(max_norm)),
    UNCENTERED_OPTION(AT(uncentered)),
};

static const struct option_row model_rows[] = {
    {"atoms", OPTION_INT, AT(asked.sizes.k), "0", 0, 1 << 30, NULL, "COUNT",
     "number of atoms to learn; 0: as many as --start or --fixed-dictionary has",
     .effect = OPTION_BITS},
    {"selection", OPTION_CHOICE, AT(selection), "row", 0, 0, "row|batch", NULL,
     "row: the codes of a row are its --top-s largest scores, if positive; batch: the codes are "
     "the largest scores of a whole batch, if positive, --l0 per row on average; a threshold is "
     "learned, by which single rows are encoded later (BatchTopK)",
     .effect = OPTION_BITS},
    {"top-s", OPTION_INT, AT(asked.sizes.s), "32", 1, MAX_TOP_S, NULL, "ATOMS",
     "codes per row, at most, with --selection row", .effect = OPTION_BITS},
    {"l0", OPTION_REAL, AT(asked.sizes.l0), "0", 0, 1 << 30, NULL, "ATOMS",
     "codes per row on average, with --selection batch, such as 32 or 20.5; 0: --top-s",
     .effect = OPTION_BITS},
    {"nested", OPTION_TEXT, AT(nested), NULL, 0, 0, NULL, "SIZES",
     "Matryoshka widths, such as 128,512,4096, of which the last is --atoms: the loss is the "
     "error with the first 128 atoms alone, plus that with the first 512, plus that with all",
     .effect = OPTION_BITS},
    {"start", OPTION_TEXT, AT(start), NULL, 0, 0, NULL, "FILE[:/PATH]",
     "begin with the atoms and the mean of this dictionary, such as one of `sagitta fit`; if it "
     "has no mean, rows are not centred. Its encoder is taken too, if two conditions hold: it is "
     "of the kind that is trained (for --selection row: topk; for --selection batch: batchtopk, "
     "with one threshold for all atoms), and it was made for atoms of length 1 and for rows less "
     "their mean. Otherwise the encoder starts equal to the atoms",
     .effect = OPTION_BITS, .flags = OPTION_INPUT},
    {"fixed-dictionary", OPTION_TEXT, AT(fixed), NULL, 0, 0, NULL, "FILE[:/PATH]",
     "begin with the atoms, the mean and the encoder of this dictionary, as --start does, but keep "
     "the atoms: only the encoder is trained",
     .effect = OPTION_BITS, .flags = OPTION_INPUT},
    {"pre-bias", OPTION_CHOICE, AT(pre_bias), "mean", 0, 0, "mean|learned", NULL,
     "what is subtracted from rows before encoding, and added to the reconstruction. mean: the "
     "column means, which stay fixed; learned: begins at the column means, or at 0 with "
     "--uncentered, and is trained",
     .effect = OPTION_BITS},
    {"aux-atoms", OPTION_INT, AT(asked.sizes.aux), "256", 0, 1 << 20, NULL, "COUNT",
     "largest number of dead atoms per row that are trained on what the codes of the row do not "
     "explain; 0: none",
     .effect = OPTION_BITS},
    {"aux-weight", OPTION_REAL, AT(asked.sizes.aux_weight), "0.03125", 0, 1e6, NULL, "WEIGHT",
     "weight of the loss that trains dead atoms", .effect = OPTION_BITS},
    {"dead-rows", OPTION_LONG, AT(asked.sizes.dead_rows), "0", 0, 0x1p53, NULL, "ROWS",
     "an atom is dead if none of the last ROWS rows used it; 0: the number of rows of one epoch",
     .effect = OPTION_BITS},
    {"seed", OPTION_LONG, AT(asked.seed), "0", 0, 0x1p53, NULL, "NUMBER",
     "number from which the first weights, the order of the rows and the held-out rows are drawn",
     .effect = OPTION_BITS},
};

static const struct option_row descent_rows[] = {
    {"batch", OPTION_INT, AT(asked.batch), "256", 1, 1 << 24, NULL, "ROWS",
     "rows per step, divided among ranks; the result depends on it", .effect = OPTION_BITS},
    {"epochs", OPTION_LONG, AT(asked.epochs), "10", 0, 1 << 20, NULL, "COUNT",
     "passes over the rows", .effect = OPTION_BITS},
    {"steps", OPTION_LONG, AT(asked.steps), "0", 0, 1ll << 40, NULL, "COUNT",
     "steps to take, instead of --epochs; 0: --epochs decides", .effect = OPTION_BITS},
    {"lr", OPTION_REAL, AT(asked.rate.most), "0", 0, 1e38, NULL, "RATE",
     "learning rate of Adam; 0: 0.128 / sqrt(--atoms)", .effect = OPTION_BITS},
    {"warm-up", OPTION_REAL, AT(asked.rate.warm_up), "0.05", 0, 1, NULL, "SHARE",
     "the learning rate rises during the first SHARE of the steps", .effect = OPTION_BITS},
    {"decay", OPTION_REAL, AT(asked.rate.decay), "0.5", 0, 1, NULL, "SHARE",
     "the learning rate falls to 0 during the last SHARE of the steps", .effect = OPTION_BITS},
    {"precision", OPTION_CHOICE, AT(precision), "f32", 0, 0, "f32|bf16|f16|tf32", NULL,
     "precision of the scores in a step. f32: the same weights everywhere; others: a GPU's "
     "matrix unit computes the scores, and weights are the same only on GPUs of the same kind",
     .effect = OPTION_BITS},
    {"every", OPTION_LONG, AT(asked.every), "0", 0, 1ll << 40, NULL, "STEPS",
     "number of steps between two evaluations of the held-out rows; 0: the steps of an epoch",
     .effect = OPTION_BITS},
};

static const struct option_row speed_rows[] = {
    THREADS_OPTION(AT(asked.threads)),
    DEVICE_OPTION(AT(asked.device)),
    CPU_VARIANT_OPTION(AT(asked.variant), "instruction set of CPU loops"),
    KERNELS_OPTION(AT(asked.kernels)),
    RESUME_OPTION(AT(resume)),
    {"save-seconds", OPTION_REAL, AT(save_seconds), "300", 0, 1e9, NULL, "SECONDS",
     "save the state every SECONDS and on a stop request; a killed job loses what came after "
     "the last save; 0: after each step",
     .effect = OPTION_RUN},
    {"max-seconds", OPTION_REAL, AT(max_seconds), "0", 0, 1e9, NULL, "SECONDS",
     "stop after the first step that ends more than SECONDS after the start, but at least 16 "
     "steps or one second of steps, whichever comes first, are made in a run; --resume "
     "continues; 0: no limit",
     .effect = OPTION_EXTENT},
    DRY_RUN_OPTION(AT(dry_run)),
    RATES_OPTION(AT(rates)),
};

static const struct option_table tables[] = {
    {"Input", input_rows, LENGTH(input_rows), 0},
    {"Autoencoder", model_rows, LENGTH(model_rows), 0},
    {"Descent", descent_rows, LENGTH(descent_rows), 0},
    {"Result", folder_rows, OUTPUT_ROWS, AT(output)},
    {"Speed", speed_rows, LENGTH(speed_rows), 0},
    {"Job", general_rows, GENERAL_ROWS, AT(general)},
};

static const struct option_set train_set = {
    .command = "sagitta train",
    .arguments = "[DECK]",
    .doc =
        "Train a TopK autoencoder on rows: a dictionary, and an encoder that finds codes by one "
        "matrix product."
        "\v"
        "The codes of a row are its --top-s largest scores, if positive (Gao and others 2024).  "
        "With --selection batch the largest scores of a whole batch are chosen together, so a row "
        "has as many codes as it needs (Bussmann and others 2024).  With --nested the first atoms "
        "are also trained to describe rows without the others, and become the most general ones "
        "(Bussmann and others 2025).\n\n"
        "Adam trains decoder and encoder in f32, and every sum has a fixed order: the weights "
        "have the same bits on any number of ranks and threads, on a CPU or a GPU.  With "
        "--precision bf16 a GPU's matrix unit computes the scores of the steps, about three times "
        "as fast for large dictionaries; the weights are then the same only on GPUs of the same "
        "kind.  Held-out rows are evaluated in f32.  With the same number of codes per row, the "
        "atoms of `sagitta fit` explain more; `train` adds an encoder, which other programs can "
        "use.\n\n"
        "While the job runs, the folder of --output gets state.h5 for --resume.  At the end it "
        "gets dictionary.h5 for `encode --encoder` and `export`.\n\n"
        "--max-seconds stops a job after a given time.  To stop a running job, create a file STOP "
        "in the folder of --output, " STOP_SIGNALS
        "A stopped job ends with exit code 75 after the current step.  If the request comes while "
        "held-out rows are evaluated, one more step is made.\n\n"
        "  mpirun -n 4 sagitta train --rows acts.h5 --atoms 4096 --top-s 32 \\\n"
        "      --output sae/\n"
        "  sagitta train --rows acts.h5 --atoms 4096 --selection batch --l0 32 \\\n"
        "      --nested 128,512,4096 --output sae/\n"
        "  sagitta train --rows acts.h5 --fixed-dictionary fit/ --output sae/\n"
        "  sagitta encode --rows more.h5 --encoder sae/ --output more/",
    .tables = tables,
    .count = LENGTH(tables),
    .max_arguments = 1,
    .has_config = 1,
};

static int is_batch(const struct train_options *o)
{
  return strcmp(o->selection, "batch") == 0;
}

/* The kind of encoder that is trained. */
static const char *kind_of(const struct train_options *o)
{
  return encoder_names[is_batch(o) ? ENCODER_BATCHTOPK : ENCODER_TOPK];
}

/* Is an encoder of the kind that is trained?  If it has thresholds, they must all be equal, finite
 * and at least 0. */
static int kind_fits(const struct train_options *o, const struct encoder *e)
{
  if (strcmp(encoder_names[e->kind], kind_of(o)) != 0) return 0;
  for (idx a = 1; e->threshold && a < e->k; a++)
    if (e->threshold[a] != e->threshold[0]) return 0;
  return !e->threshold || (e->threshold[0] >= 0 && isfinite(e->threshold[0]));
}

/* Take the encoder of the given dictionary if it is of the kind trained here, reads rows less the
 * mean, and gives codes for atoms of norm 1.  Any other encoder would give other codes. */
static int encoder_take(struct train_job *j)
{
  const struct input_array *in = j->dictionary.input;
  const struct encoder *e = &j->encoder.encoder;
  gidx k = j->given.k, p = j->given.p;
  if (in->format != INPUT_H5 || strcmp(in->object, "/atoms") != 0) return OK;
  TRY(encoder_read(&in->h5, &j->arena, &j->encoder, &j->has_encoder));
  j->has_encoder &= j->encoder.has_encoder;
  j->takes_encoder = j->has_encoder && kind_fits(j->o, e) && e->centered && !e->norm;
  if (!j->takes_encoder) return OK;
  TRY(rows_check(e->weights, k, (idx)p, 0, "/encoder/weights"));
  TRY(rows_check(e->bias, 1, (idx)k, 0, "/encoder/bias"));
  j->atoms_hash += 3 * encoder_hash(e, items_terms(e->weights, k, p, 0));
  return OK;
}

/* Log what is taken from the given dictionary.  Warn if its encoder is not taken, or if it has no
 * mean and --uncentered is not given. */
static void given_show(const struct train_job *j)
{
  const char *name = j->given.name;
  if (!j->atoms) return;
  const char *mean = !j->dictionary.mean ? "" : j->takes_encoder ? ", mean" : " and mean";
  log_info("start   atoms%s%s of '%s'%s", mean, j->takes_encoder ? " and encoder" : "", name,
           j->takes_encoder ? "" : "; the encoder begins tied to the atoms");
  if (j->has_encoder && !j->takes_encoder)
    log_warn("the encoder of '%s' is not taken: encoders that are trained here are %s, of centred "
             "rows and with unit atoms",
             name, kind_of(j->o));
  if (!j->dictionary.mean && !j->o->uncentered)
    log_warn("'%s' brings no mean: rows are not centred; if that is meant, give '--uncentered'",
             name);
}

/* Open the dictionary of --start or --fixed-dictionary, if one is given, and read its atoms. */
static int given_open(struct train_job *j)
{
  const struct train_options *o = j->o;
  const char *name = o->start ? o->start : o->fixed;
  struct atom_source *s = &j->dictionary.source;
  CHECK(!o->start || !o->fixed, ERR_USAGE, "give '--start' or '--fixed-dictionary', not both");
  CHECK(name || o->asked.sizes.k, ERR_USAGE,
        "'--atoms' is missing: give the number of atoms to learn");
  if (!name) return OK;
  TRY(dictionary_input_open(&j->dictionary, name));
  CHECK(s->d == 1, ERR_INPUT, "'%s' has frames of %d vectors: an autoencoder has single atoms",
        s->name, s->d);
  CHECK(!o->asked.sizes.k || o->asked.sizes.k == s->k, ERR_USAGE,
        "'--atoms' is %d, and '%s' has %d: leave it out", o->asked.sizes.k, s->name, s->k);
  CHECK(!o->uncentered || !j->dictionary.mean, ERR_USAGE,
        "'--uncentered' does not go with '%s', which brings a mean", s->name);
  TRY(columns_check(&j->rows.source, s));
  TRY(arena_alloc(&j->arena, &j->atoms, (gidx)s->k * s->p, sizeof *j->atoms));
  TRY(s->read(s->self, 0, s->k, j->atoms));
  TRY(atoms_check(j->atoms, s->k, 1, s->p, 0, s->name));
  j->atoms_hash = content_hash(items_terms(j->atoms, s->k, s->p, 0), s->k, 1, s->p) +
                  5 * mean_hash(j->dictionary.mean, s->p);
  j->array = (struct atom_array){j->atoms, s->k, 1, s->p};
  j->given = atom_array_source(&j->array, s->name);
  return encoder_take(j);
}

static int inputs_open(struct train_job *j)
{
  const struct train_options *o = j->o;
  struct comm *c = &j->run->comm;
  CHECK(o->rows, ERR_USAGE, "'--rows' is missing: give the file with the activation rows");
  CHECK(o->asked.sizes.l0 == 0 || is_batch(o), ERR_USAGE,
        "'--l0' is an average number of codes: add '--selection batch', or give '--top-s', the "
        "number in each row");
  CHECK(!is_batch(o) || o->asked.steps || o->asked.epochs, ERR_USAGE,
        "'--selection batch' learns its threshold in steps: give '--epochs' of 1 or more");
  TRY(report_rates_check(o->rates, o->dry_run));
  CHECK(!o->rates || strcmp(o->precision, "f32") == 0, ERR_USAGE,
        "'--rates' does not go with '--precision %s', for which no rate is measured: leave it out",
        o->precision);
  if (!o->dry_run) TRY(output_folder_check(&o->output));
  TRY(rows_input_open(&j->rows, c, o->rows));
  if (o->holdout) TRY(rows_input_open(&j->holdout, c, o->holdout));
  if (o->holdout) TRY(rows_inputs_disjoint(&j->holdout, "--holdout", &j->rows, "--rows"));
  return given_open(j);
}

/* Mean number of codes per row with --selection batch; 0 with --selection row. */
static real l0_of(const struct train_options *o)
{
  return !is_batch(o) ? 0 : o->asked.sizes.l0 > 0 ? o->asked.sizes.l0 : o->asked.sizes.s;
}

static int task_fill(struct train_job *j)
{
  const struct train_options *o = j->o;
  const struct encoder *e = &j->encoder.encoder;
  struct train_task *t = &j->task;
  struct train_sizes *z = &t->sizes;
  *t = o->asked;
  t->rows = &j->rows.source;
  t->held = o->holdout ? &j->holdout.source : NULL;
  t->mean = j->dictionary.mean;
  t->encoder = j->takes_encoder ? e->weights : NULL;
  t->bias = e->bias;
  t->threshold = j->takes_encoder && e->threshold ? *e->threshold : 0;
  t->center = !o->uncentered;
  if (j->atoms) t->atoms = &j->given;
  if (j->atoms) z->k = j->given.k;
  z->l0 = l0_of(o);
  if (!(z->aux_weight > 0)) z->aux = 0;
  z->is_fixed = o->fixed != NULL;
  z->learns_offset = strcmp(o->pre_bias, "learned") == 0;
  t->precision = precision_of(o->precision);
  if (!(t->rate.most > 0)) t->rate.most = 0.128 / sqrt(z->k);
  t->threads = threads_default(j->run, t->threads);
  if (o->nested) TRY(nested_read(o->nested, z->k, &z->nested));
  nested_text(&z->nested, j->nested);
  return OK;
}

/* Options with the values that take effect.  An option that has no effect because of another one
 * gets a fixed value. */
static struct train_options options_resolve(const struct train_job *j)
{
  const struct train_task *t = &j->task;
  struct train_options r = *j->o;
  r.asked.sizes.k = t->sizes.k;
  r.asked.rate.most = t->rate.most;
  r.asked.sizes.l0 = t->sizes.l0;
  r.nested = *j->nested ? j->nested : NULL;
  if (t->sizes.l0 > 0) r.asked.sizes.s = 0;
  if (r.asked.steps) r.asked.epochs = 0;
  if (r.holdout) r.asked.held_out_fraction = 0;
  return r;
}

/* Begin the identity: what the weights depend on, as far as it is known before rows are read. */
static int identity_begin(struct train_job *j)
{
  struct identity_text *t = &j->run->identity;
  const struct train_options r = options_resolve(j);
  TRY(identity_text_begin(t, j->run->command->options, &r));
  TRY(identity_text_hash(t, "start_hash", r.fixed ? 0 : j->atoms_hash));
  TRY(identity_text_hash(t, "fixed_dictionary_hash", r.fixed ? j->atoms_hash : 0));
  return identity_text_input(t, "held_out_rows", r.holdout ? "of --holdout" : "of --rows");
}

static int outputs_open(struct train_job *j)
{
  struct run *run = j->run;
  struct train_files *f = &j->files;
  const struct run_inputs inputs = {.name = {j->atoms ? j->dictionary.file : NULL},
                                    .rows = &j->rows,
                                    .holdout = j->o->holdout ? &j->holdout : NULL};
  const struct train_sizes *z = f->sizes = &j->task.sizes;
  f->p = j->rows.source.p;
  f->top_s = (idx)imin(z->l0 > 0 ? imin((gidx)ceil(z->l0), MAX_TOP_S) : j->o->asked.sizes.s, z->k);
  TRY(comm_agree(&run->comm, identity_begin(j)));
  f->job = (struct job){.run = run, .output = j->o->output, .resume = j->o->resume};
  TRY(train_files_open(f, &inputs));
  f->job.device = j->result.device;
  f->job.threads = j->task.threads;
  f->job.save_seconds = j->o->save_seconds;
  j->max_seconds = j->o->max_seconds;
  j->precision = j->o->precision;
  if (f->job.is_complete) return OK;
  if (f->job.is_resumed) {
    j->task.start = &f->start;
    j->shown = f->start.count;
  }
  if (run->comm.rank == 0 && f->job.is_resumed)
    log_info("resume  after step %lld of '%s'", (long long)f->start.step, f->job.more[0].shown);
  if (run->comm.rank == 0 && !f->job.is_resumed) given_show(j);
  advice_shape(&j->rows.source);
  return threads_report(run, j->o->asked.threads);
}

/* Note the entries of run.json, and report.  Rank 0. */
static int job_end(struct train_job *j)
{
  j->has_ended = 1;
  TRY(job_summary(&j->files.job));
  if (!j->result.stopped) train_report(j);
  return OK;
}

static void job_free(struct train_job *j)
{
  rows_input_close(&j->rows);
  outliers_free(&j->outliers);
  if (j->o->holdout) rows_input_close(&j->holdout);
  if (j->atoms) dictionary_input_close(&j->dictionary);
  train_files_free(&j->files);
  arena_free(&j->arena);
  free(j);
}

/* Check that a complete result is of these rows.  Its options were compared when it was found. */
static int complete_rows_check(const struct train_files *f, const struct row_source *fitted,
                               const struct row_source *held, const uint64_t terms[2])
{
  uint64_t rows = content_hash(terms[0], fitted->n, fitted->p, 1);
  uint64_t unseen = held->n ? content_hash(terms[1], held->n, held->p, 1) : 0;
  CHECK(f->start.rows_hash == rows, ERR_INPUT,
        "'%s' is complete, and was made of other rows than those of '%s': rows_hash %016llx, not "
        "%016llx",
        f->job.place.shown, fitted->name, (unsigned long long)f->start.rows_hash,
        (unsigned long long)rows);
  CHECK(f->start.held_out_hash == unseen, ERR_INPUT,
        "'%s' is complete, and was judged by other rows than these: rows_hash %016llx, not "
        "%016llx",
        f->job.place.shown, (unsigned long long)f->start.held_out_hash, (unsigned long long)unseen);
  return OK;
}

/* An earlier run has completed the result: only check that it is of this job.  Collective. */
static int complete_end(struct train_job *j)
{
  struct comm *c = &j->run->comm;
  struct row_split split = {0};
  struct row_source fitted, held;
  uint64_t terms[2] = {0};
  TRY(comm_agree(c, train_rows_split(&j->task, &split, &fitted, &held)));
  TRY(rows_content(c, &fitted, 0, &terms[0]));
  if (held.n) TRY(rows_content(c, &held, 0, &terms[1]));
  TRY(comm_agree(c, c->rank ? OK : complete_rows_check(&j->files, &fitted, &held, terms)));
  split_free(&split);
  return job_complete(&j->files.job);
}

static int train_command(struct run *run, const void *options, const char **arguments)
{
  struct train_job *j;
  (void)arguments;
  TRY(comm_agree(&run->comm, struct_alloc(&j, sizeof *j)));
  j->run = run;
  j->o = options;
  TRY(inputs_agree(&run->comm, inputs_open(j)));
  TRY(comm_agree(&run->comm, task_fill(j)));
  /* A dry run does not read the rows, and so does not know which of them would be left out. */
  real most = j->o->dry_run ? 0 : j->o->max_norm;
  TRY(outliers_leave_out(&j->outliers, &run->comm, most, &j->task.rows, &j->task.held));
  TRY(comm_agree(&run->comm, train_task_check(&j->task)));
  if (j->o->dry_run) {
    TRY(comm_agree(&run->comm, run->comm.rank ? OK : train_plan_show(j, j->o->rates)));
    job_free(j);
    return OK;
  }
  TRY(outputs_open(j));
  outliers_log(&j->outliers, j->o->max_norm);
  if (j->files.job.is_complete) {
    TRY(complete_end(j));
    job_free(j);
    return OK;
  }
  j->task.beside = (gidx)(j->arena.bytes + j->files.arena.bytes);
  j->begun = log_seconds();
  gidx state = 3 * 2 * (gidx)j->task.sizes.k * j->rows.source.p * (gidx)sizeof(float);
  pace_ending_set(state, 0); /* two matrices, each with two moments */
  train_files_sink(j);
  stop_listen();
  TRY(train_run(&j->task, &run->comm, &j->sink, &j->result));
  TRY(report_phases(&run->comm, j->result.phases, TRAIN_PHASES));
  TRY(comm_agree(&run->comm, run->comm.rank ? OK : job_end(j)));
  job_free(j);
  return OK;
}

const struct command command_train = {
    "train",    "rows -> a dictionary with an encoder, by gradient descent",
    &train_set, sizeof(struct train_options),
    1,          train_command};
