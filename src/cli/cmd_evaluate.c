/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta evaluate: rows, a decoder and the codes of any program -> metrics, side by side. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"
#include "model/advice.h"
#include "io/input_agreement.h"
#include "cli/command.h"
#include "encode/content.h"
#include "job/summary.h"
#include "job/threads.h"
#include "encode/judge.h"
#include "io/dictionary.h"
#include "io/encoder.h"
#include "io/inputs.h"
#include "io/labels.h"
#include "io/metrics.h"
#include "io/truth.h"
#include "look/pairs.h"
#include "look/probing.h"
#include "look/probing_scores.h"
#include "look/recovery.h"
#include "io/rows.h"
#include "io/supports_input.h"
#include "model/identity.h"

struct evaluate_options {
  struct general_options general;
  const char *rows, *codes, *dictionary, *truth, *labels, *encoder;
  idx threads;
};
#define AT(member) offsetof(struct evaluate_options, member)

enum { MAX_CODES = 4 };

static const struct option_row input_rows[] = {
    ROWS_OPTION(AT(rows)),
    {"codes", OPTION_TEXTS, AT(codes), NULL, 0, 0, NULL, "FILE[:/GROUP]",
     "codes as a CSR matrix, as encode, SciPy or AnnData write it (default group: /supports); "
     "give the option up to four times to compare codes side by side",
     .effect = OPTION_BITS, .flags = OPTION_INPUT},
    {"dictionary", OPTION_TEXT, AT(dictionary), NULL, 0, 0, NULL, "FILE[:/PATH]",
     "the decoder of these codes, with atoms of any norm (default path: /atoms). To each "
     "reconstruction the /mean in the file of the codes is added, which encode writes there; "
     "without one, the /mean in the file of the decoder",
     .effect = OPTION_BITS, .flags = OPTION_INPUT},
};

static const struct option_row feature_rows[] = {
    {"truth", OPTION_TEXT, AT(truth), NULL, 0, 0, NULL, "FILE",
     "truth.h5 of `sagitta synth --kind world`, or its folder: also print how well atoms find its "
     "features",
     .effect = OPTION_BITS, .flags = OPTION_INPUT},
    {"labels", OPTION_TEXT, AT(labels), NULL, 0, 0, NULL, "FILE[:/PATH]",
     "a whole number for each row, such as its token (default path: /token): also print how "
     "well single atoms predict the 300 most frequent labels: of the row itself, of the row "
     "before it and of the row after it",
     .effect = OPTION_BITS, .flags = OPTION_INPUT},
    {"encoder", OPTION_TEXT, AT(encoder), NULL, 0, 0, NULL, "FILE",
     "a dictionary with an encoder, as detect, train and import write it: also print how well "
     "its scores predict the labels before atoms are selected",
     .effect = OPTION_BITS, .flags = OPTION_INPUT},
};

static const struct option_row speed_rows[] = {
    THREADS_OPTION(AT(threads)),
};

static const struct option_table tables[] = {
    {"Input", input_rows, LENGTH(input_rows), 0},
    {"Features", feature_rows, LENGTH(feature_rows), 0},
    {"Speed; no bit of the result changes", speed_rows, LENGTH(speed_rows), 0},
    {"Job", general_rows, GENERAL_ROWS, AT(general)},
};

static const struct option_set evaluate_set = {
    .command = "sagitta evaluate",
    .arguments = "[DECK]",
    .doc = "Print the metrics of codes that any program has found for rows."
           "\v"
           "The metrics are those of `sagitta encode`, for codes and decoder as they are stored.  "
           "All codes are evaluated with the same dictionary.  Codes that Sagitta wrote name "
           "their rows and their dictionary, and are refused with others.  One rank computes.\n\n"
           "Explained variance says how well rows are described, not whether features are found.  "
           "With --truth each atom stands for the known feature with the largest absolute "
           "cosine.  truth_f1 is the mean F1 of the atoms, where an atom predicts that its "
           "feature fires if its code is not 0; truth_uniqueness is the number of different "
           "features, divided by the number of atoms.  With --labels, the atom and threshold with "
           "the best F1 for a label in the first half of the rows are judged in the second half; "
           "label_f1 is the mean over labels.  label_f1_fires uses 0 as the threshold; "
           "label_f1_logistic_5 uses a logistic regression on the five best atoms.\n\n"
           "  sagitta evaluate --rows unseen.npy --dictionary sae/ --codes theirs.h5 \\\n"
           "      --codes run/\n"
           "  sagitta evaluate --rows world/rows.h5 --dictionary fit/ --codes codes/ \\\n"
           "      --truth world/",
    .tables = tables,
    .count = LENGTH(tables),
    .max_arguments = 1,
    .has_config = 1,
};

