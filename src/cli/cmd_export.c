/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta export: dictionary.h5 -> files for other programs.  With --rows the files of an
 * autoencoder are evaluated before they are written. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "model/advice.h"
#include "io/input_agreement.h"
#include "cli/command.h"
#include "job/summary.h"
#include "job/threads.h"
#include "encode/encode.h"
#include "encode/forward.h"
#include "io/sidecars.h"
#include "io/dictionary.h"
#include "io/export.h"
#include "io/rows.h"
#include "io/seeds.h"
#include "io/stable_atoms.h"
#include "io/training.h"
#include "model/route.h"

struct export_options {
  struct general_options general;
  struct output_options output;
  const char *dictionary, *to, *rows, *comparison, *cpu_variant;
  real stable;
  idx top_s, threads;
};
#define AT(member) offsetof(struct export_options, member)

static const struct option_row input_rows[] = {
    {"dictionary", OPTION_TEXT, AT(dictionary), NULL, 0, 0, NULL, "FILE",
     "dictionary.h5 or a folder that has it, instead of the argument", .effect = OPTION_BITS,
     .flags = OPTION_INPUT},
    ROWS_OPTION(AT(rows)),
    {"comparison", OPTION_TEXTS, AT(comparison), NULL, 0, 0, NULL, "FILE",
     "for --stable: comparison.h5, which `sagitta compare` made from this dictionary and that of "
     "another seed. Give the option again for further files; then the largest cosine of an atom "
     "counts",
     .effect = OPTION_BITS, .flags = OPTION_INPUT},
};

static const struct option_row form_rows[] = {
    {"stable", OPTION_REAL, AT(stable), "0", 0, 1, NULL, "COSINE",
     "write only the atoms that other seeds found again with at least this cosine, according to "
     "/stability of the dictionary, which `sagitta fit --seeds 3` writes, or to the pairs of "
     "--comparison; 0: all atoms",
     .effect = OPTION_BITS},
    {"to", OPTION_CHOICE, AT(to), "safetensors", 0, 0, EXPORT_FORMS, NULL,
     "what to write. safetensors, npy: atoms and mean, in one file or two; saelens, sparsify: the "
     "folder of an autoencoder",
     .effect = OPTION_BITS},
    {"top-s", OPTION_INT, AT(top_s), "0", 0, MAX_TOP_S, NULL, "ATOMS",
     "number of atoms per row for the other program; 0: that of the dictionary",
     .effect = OPTION_BITS},
};

static const struct option_row compute_options[] = {
    THREADS_OPTION(AT(threads)),
    CPU_VARIANT_OPTION(AT(cpu_variant), "instruction set of CPU loops"),
};

static const struct option_table tables[] = {
    {"Input", input_rows, LENGTH(input_rows), 0},
    {"Form", form_rows, LENGTH(form_rows), 0},
    {"Result", folder_rows, OUTPUT_ROWS, AT(output)},
    {"Speed; no bit of the result changes", compute_options, LENGTH(compute_options), 0},
    {"Job", general_rows, GENERAL_ROWS, AT(general)},
};

static const struct option_set export_set = {
    .command = "sagitta export",
    .arguments = "[DICTIONARY]",
    .doc =
        "Write a dictionary as files that other programs read, into a folder."
        "\v"
        "safetensors: dictionary.safetensors with atoms and mean; npy: atoms.npy and mean.npy; "
        "saelens: cfg.json and sae_weights.safetensors; sparsify: cfg.json and "
        "sae.safetensors.\n\n"
        "If the dictionary has an encoder of its own, the autoencoder gets it; one that `sagitta "
        "import` read is written again with every bit.  For a dictionary without an encoder, "
        "SAELens takes matching pursuit, which suits atoms for nonnegative codes, and sparsify "
        "takes a top-k encoder tied to the decoder, which rarely suits any atoms.  With --rows "
        "the log says how much of these rows the other program would explain from the files.  If "
        "the dictionary has no encoder, and the other program would leave more than twice as much "
        "unexplained as Sagitta does, nothing is written without --force.\n\n"
        "With --stable 0.9 only atoms that other fits found again are written; `numbers` in "
        "run.json lists them.\n\n"
        "A single argument that ends in .in is a deck.\n\n"
        "  sagitta export fit/ --stable 0.9 --output stable/\n"
        "  sagitta compare fit/ other-seed/ --output compared/\n"
        "  sagitta export fit/ --comparison compared/ --stable 0.9 --output stable/\n"
        "  sagitta export fit/ --to saelens --rows unseen.npy --output sae/",
    .tables = tables,
    .count = LENGTH(tables),
    .max_arguments = 1,
    .takes_files = 1,
};

