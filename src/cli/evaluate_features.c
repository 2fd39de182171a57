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

/* A figure of struct feature_measures. */
struct figure {
  const char *name;
  size_t offset;
};

static const struct figure truth_figures[] = {
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
  const char *name;
  int shift;
} series[LABEL_SERIES] = {{"label", 0}, {"label_before", -1}, {"label_behind", 1}};

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

int features_open(struct feature_inputs *f, const struct row_source *rows)
{
  if (f->truth_name) TRY(truth_open(f, rows));
  if (f->labels_name) TRY(labels_read(f->labels_name, rows->n, rows->name, &f->arena, &f->labels));
  return OK;
}

void features_close(struct feature_inputs *f)
{
  if (f->truth_path) supports_input_close(&f->truth);
  if (f->features_path) dictionary_input_close(&f->features);
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
  return f->truth_name ? compare_dictionaries(c, &task, &f->compared) : OK;
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
    snprintf(prefix, sizeof prefix, "%s_", series[s].name);
    for (int i = 0; i < LENGTH(label_figures); i++)
      figure_print(prefix, &label_figures[i], &m->probing[s], count);
  }
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