/* A row's codes predict three labels: of the row itself, of the previous and of the next row. */
enum { LABEL_SERIES = 3 };

/* The inputs --truth, --labels and --encoder, which measure how well atoms find features, and the
 * results that are the same for all sets of codes. */
struct feature_inputs {
  const char *truth_name, *labels_name, *encoder_name; /* NULL: not given; borrowed */
  char *truth_path, *features_path; /* FILE:/truth and FILE:/truth/features; owned */
  struct supports_input truth;
  struct identity truth_of; /* the hash of the rows, from the file of the truth */
  struct dictionary_input features;
  struct compare_result compared; /* each atom's nearest feature */
  struct pairs pairs;             /* atoms and features, paired one to one */
  struct dictionary_input encoder_file;
  struct encoder_input encoder;
  real encoder_f1[LABEL_SERIES]; /* F1 of the encoder's scores */
  gidx *labels;                  /* [n] */
  struct arena arena;
};
/* The measures of one set of codes. */
struct feature_measures {
  real mcc; /* of the dictionary, so the same for all codes */
  struct recovery recovery;
  struct probing_result probing[LABEL_SERIES];
};

/* A named `real` in struct feature_measures, or in struct probing_result. */
struct figure {
  const char *name;
  size_t offset;
};

static const struct figure truth_figures[] = {
    {"truth_mcc", offsetof(struct feature_measures, mcc)},
    {"truth_f1", offsetof(struct feature_measures, recovery.f1)},
    {"truth_precision", offsetof(struct feature_measures, recovery.precision)},
    {"truth_recall", offsetof(struct feature_measures, recovery.recall)},
    {"truth_uniqueness", offsetof(struct feature_measures, recovery.uniqueness)},
    {"truth_l0", offsetof(struct feature_measures, recovery.true_l0)},
};
static const struct figure label_figures[] = {
    {"f1", offsetof(struct probing_result, threshold)},
    {"f1_fires", offsetof(struct probing_result, fires)},
    {"f1_logistic_1", offsetof(struct probing_result, logistic[0])},
    {"f1_logistic_2", offsetof(struct probing_result, logistic[1])},
    {"f1_logistic_5", offsetof(struct probing_result, logistic[2])},
};
/* The codes of row i predict the label of row i + shift. */
static const struct {
  const char *name, *shown; /* in JSON, and in the text */
  int shift;
} series[LABEL_SERIES] = {
    {"label", "label", 0}, {"label_before", "before", -1}, {"label_behind", "behind", 1}};

static real value_of(const void *values, const struct figure *figure)
{
  return *(const real *)((const char *)values + figure->offset);
}

/* *out <- "file:object"; the caller frees it. */
static int path_join(const char *file, const char *object, char **out)
{
  size_t bytes = strlen(file) + strlen(object) + 2;
  *out = malloc(bytes);
  CHECK(*out, ERR_MEMORY, "cannot allocate %zu bytes", bytes);
  snprintf(*out, bytes, "%s:%s", file, object);
  return OK;
}

static int truth_open(struct feature_inputs *f, const struct row_source *rows)
{
  char file[MAX_NAME];
  TRY(input_of_folder(f->truth_name, "truth.h5", file));
  TRY(path_join(file, TRUTH_GROUP, &f->truth_path));
  TRY(path_join(file, TRUTH_FEATURES, &f->features_path));
  TRY(supports_input_open(&f->truth, f->truth_path));
  TRY(identity_read(supports_input_file(&f->truth), INPUTS_GROUP, &f->truth_of));
  TRY(dictionary_input_open(&f->features, f->features_path));
  const struct support_source *truth = &f->truth.source;
  const struct atom_source *features = &f->features.source;
  CHECK(truth->n == rows->n, ERR_INPUT,
        "'%s' is of %lld rows, '%s' has %lld: give the truth that was made with these rows",
        truth->name, (long long)truth->n, rows->name, (long long)rows->n);
  CHECK(features->p == rows->p, ERR_INPUT,
        "'%s' has %d columns, '%s' has %d: give the truth that was made with these rows",
        features->name, features->p, rows->name, rows->p);
  CHECK(features->k == truth->k && features->d == 1, ERR_INPUT,
        "'%s' has %d features, '%s' has %d: give two files of one world", features->name,
        features->k, truth->name, truth->k);
  return OK;
}