/* The state of the job, on the heap, since threads may use it after a failure (job/run.h). */
struct export_job {
  struct rows_input rows;
  struct dictionary_input dictionary;
  struct stored_encoder stored;
  struct stable_atoms stable;
  struct atom_source source; /* the atoms that are written */
  int is_active;             /* a result of fit --find features, and no --stable */
  struct export_model model;
  struct output_path place;
  char rest[4096];           /* path of the second file, if the form has two */
  struct metrics own, other; /* metrics of Sagitta's codes, and of the other program's */
  int is_judged;
  struct support_sink sink;
  struct arena arena;
};

/* Warn if the file is the unfinished state of a training. */
static int state_warn(const struct dictionary_input *d)
{
  int is_state = 0;
  if (d->input->format == INPUT_H5) TRY(training_is_state(&d->input->h5, &is_state));
  if (is_state)
    log_warn("'%s' is the state of a training that has not ended: continue it with `sagitta train "
             "--resume` and its options, which leaves dictionary.h5",
             d->file);
  return OK;
}

/* With --stable: keep only the atoms that fits of other seeds have found, too. */
static int stable_load(struct export_job *job, const struct export_options *o, float *atoms)
{
  const struct dictionary_input *d = &job->dictionary;
  const struct atom_source *s = &d->source;
  struct seeds_record seeds = {0};
  float *best;
  TRY(arena_alloc(&job->arena, &best, s->k, sizeof *best));
  if (o->comparison)
    TRY(stable_atoms_compare(s, atoms, o->comparison, &job->arena, best));
  else if (d->input->format == INPUT_H5)
    TRY(seeds_read(&d->input->h5, s->k, &job->arena, &seeds));
  CHECK(o->comparison || seeds.stability, ERR_INPUT,
        "'%s' does not say how stable its atoms are: fit with '--seeds 3', or `sagitta compare` it "
        "with the fit of another seed, and give '--comparison'",
        d->file);
  TRY(stable_atoms_take(&job->stable, s, atoms, o->comparison ? best : seeds.stability, o->stable,
                        &job->arena));
  job->source = stable_atoms_source(&job->stable, s);
  return OK;
}

/* Read the dictionary's atoms and encoder into memory, and plan the files. */
static int dictionary_load(struct export_job *job, const struct export_options *o)
{
  struct dictionary_input *d = &job->dictionary;
  int has_encoder = 0;
  float *atoms;
  TRY(dictionary_input_open(d, o->dictionary));
  TRY(state_warn(d));
  const struct atom_source *s = &d->source;
  TRY(arena_alloc(&job->arena, &atoms, (gidx)s->k * s->d * s->p, sizeof *atoms));
  TRY(s->read(s->self, 0, s->k, atoms));
  TRY(atoms_check(atoms, s->k, s->d, s->p, 0, s->name));
  if (d->input->format == INPUT_H5)
    TRY(encoder_read(&d->input->h5, &job->arena, &job->stored, &has_encoder));
  job->source = *s;
  /* No other program solves the codes of active atoms, so the files have no such encoder. */
  job->is_active = has_encoder && job->stored.encoder.kind == ENCODER_ACTIVE && !(o->stable > 0);
  has_encoder = has_encoder && job->stored.encoder.kind != ENCODER_ACTIVE;
  CHECK(!(o->stable > 0) || !has_encoder, ERR_INPUT,
        "'%s' has an encoder of its own, for all of its atoms: '--stable' takes dictionaries "
        "without one",
        d->file);
  if (o->stable > 0) TRY(stable_load(job, o, atoms));
  static const char *const names[] = {"safetensors", "npy", "saelens", "sparsify"};
  int form = 0;
  while (strcmp(names[form], o->to) != 0) form++;
  job->model = (struct export_model){.form = (enum export_form)form,
                                     .k = job->source.k,
                                     .d = s->d,
                                     .p = s->p,
                                     .top = o->top_s ? o->top_s : d->top_s,
                                     .atoms = atoms,
                                     .mean = d->mean,
                                     .stored = has_encoder ? &job->stored : NULL};
  advice_top_s(job->model.top, job->source.k);
  job->model.top = (idx)imin(job->model.top, job->source.k);
  return export_plan(&job->model, &job->arena);
}

