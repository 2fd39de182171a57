/* SPDX-License-Identifier: BSD-3-Clause
 * One table of figures serves the text and the JSON. */
#include "cli/evaluate_features.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "io/inputs.h"
#include "io/labels.h"
#include "io/truth.h"
#include "look/probing_scores.h"

/* A figure of struct feature_measures. */
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
/* Row i is probed for the label of row i + shift. */
static const struct {
  const char *name, *shown; /* in JSON, and in the text */
  int shift;
} series[LABEL_SERIES] = {
    {"label", "label", 0}, {"label_before", "before", -1}, {"label_behind", "behind", 1}};

static real value_of(const void *values, const struct figure *figure)
{
  return *(const real *)((const char *)values + figure->offset);
}

/* *out <- FILE and a path in it, owned. */
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
        "'%s' has %d features, '%s' is of %d: they are not of one world", features->name,
        features->k, truth->name, truth->k);
  return OK;
}

/* The encoder's matrix is read whole. */
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

int features_open(struct feature_inputs *f, const struct row_source *rows)
{
  CHECK(!f->encoder_name || f->labels_name, ERR_USAGE,
        "'--encoder' is judged by labels: give '--labels' too");
  if (f->encoder_name) TRY(encoder_open(f, rows));
  if (f->truth_name) TRY(truth_open(f, rows));
  if (f->labels_name) TRY(labels_read(f->labels_name, rows->n, rows->name, &f->arena, &f->labels));
  return OK;
}

void features_close(struct feature_inputs *f)
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

int features_compare(struct feature_inputs *f, struct comm *c, const struct atom_source *decoder,
                     int threads)
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

int features_probe(struct feature_inputs *f, const struct row_source *rows, int threads)
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

int features_measure(const struct feature_inputs *f, const struct support_source *codes,
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

/* Print a figure of each set of codes; `base` is where its struct begins in the first one's. */
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

void features_print(const struct feature_inputs *f, const struct feature_measures *m, int count)
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

void features_encoder_json(const struct feature_inputs *f, struct json *j)
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

void features_json(const struct feature_inputs *f, const struct feature_measures *m, struct json *j)
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