/* Open --encoder, and read its whole matrix. */
static int encoder_open(struct feature_inputs *f, const struct row_source *rows)
{
  struct encoder *e = &f->encoder.stored.encoder;
  float *weights;
  TRY(dictionary_input_open(&f->encoder_file, f->encoder_name));
  TRY(encoder_input_open(&f->encoder, &f->encoder_file));
  TRY(columns_check(rows, &f->encoder_file.source));
  TRY(arena_alloc(&f->arena, &weights, (gidx)e->k * e->p, sizeof *weights));
  TRY(f->encoder.weights.read(f->encoder.weights.self, 0, e->k, weights));
  TRY(rows_check(weights, e->k, e->p, 0, f->encoder.weights.name));
  e->weights = weights;
  return OK;
}

/* Open --truth, --labels and --encoder, if they are given.  ERR_USAGE: there is an encoder and no
 * labels.  ERR_IO: a file cannot be read.  ERR_INPUT: a file does not belong to these rows, or has
 * another number of columns.  Call features_close() also after a failure. */
static int features_open(struct feature_inputs *f, const struct row_source *rows)
{
  CHECK(!f->encoder_name || f->labels_name, ERR_USAGE,
        "'--encoder' is only judged by labels: give '--labels' too");
  if (f->encoder_name) TRY(encoder_open(f, rows));
  if (f->truth_name) TRY(truth_open(f, rows));
  if (f->labels_name) TRY(labels_read(f->labels_name, rows->n, rows->name, &f->arena, &f->labels));
  return OK;
}

static void features_close(struct feature_inputs *f)
{
  if (f->truth_path) supports_input_close(&f->truth);
  if (f->features_path) dictionary_input_close(&f->features);
  if (f->encoder_name) {
    encoder_input_close(&f->encoder);
    dictionary_input_close(&f->encoder_file);
  }
  free(f->truth_path);
  free(f->features_path);
  compare_free(&f->compared);
  arena_free(&f->arena);
}

/* With --truth: compare the decoder with the true features.  c has one rank. */
static int features_compare(struct feature_inputs *f, struct comm *c,
                            const struct atom_source *decoder, int threads)
{
  const struct compare_task task = {.atoms = {decoder, &f->features.source},
                                    .normalize = 1,
                                    .above = 0.9,
                                    .threads = threads,
                                    .variant = "auto"};
  idx *order;
  if (!f->truth_name) return OK;
  TRY(compare_dictionaries(c, &task, &f->compared));
  f->pairs = (struct pairs){.k = decoder->k, .l = f->features.source.k};
  TRY(arena_alloc(&f->arena, &f->pairs.match, decoder->k, sizeof *f->pairs.match));
  TRY(arena_alloc(&f->arena, &f->pairs.cosine, decoder->k, sizeof *f->pairs.cosine));
  TRY(arena_alloc(&f->arena, &order, decoder->k, sizeof *order));
  TRY(pairs_find(c, &task, &f->pairs));
  pairs_count(&f->pairs, order);
  return OK;
}

/* With --encoder: measure how well its scores predict the labels. */
static int features_probe(struct feature_inputs *f, const struct row_source *rows, int threads)
{
  struct probe_series all[LABEL_SERIES];
  const struct encoder *e = &f->encoder.stored.encoder;
  const struct probing_scores_task task = {.rows = rows,
                                           .encoder = e,
                                           .mean = e->centered ? f->encoder_file.mean : NULL,
                                           .threads = threads};
  if (!f->encoder_name) return OK;
  for (int s = 0; s < LABEL_SERIES; s++)
    TRY(probe_series_init(&all[s], f->labels, rows->n, series[s].shift, &f->arena));
  return probing_scores(&task, all, LABEL_SERIES, f->encoder_f1);
}