static int inputs_open(struct run *run, struct export_job *job, struct export_options *o,
                       const char **arguments)
{
  const char *argument = run->deck ? NULL : arguments[0], *output = o->output.output;
  CHECK(run->comm.size == 1, ERR_USAGE,
        "export works on one rank, but there are %d: start it without mpirun", run->comm.size);
  CHECK(argument || o->dictionary, ERR_USAGE,
        "the dictionary is missing, as in: sagitta export fit/ --to saelens --output sae/");
  CHECK(!argument || !o->dictionary, ERR_USAGE, "the dictionary is given twice, as '%s' and '%s'",
        o->dictionary, argument);
  if (argument) o->dictionary = argument;
  CHECK(!o->comparison || o->stable > 0, ERR_USAGE,
        "'--comparison' is for '--stable', as in: --comparison compared/ --stable 0.9");
  CHECK(output, ERR_USAGE, "'--output' is missing: a folder, as in: --output sae/");
  CHECK(strlen(output) < 3 || strcmp(output + strlen(output) - 3, ".h5") != 0, ERR_USAGE,
        "'--output' is '%s', but has to be a folder", output);
  TRY(dictionary_load(job, o));
  if (!o->rows) return OK;
  TRY(rows_input_open(&job->rows, NULL, o->rows));
  return columns_check(&job->rows.source, &job->dictionary.source);
}

static int nothing_write(void *self, const struct support_block *block)
{
  (void)self;
  (void)block;
  return OK;
}

/* *m <- the metrics of the codes that `sagitta encode` finds for the rows. */
static int own_evaluate(struct run *run, struct export_job *job, const struct export_options *o,
                        struct metrics *m)
{
  const struct dictionary_input *d = &job->dictionary;
  struct encode_result result;
  idx top = (idx)imin(job->model.top ? job->model.top : 32, MAX_TOP_S);
  job->sink = (struct support_sink){NULL, nothing_write};
  struct encode_task task = {.rows = &job->rows.source,
                             .atoms = &job->source,
                             .mean = d->mean,
                             .sink = &job->sink,
                             .top_s = (idx)imin(top, job->source.k),
                             .rounds = (idx)imax(imin(d->rounds, top), 1),
                             .tile = job->source.k,
                             .threads = threads_default(run, o->threads),
                             .device = "cpu",
                             .variant = o->cpu_variant,
                             .filter = "auto",
                             .codes = 1,
                             .nonnegative = d->nonnegative};
  if (job->is_active) {
    task.encoder = &job->stored.encoder;
    task.weights = &job->source;
    task.groups = 1;
    task.top_s = (idx)imin(job->source.k, ACTIVE_MOST);
    task.rounds = 1;
    task.nonnegative = 1;
  }
  task.block = encode_block_rows(&task, 1);
  TRY(encode_memory_check(&task, &run->comm));
  TRY(encode_run(&task, &run->comm, &result));
  *m = result.metrics;
  m->density = NULL;
  encode_free(&result);
  return OK;
}

/* *m <- the metrics of the codes that the other program would find from the files. */
static int other_evaluate(struct run *run, struct export_job *job, const struct export_options *o,
                          struct metrics *m)
{
  const struct export_model *e = &job->model;
  real *mean;
  TRY(arena_alloc(&job->arena, &mean, e->p, sizeof *mean));
  for (idx c = 0; c < e->p; c++) mean[c] = e->mean32[c];
  struct forward_task task = {.rows = &job->rows.source,
                              .mean = mean,
                              .atoms = e->atoms,
                              .k = e->k,
                              .p = e->p,
                              .encoder = e->pursues ? NULL : &e->encoder,
                              .top = e->top,
                              .stops = e->stops,
                              .threads = threads_default(run, o->threads)};
  return forward_evaluate(&task, &run->comm, m);
}

/* The name of the rule by which the other program finds codes. */
static const char *encoder_of(const struct export_model *e)
{
  return e->pursues ? "matching pursuit" : e->stored ? "its own encoder" : "a tied encoder";
}

/* For files of an autoencoder.  With --rows, log how much of the rows the other program would
 * explain.  ERR_INPUT, only for a dictionary without an encoder, and without --force: --rows is not
 * given, or the other program would explain too little of the rows. */