/* Compute the measures of one set of codes. */
static int features_measure(const struct feature_inputs *f, const struct support_source *codes,
                            int threads, struct feature_measures *m)
{
  struct probing probing = {0};
  int status = OK;
  if (f->truth_name) {
    const struct recovery_task task = {
        .codes = codes, .truth = &f->truth.source, .nearest = f->compared.of[0].nearest};
    TRY(recovery_run(&task, &m->recovery));
    m->mcc = f->pairs.mean;
  }
  if (!f->labels) return OK;
  status = probing_open(&probing, codes, threads);
  for (int s = 0; s < LABEL_SERIES && !status; s++)
    status = probing_run(&probing, f->labels, series[s].shift, &m->probing[s]);
  probing_close(&probing);
  return status;
}

/* Print one figure for all sets of codes.  base: the struct of the figure, in the first set. */
static void figure_print(const char *prefix, const struct figure *figure, const void *base,
                         int count)
{
  char name[64];
  snprintf(name, sizeof name, "%s%s", prefix, figure->name);
  printf("%-22s", name);
  for (int i = 0; i < count; i++)
    printf(" %14.9g",
           value_of((const char *)base + (size_t)i * sizeof(struct feature_measures), figure));
  printf("\n");
}

/* Print one line per figure, with a column per set of codes; then the lines of the encoder. */
static void features_print(const struct feature_inputs *f, const struct feature_measures *m,
                           int count)
{
  for (int i = 0; f->truth_name && i < LENGTH(truth_figures); i++)
    figure_print("", &truth_figures[i], m, count);
  for (int s = 0; f->labels && s < LABEL_SERIES; s++) {
    char prefix[32];
    snprintf(prefix, sizeof prefix, "%s_", series[s].shown);
    for (int i = 0; i < LENGTH(label_figures); i++)
      figure_print(prefix, &label_figures[i], &m->probing[s], count);
  }
  for (int s = 0; f->encoder_name && s < LABEL_SERIES; s++)
    printf("encoder_%s_f1%*s %14.9g\n", series[s].shown, (int)(11 - strlen(series[s].shown)), "",
           f->encoder_f1[s]);
}

static void features_encoder_json(const struct feature_inputs *f, struct json *j)
{
  if (!f->encoder_name) return;
  json_object(j, "encoder");
  json_text(j, "name", f->encoder_file.source.name);
  for (int s = 0; s < LABEL_SERIES; s++) {
    char name[32];
    snprintf(name, sizeof name, "%s_f1", series[s].name);
    json_real(j, name, f->encoder_f1[s]);
  }
  json_end(j);
}

static void features_json(const struct feature_inputs *f, const struct feature_measures *m,
                          struct json *j)
{
  if (f->truth_name) {
    json_object(j, "truth");
    for (int i = 0; i < LENGTH(truth_figures); i++)
      json_real(j, truth_figures[i].name + strlen("truth_"), value_of(m, &truth_figures[i]));
    json_end(j);
  }
  for (int s = 0; f->labels && s < LABEL_SERIES; s++) {
    json_object(j, series[s].name);
    json_long(j, "labels", m->probing[s].labels);
    for (int i = 0; i < LENGTH(label_figures); i++)
      json_real(j, label_figures[i].name, value_of(&m->probing[s], &label_figures[i]));
    json_end(j);
  }
}

/* The state of the job, on the heap, since threads may use it after a failure (job/run.h). */
struct evaluate {
  struct rows_input rows;
  struct dictionary_input dictionary;
  struct supports_input codes[MAX_CODES];
  struct metrics metrics[MAX_CODES];
  struct feature_inputs features;
  struct feature_measures measures[MAX_CODES];
  char *names[MAX_CODES];
  int count;
  float *atoms;
  uint64_t hash; /* of the dictionary */
  struct arena arena;
};

static int codes_open(struct evaluate *e, int i)
{
  const struct atom_source *atoms = &e->dictionary.source;
  TRY(supports_input_open(&e->codes[i], e->names[i]));
  const struct support_source *s = &e->codes[i].source;
  CHECK(s->has_codes, ERR_INPUT, "'%s' has scores and no codes: make codes with `sagitta encode`",
        s->name);
  int is_turned = s->n == atoms->k && s->k == e->rows.source.n && s->n != s->k;
  CHECK(!is_turned, ERR_INPUT,
        "'%s' has the codes of %lld rows and %d atoms, there are %d rows and %d atoms: the matrix "
        "is transposed; save codes.T.tocsr() instead",
        s->name, (long long)s->n, s->k, s->k, atoms->k);
  CHECK(s->n == e->rows.source.n, ERR_INPUT,
        "'%s' has the codes of %lld rows, '%s' has %lld: give the rows that were encoded", s->name,
        (long long)s->n, e->rows.source.name, (long long)e->rows.source.n);
  CHECK(s->k == atoms->k && s->d == atoms->d, ERR_INPUT,
        "'%s' has codes of %d atoms, '%s' has %d: give the decoder of these codes", s->name, s->k,
        atoms->name, atoms->k);
  return OK;
}

static int inputs_open(const struct run *run, struct evaluate *e, const struct evaluate_options *o)
{
  CHECK(run->comm.size == 1, ERR_USAGE,
        "evaluate works on one rank, but there are %d: start it without mpirun", run->comm.size);
  CHECK(o->rows, ERR_USAGE, "'--rows' is missing: give the file with the activation rows");
  CHECK(o->codes, ERR_USAGE, "'--codes' is missing: give a CSR matrix of codes");
  CHECK(o->dictionary, ERR_USAGE, "'--dictionary' is missing: give the decoder of the codes");
  TRY(rows_input_open(&e->rows, NULL, o->rows));
  TRY(dictionary_input_open(&e->dictionary, o->dictionary));
  e->features.truth_name = o->truth;
  e->features.labels_name = o->labels;
  e->features.encoder_name = o->encoder;
  TRY(features_open(&e->features, &e->rows.source));
  const struct atom_source *s = &e->dictionary.source;
  TRY(columns_check(&e->rows.source, s));
  TRY(arena_alloc(&e->arena, &e->atoms, (gidx)s->k * s->d * s->p, sizeof *e->atoms));
  TRY(s->read(s->self, 0, s->k, e->atoms));
  TRY(rows_check(e->atoms, (gidx)s->k * s->d, s->p, 0, s->name));
  char *texts;
  TRY(arena_alloc(&e->arena, &texts, (gidx)strlen(o->codes) + 1, 1));
  strcpy(texts, o->codes);
  for (char *name = strtok(texts, "\n"); name; name = strtok(NULL, "\n")) {
    CHECK(e->count < MAX_CODES, ERR_USAGE, "'--codes' is given more than %d times: give fewer",
          MAX_CODES);
    e->names[e->count] = name;
    TRY(codes_open(e, e->count++));
  }
  return OK;
}

/* If the truth or the codes have hashes of rows and a dictionary, check that the given rows and
 * dictionary have these hashes. */
static int identities_check(struct comm *c, struct evaluate *e)
{
  const struct row_source *rows = &e->rows.source;
  const struct atom_source *s = &e->dictionary.source;
  uint64_t terms = 0;
  const struct support_source *truth = &e->features.truth.source;
  uint64_t truth_rows = e->features.truth_of.rows;
  int is_named = truth_rows != 0;
  for (int i = 0; i < e->count; i++) is_named |= e->codes[i].inputs.rows != 0;
  if (is_named) TRY(rows_content(c, rows, 0, &terms));
  uint64_t of_rows = content_hash(terms, rows->n, rows->p, 1);
  if (truth_rows) TRY(identity_rows_check(truth->name, truth_rows, rows->name, of_rows));
  terms = items_terms(e->atoms, s->k, (gidx)s->d * s->p, 0);
  e->hash = content_hash(terms, s->k, s->d, s->p);
  for (int i = 0; i < e->count; i++) {
    const char *name = e->codes[i].source.name;
    const struct identity *named = &e->codes[i].inputs;
    TRY(identity_rows_check(name, named->rows, rows->name, of_rows));
    TRY(identity_dictionary_check(name, named->dictionary, s->name, e->hash));
  }
  return OK;
}