static int model_evaluate(struct run *run, struct export_job *job, const struct export_options *o)
{
  const struct export_model *e = &job->model;
  struct metrics own = {0}, other = {0};
  if (e->form == EXPORT_SAFETENSORS || e->form == EXPORT_NPY) return OK;
  const char *what = encoder_of(e);
  CHECK(o->rows || e->stored || o->output.force, ERR_INPUT,
        "%s would compute other codes than Sagitta does, from %s, and nothing says how good they "
        "are: give rows with '--rows', or '--force'",
        o->to, what);
  if (!o->rows) return OK;
  TRY(own_evaluate(run, job, o, &own));
  TRY(other_evaluate(run, job, o, &other));
  job->own = own;
  job->other = other;
  job->is_judged = 1;
  log_info("judged  rows=%lld sagitta=%.6f %s=%.6f l0=%.2f by=%s", (long long)job->rows.source.n,
           own.explained_variance, o->to, other.explained_variance, other.l0, what);
  int is_poor = !e->stored && !(other.fvu <= 2 * own.fvu);
  CHECK(!is_poor || o->output.force, ERR_INPUT,
        "%s would explain %.4f of these rows from the files, by %s, and Sagitta explains %.4f: "
        "give '--force' to write them all the same%s",
        o->to, other.explained_variance, what, own.explained_variance,
        e->form == EXPORT_SPARSIFY ? "; '--to saelens' has matching pursuit" : "");
  advice_metrics(&own, "these rows, as Sagitta codes them");
  if (is_poor) log_warn("the files are written, although they explain little, because of --force");
  return OK;
}

static void evaluated_json(const struct export_job *job, struct json *own)
{
  json_object(own, "judged");
  json_long(own, "rows", job->rows.source.n);
  json_real(own, "sagitta", job->own.explained_variance);
  json_real(own, "explained_variance", job->other.explained_variance);
  json_real(own, "fvu", job->other.fvu);
  json_real(own, "mean_squared_error", job->other.mean_squared_error);
  json_real(own, "l0", job->other.l0);
  json_text(own, "by", encoder_of(&job->model));
  json_end(own);
}

static int entries_json(const struct export_job *job, const char *to, const char *rest)
{
  const struct export_model *e = &job->model;
  struct json *own;
  TRY(summary_entries(&own));
  json_text(own, "to", to);
  json_text(own, "beside", rest);
  json_long(own, "atoms", e->k);
  json_long(own, "columns", e->p);
  json_text(own, "dtype", e->dtype);
  json_flag(own, "as_imported", e->as_it_was);
  json_long(own, "rounded", e->rounded);
  stable_atoms_json(&job->stable, own);
  if (job->is_judged) evaluated_json(job, own);
  return OK;
}

static int export_command(struct run *run, const void *options, const char **arguments)
{
  struct export_options *o = (struct export_options *)options;
  struct export_job *job;
  TRY(comm_agree(&run->comm, struct_alloc(&job, sizeof *job)));
  TRY(inputs_agree(&run->comm, inputs_open(run, job, o, arguments)));
  const struct export_model *e = &job->model;
  struct export_files files = export_files_of(e->form);
  const struct run_inputs inputs = {.name = {job->dictionary.file},
                                    .rows = o->rows ? &job->rows : NULL};
  int has_rest = files.rest && (e->form != EXPORT_NPY || e->mean);
  char rest[4096 + 16], folder[4096];
  TRY(run_begin(run, &o->output, files.values, &inputs, &job->place));
  path_folder(job->place.file, folder);
  snprintf(rest, sizeof rest, "%s/%s", folder, has_rest ? files.rest : "");
  if (has_rest) TRY(output_claim(rest, o->output.force, job->rest));
  TRY(outputs_check_inputs(inputs.name, MAX_INPUTS, run->deck));
  if (e->rounded)
    log_info("mean    %lld of %d entries are rounded to float32 where it is written so",
             (long long)e->rounded, e->p);
  TRY(model_evaluate(run, job, o));
  TRY(inputs_confirm(&run->comm));
  TRY(export_write(e, job->place.file, has_rest ? job->rest : NULL));
  sidecars_publish();
  log_info("export  to=%s atoms=%d columns=%d dtype=%s as_imported=%s", o->to, e->k, e->p, e->dtype,
           e->as_it_was ? "yes" : "no");
  TRY(entries_json(job, o->to, has_rest ? files.rest : NULL));
  log_info("wrote   %s%s%s", job->place.shown, has_rest ? " and " : "", has_rest ? files.rest : "");
  if (o->rows) rows_input_close(&job->rows);
  dictionary_input_close(&job->dictionary);
  arena_free(&job->arena);
  free(job);
  return OK;
}

const struct command command_export = {"export",    "dictionary.h5 -> files of other programs",
                                       &export_set, sizeof(struct export_options),
                                       1,           export_command};