static void metrics_print(const struct evaluate *e)
{
  for (int i = 0; i < e->count; i++)
    text_print(stdout, "%-22s %s\n", i ? "" : "codes", e->codes[i].source.name);
  for (int r = 0; r < metric_count; r++) {
    const struct metric_row *row = &metric_rows[r];
    if (row->offset == offsetof(struct metrics, max_decoder_cosine)) continue;
    printf("%-22s", row->name);
    for (int i = 0; i < e->count; i++) {
      const char *value = (const char *)&e->metrics[i] + row->offset;
      if (row->is_integer)
        printf(" %14lld", (long long)*(const gidx *)value);
      else
        printf(" %14.9g", *(const real *)value);
    }
    printf("\n");
  }
}

static int evaluation_json(const struct run *run, const struct evaluate *e)
{
  struct json j;
  TRY(facts_begin(run, &j));
  json_text(&j, "dictionary", e->dictionary.source.name);
  json_hash(&j, "dictionary_hash", e->hash);
  json_long(&j, "rows", e->rows.source.n);
  json_long(&j, "columns", e->rows.source.p);
  json_long(&j, "atoms", e->dictionary.source.k);
  json_array(&j, "evaluated");
  for (int i = 0; i < e->count; i++) {
    json_object(&j, NULL);
    json_text(&j, "codes", e->codes[i].source.name);
    metrics_json(&e->metrics[i], 1, &j);
    features_json(&e->features, &e->measures[i], &j);
    json_end(&j);
  }
  json_end(&j);
  features_encoder_json(&e->features, &j);
  return facts_end(&j);
}

/* Compute the metrics of one set of codes. */
static int codes_evaluate(struct run *run, struct evaluate *e, int i, int threads)
{
  const struct atom_source *s = &e->dictionary.source;
  const real *mean;
  TRY(supports_mean_find(&e->codes[i], s->name, e->dictionary.mean, s->p, &mean));
  const struct evaluate_task task = {.rows = &e->rows.source,
                                     .supports = &e->codes[i].source,
                                     .mean = mean,
                                     .atoms = e->atoms,
                                     .k = s->k,
                                     .d = s->d,
                                     .p = s->p,
                                     .threads = threads};
  TRY(codes_metrics(&task, &run->comm, &e->arena, &e->metrics[i]));
  if (!mean && !e->dictionary.rounds)
    advice_mean(&e->metrics[i], e->dictionary.file,
                "is /mean missing beside the codes or the atoms?");
  if (mean) advice_scale(&e->metrics[i], e->dictionary.norm, e->dictionary.file);
  return features_measure(&e->features, &e->codes[i].source, threads, &e->measures[i]);
}

static int evaluate_command(struct run *run, const void *options, const char **arguments)
{
  const struct evaluate_options *o = options;
  struct evaluate *e;
  (void)arguments;
  TRY(comm_agree(&run->comm, struct_alloc(&e, sizeof *e)));
  TRY(inputs_agree(&run->comm, inputs_open(run, e, o)));
  TRY(identities_check(&run->comm, e));
  int threads = threads_default(run, o->threads);
  TRY(features_compare(&e->features, &run->comm, &e->dictionary.source, threads));
  TRY(features_probe(&e->features, &e->rows.source, threads));
  for (int i = 0; i < e->count; i++) TRY(codes_evaluate(run, e, i, threads));
  for (int i = 0; i < e->count; i++) {
    char what[MAX_NAME + 32];
    snprintf(what, sizeof what, "these rows, by '%s',", e->names[i]);
    advice_metrics(&e->metrics[i], what);
  }
  TRY(inputs_confirm(&run->comm));
  if (!run->wants_json) metrics_print(e);
  if (!run->wants_json) features_print(&e->features, e->measures, e->count);
  if (run->wants_json) TRY(evaluation_json(run, e));
  for (int i = 0; i < e->count; i++) supports_input_close(&e->codes[i]);
  features_close(&e->features);
  dictionary_input_close(&e->dictionary);
  rows_input_close(&e->rows);
  arena_free(&e->arena);
  free(e);
  return OK;
}

const struct command command_evaluate = {"evaluate",
                                         "codes of any program -> metrics",
                                         &evaluate_set,
                                         sizeof(struct evaluate_options),
                                         1,
                                         evaluate_command};
