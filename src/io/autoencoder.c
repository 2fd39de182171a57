/* SPDX-License-Identifier: BSD-3-Clause
 * A table gives the tensors of each class of each program; matrices stored as (P, K) are
 * transposed. */
#include "io/autoencoder.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/num.h"
#include "base/status.h"
#include "io/autoencoder_settings.h"
#include "io/inputs.h"
#include "io/npz.h"

/* The names of the tensors of a class of a program; NULL: the class has no such tensor. */
struct form {
  const char *program, *architecture;
  const char *decoder, *mean, *weights, *bias, *threshold;
  int decoder_transposed, weights_transposed; /* 1: stored transposed, as (P, K) */
  int centered;                               /* 1: its encoder subtracts the mean from rows */
  int kind;                                   /* enum encoder_kind; -1: Sagitta does not have it */
};
#define LENS(name, threshold, kind)                                                                \
  {                                                                                                \
    "saelens", name, "W_dec", "b_dec", "W_enc", "b_enc", threshold, 0, 1, 1, kind                  \
  }
#define LINEAR(name, mean, threshold, centered, kind)                                              \
  {                                                                                                \
    "dictionary_learning", name, "decoder.weight", mean, "encoder.weight", "encoder.bias",         \
        threshold, 1, 0, centered, kind                                                            \
  }
static const struct form forms[] = {
    LENS("standard", NULL, ENCODER_RELU),
    LENS("topk", NULL, ENCODER_TOPK),
    LENS("jumprelu", "threshold", ENCODER_JUMPRELU),
    {"saelens", "matching_pursuit", "W_dec", "b_dec", NULL, NULL, NULL, 0, 0, 1, -1},
    {"sparsify", "topk", "W_dec", "b_dec", "encoder.weight", "encoder.bias", NULL, 0, 0, 1,
     ENCODER_TOPK},
    LINEAR("AutoEncoder", "bias", NULL, 1, ENCODER_RELU),
    LINEAR("AutoEncoderNew", "decoder.bias", NULL, 0, ENCODER_RELU),
    LINEAR("AutoEncoderTopK", "b_dec", NULL, 1, ENCODER_TOPK),
    LINEAR("BatchTopKSAE", "b_dec", "threshold", 1, ENCODER_BATCHTOPK),
    {"dictionary_learning", "MatryoshkaBatchTopKSAE", "W_dec", "b_dec", "W_enc", "b_enc",
     "threshold", 0, 1, 1, ENCODER_BATCHTOPK},
    {"dictionary_learning", "JumpReluAutoEncoder", "W_dec", "b_dec", "W_enc", "b_enc", "threshold",
     0, 1, 0, ENCODER_JUMPRELU},
    {"gemma_scope", "jumprelu", "W_dec", "b_dec", "W_enc", "b_enc", "threshold", 0, 1, 0,
     ENCODER_JUMPRELU},
};

/* The files of each program.  A program without a settings file has a single class. */
static const struct {
  const char *program, *settings, *weights, *class_key, *top_key;
} programs[] = {
    {"saelens", "cfg.json", "sae_weights.safetensors", "architecture", "k"},
    {"sparsify", "cfg.json", "sae.safetensors", "activation", "k"},
    {"dictionary_learning", "config.json", "ae.safetensors", "trainer.dict_class", "trainer.k"},
    {"dictionary_learning", "config.json", "ae.npz", "trainer.dict_class", "trainer.k"},
    {"gemma_scope", NULL, "params.npz", NULL, NULL},
};

/* Is there such a file in a folder?  path[4096] <- its name. */
static int has_file(const char *folder, const char *file, char *path)
{
  return snprintf(path, 4096, "%s/%s", folder, file) < 4096 && input_is_there(path);
}

/* name[256] <- a subfolder that has the weights of a program.  Returns 0 if there is none. */
static int inner_find(const char *folder, char *name)
{
  char path[4096], inner[4096];
  int found = 0;
  DIR *list = opendir(folder);
  for (struct dirent *e; list && !found && (e = readdir(list));) {
    if (e->d_name[0] == '.' || snprintf(inner, sizeof inner, "%s/%s", folder, e->d_name) >= 4096)
      continue;
    for (int i = 0; i < LENGTH(programs) && !found; i++)
      found = has_file(inner, programs[i].weights, path);
    if (found) snprintf(name, 256, "%s", e->d_name);
  }
  if (list) closedir(list);
  return found;
}

/* Say what to do with a folder of no known form. */
static int folder_fail(const char *folder)
{
  char path[4096], inner[256];
  CHECK(!has_file(folder, "ae.pt", path), ERR_INPUT,
        "'%s' is a pickle; convert it: python3 -c \"import torch; from safetensors.torch import "
        "save_file; save_file({k: v.contiguous() for k, v in "
        "torch.load('%s', map_location='cpu').items()}, '%s/ae.safetensors')\"",
        path, path, folder);
  CHECK(!inner_find(folder, inner), ERR_INPUT,
        "'%s' holds several autoencoders: name the folder of one, such as '%s/%s'", folder, folder,
        inner);
  CHECK(input_is_there(folder), ERR_INPUT,
        "'%s' is no folder of an autoencoder: there is nothing of that name", folder);
  TRY(input_in_folder(folder, ".", path));
  CHECK(strcmp(path, folder) != 0, ERR_INPUT,
        "'%s' is no folder of an autoencoder, but a file: give the folder that it is in", folder);
  FAIL(ERR_INPUT,
       "'%s' is no folder of an autoencoder: SAELens has cfg.json, sae_weights.safetensors; "
       "sparsify cfg.json, sae.safetensors; dictionary_learning config.json, ae.safetensors or "
       "ae.npz; Gemma Scope params.npz",
       folder);
}

/* Set the program and both paths; *which <- the index of the program in programs[]. */
static int files_find(struct autoencoder *a, const char *folder, int *which)
{
  int i = 0;
  while (i < LENGTH(programs) && !has_file(folder, programs[i].weights, a->weights_path)) i++;
  if (i == LENGTH(programs)) return folder_fail(folder);
  a->program = programs[i].program;
  *which = i;
  if (!programs[i].settings) return OK;
  CHECK(has_file(folder, programs[i].settings, a->settings_path), ERR_INPUT,
        "'%s' has no '%s' beside it, which says what the tensors mean: copy it there too",
        a->weights_path, programs[i].settings);
  return OK;
}

/* *form <- the form of the class.  Of an unknown class only decoder and mean are used. */
static int form_find(struct autoencoder *a, int which, struct form *form)
{
  TRY(autoencoder_class_find(&a->settings, a->program, &a->architecture));
  CHECK(a->architecture, ERR_INPUT, "'%s' has no '%s', which says what the tensors mean",
        a->settings_path, programs[which].class_key);
  for (int i = 0; i < LENGTH(forms); i++)
    if (!strcmp(forms[i].program, a->program) && !strcmp(forms[i].architecture, a->architecture)) {
      *form = forms[i];
      return OK;
    }
  int i = 0;
  while (strcmp(forms[i].program, a->program) != 0) i++;
  *form = forms[i];
  form->weights = form->bias = form->threshold = NULL;
  form->kind = -1;
  if (!strcmp(a->architecture, "GatedAutoEncoder")) form->mean = "decoder_bias";
  log_warn("the encoder of '%s' is '%s', none of those that are known here: its decoder alone is "
           "imported",
           a->settings_path, a->architecture);
  return OK;
}

/* *found <- the tensor with this name.  ERR_INPUT: there is none. */
static int tensor_get(struct autoencoder *a, const char *name, const struct tensor **found)
{
  char list[256] = "";
  size_t used = 0;
  *found = tensor_find(&a->tensors, name);
  for (gidx i = 0; !*found && i < a->tensors.count && used < sizeof list; i++)
    used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "",
                             a->tensors.list[i].name);
  CHECK(*found, ERR_INPUT,
        "'%s' has no '%s', which a '%s' of %s has; it has %s: is '%s' of these weights?",
        a->weights_path, name, a->architecture, a->program, list, a->settings_path);
  return OK;
}

static int type_check(const struct autoencoder *a, const struct tensor *t, const char *dtype)
{
  CHECK(strcmp(t->dtype, "F64") != 0, ERR_INPUT,
        "'%s' of '%s' is of float64, which Sagitta would round: save it as float32", t->name,
        a->weights_path);
  CHECK(!*dtype || !strcmp(t->dtype, dtype), ERR_INPUT,
        "'%s' of '%s' is of type %s, others of %s: save all in one type", t->name, a->weights_path,
        t->dtype, dtype);
  return OK;
}

/* *out <- the `count` values of a tensor, in the arena. */
static int values_read(struct autoencoder *a, const struct tensor *t, gidx count, float **out)
{
  struct flat_file view = a->file;
  TRY(arena_alloc(&a->arena, out, count, sizeof **out));
  TRY(tensor_array(&view, t));
  if (!view.rank) view.shape[view.rank++] = 1;
  return flat_read(&view, 0, view.shape[0], *out);
}

static int vector_read(struct autoencoder *a, const char *name, gidx count, float **out)
{
  const struct tensor *t;
  TRY(tensor_get(a, name, &t));
  CHECK(t->rank == 1 && t->shape[0] == count, ERR_INPUT,
        "'%s' of '%s' has %lld entries, the decoder wants %lld: the tensors are not of one "
        "autoencoder",
        name, a->weights_path, t->rank == 1 ? (long long)t->shape[0] : -1, (long long)count);
  TRY(type_check(a, t, a->dtype));
  return values_read(a, t, count, out);
}

/* out[k][p] <- in[p][k]. */
static void turn(const float *in, idx k, idx p, float *out)
{
  for (idx c = 0; c < p; c++)
    for (idx i = 0; i < k; i++) out[(gidx)i * p + c] = in[(gidx)c * k + i];
}

/* *out[k][p] <- a matrix that is stored as (K, P), or if `turned` as (P, K). */
static int matrix_read(struct autoencoder *a, const char *name, int turned, float **out)
{
  const struct tensor *t;
  idx k = a->encoder.k, p = a->encoder.p, rows = turned ? p : k, columns = turned ? k : p;
  TRY(tensor_get(a, name, &t));
  TRY(type_check(a, t, a->dtype));
  int is_matrix = t->rank == 2,
      is_turned = is_matrix && t->shape[0] == columns && t->shape[1] == rows;
  CHECK(!is_turned || k == p, ERR_INPUT,
        "'%s' of '%s' is %d x %d and has to be %d x %d: it is transposed; save it as W.T", name,
        a->weights_path, columns, rows, rows, columns);
  CHECK(is_matrix && t->shape[0] == rows && t->shape[1] == columns, ERR_INPUT,
        "'%s' of '%s' is %lld x %lld and has to be %d x %d: the tensors are not of one autoencoder",
        name, a->weights_path, (long long)t->shape[0], is_matrix ? (long long)t->shape[1] : 0, rows,
        columns);
  TRY(values_read(a, t, (gidx)k * p, out));
  if (!turned) return OK;
  float *straight;
  TRY(arena_alloc(&a->arena, &straight, (gidx)k * p, sizeof *straight));
  turn(*out, k, p, straight);
  *out = straight;
  return OK;
}

/* Set the numbers of atoms and columns, from the shape of the decoder.  The mean has one entry per
 * column, which shows if the decoder is transposed. */
static int shape_find(struct autoencoder *a, const struct form *form)
{
  const struct tensor *decoder, *mean;
  TRY(tensor_get(a, form->decoder, &decoder));
  TRY(tensor_get(a, form->mean, &mean));
  CHECK(decoder->rank == 2 && mean->rank == 1, ERR_INPUT,
        "'%s' and '%s' of '%s' have %d and %d dimensions, not 2 and 1", form->decoder, form->mean,
        a->weights_path, decoder->rank, mean->rank);
  gidx k = decoder->shape[form->decoder_transposed], p = decoder->shape[!form->decoder_transposed];
  if (p != mean->shape[0] && k == mean->shape[0]) { /* matrix_read() reports the error */
    gidx swap = k;
    k = p;
    p = swap;
  }
  CHECK(p == mean->shape[0], ERR_INPUT,
        "'%s' of '%s' has %lld columns, '%s' has %lld: the tensors are not of one autoencoder",
        form->decoder, a->weights_path, (long long)p, form->mean, (long long)mean->shape[0]);
  CHECK(k >= 1 && p >= 1 && k <= INT32_MAX && p <= INT32_MAX, ERR_INPUT,
        "'%s' has %lld atoms of %lld columns", a->weights_path, (long long)k, (long long)p);
  a->encoder.k = (idx)k;
  a->encoder.p = (idx)p;
  snprintf(a->dtype, sizeof a->dtype, "%s", decoder->dtype);
  return OK;
}

/* Compare the shape with the settings, as far as they give it. */
static int shape_check(const struct autoencoder *a)
{
  static const char *const columns[] = {"d_in", "trainer.activation_dim", "d_out"};
  static const char *const atoms[] = {"d_sae", "num_latents", "trainer.dict_size"};
  for (int i = 0; i < LENGTH(columns) + LENGTH(atoms); i++) {
    const char *name = i < LENGTH(columns) ? columns[i] : atoms[i - LENGTH(columns)];
    gidx is = i < LENGTH(columns) ? a->encoder.p : a->encoder.k, says = 0;
    TRY(settings_long(&a->settings, name, &says));
    CHECK(!says || says == is, ERR_INPUT,
          "'%s' says %s %lld, the tensors of '%s' have %lld: the files are not of one autoencoder",
          a->settings_path, name, (long long)says, a->weights_path, (long long)is);
  }
  return OK;
}

/* Does a class have this tensor?  AutoEncoderTopK stores a threshold that it does not use. */
static int is_of_form(const struct form *form, const char *name)
{
  const char *const names[] = {form->decoder, form->mean, form->weights, form->bias,
                               form->threshold};
  for (int i = 0; i < LENGTH(names); i++)
    if (names[i] && !strcmp(names[i], name)) return 1;
  return !strcmp(form->architecture, "AutoEncoderTopK") && !strcmp(name, "threshold");
}

/* Refuse float tensors that the form does not have, because what they compute would be lost.  If
 * the class is not known, only skip connections are refused. */
static int tensors_check(const struct autoencoder *a, const struct form *form)
{
  for (gidx i = 0; i < a->tensors.count; i++) {
    const struct tensor *t = &a->tensors.list[i];
    int is_float = *t->dtype == 'F' || *t->dtype == 'B' ? strcmp(t->dtype, "BOOL") != 0 : 0;
    int has_form = form->kind >= 0 || a->pursues, adds = strstr(t->name, "skip") != NULL;
    CHECK(!is_float || is_of_form(form, t->name) || !(has_form || adds), ERR_INPUT,
          "'%s' has '%s', which a '%s' of %s lacks: a model with it predicts other values than "
          "its rows, or computes what is unknown here: import a model without it",
          a->weights_path, t->name, a->architecture, a->program);
  }
  return OK;
}

/* Read a threshold for each atom.  A single threshold is repeated for all atoms. */
static int threshold_read(struct autoencoder *a, const char *name)
{
  const struct tensor *t;
  TRY(tensor_get(a, name, &t));
  TRY(type_check(a, t, ""));
  gidx k = a->encoder.k, count = t->rank ? t->shape[0] : 1;
  CHECK(t->rank <= 1 && (count == 1 || count == k), ERR_INPUT,
        "'%s' of '%s' has %lld entries, not 1 or %lld", name, a->weights_path, (long long)count,
        (long long)k);
  TRY(values_read(a, t, count, &a->threshold));
  snprintf(a->threshold_dtype, sizeof a->threshold_dtype, "%s", t->dtype);
  if (count == k) return OK;
  float value = a->threshold[0];
  TRY(arena_alloc(&a->arena, &a->threshold, k, sizeof *a->threshold));
  for (gidx i = 0; i < k; i++) a->threshold[i] = value;
  return OK;
}

/* *top <- the fixed number of codes per row, if the class has one; up to three settings have it. */
static int top_find(const struct autoencoder *a, const char *key, int is_needed, gidx *top)
{
  const char *const names[] = {key, "activation_fn_kwargs.k", "max_iterations"};
  const char *from = NULL;
  for (int i = 0; i < (a->pursues ? 3 : 2); i++) {
    gidx value = -1;
    if (names[i]) TRY(settings_long(&a->settings, names[i], &value));
    CHECK(value < 0 || !from || value == *top || i > 1 || !is_needed, ERR_INPUT,
          "'%s' says %s %lld and %s %lld: keep the right one, remove the other", a->settings_path,
          from, (long long)*top, names[i], (long long)value);
    if (value < 0 || from) continue;
    from = names[i];
    *top = value;
  }
  if (!is_needed) return OK;
  CHECK(from, ERR_INPUT, "'%s' has no '%s': add it, the codes per row", a->settings_path, key);
  CHECK(*top > 0, ERR_INPUT, "'%s' of '%s' is 0: a row has one code or more", from,
        a->settings_path);
  CHECK(*top <= a->encoder.k, ERR_INPUT, "'%s' of '%s' is %lld, and '%s' has %d atoms", from,
        a->settings_path, (long long)*top, a->weights_path, a->encoder.k);
  return OK;
}

/* AutoEncoderTopK also stores k among the weights, and uses that k: the settings must agree. */
static int top_compare(const struct autoencoder *a, gidx top)
{
  const struct tensor *t = tensor_find(&a->tensors, "k");
  unsigned char bytes[8] = {0};
  int is_long = t && !strcmp(t->dtype, "I64"),
      is_whole = is_long || (t && !strcmp(t->dtype, "I32"));
  if (!is_whole || t->end - t->begin != (is_long ? 8 : 4)) return OK;
  TRY(flat_bytes(&a->file, a->file.values + t->begin, is_long ? 8 : 4, bytes));
  uint64_t k = 0;
  for (int i = 7; i >= 0; i--) k = k << 8 | bytes[i];
  CHECK(k == (uint64_t)top, ERR_INPUT,
        "'%s' says k %lld, the tensor 'k' of '%s' says %llu: correct the wrong one",
        a->settings_path, (long long)top, a->weights_path, (unsigned long long)k);
  return OK;
}

static int encoder_read(struct autoencoder *a, const struct form *form, int which)
{
  struct encoder *e = &a->encoder;
  gidx top = 0;
  e->centered = form->centered;
  if (which == 0) TRY(settings_flag(&a->settings, "apply_b_dec_to_input", &e->centered));
  TRY(top_find(a, programs[which].top_key, form->kind == ENCODER_TOPK, &top));
  if (form->kind == ENCODER_TOPK) TRY(top_compare(a, top));
  e->top = (idx)imin(top, e->k);
  if (form->kind < 0) return OK;
  e->kind = (enum encoder_kind)form->kind;
  TRY(settings_flag(&a->settings, "rescale_acts_by_decoder_norm", &e->rescaled));
  TRY(matrix_read(a, form->weights, form->weights_transposed, &a->weights));
  TRY(vector_read(a, form->bias, e->k, &a->bias));
  if (form->threshold) TRY(threshold_read(a, form->threshold));
  e->weights = a->weights;
  e->bias = a->bias;
  e->threshold = a->threshold;
  a->has_encoder = 1;
  return OK;
}

/* Multiply n values by a factor, in f64, rounded once. */
static void values_scale(float *values, gidx n, double factor)
{
  for (gidx i = 0; values && i < n; i++) values[i] = (float)((double)values[i] * factor);
}

/* Fold the scale factor of activations into the weights, as SAELens does after training.  Then the
 * encoder takes activations as they are, and the decoder gives them at the same scale. */
static int factor_fold(struct autoencoder *a, const char *folder)
{
  gidx k = a->encoder.k, p = a->encoder.p;
  TRY(autoencoder_factor_find(&a->settings, a->program, folder, a->scaler_path, &a->scaler,
                              &a->factor));
  if (a->factor == 1) return OK;
  CHECK(!a->pursues, ERR_INPUT,
        "'%s' says scaling_factor %g, which matching pursuit does not use: import the folder "
        "without this factor, and encode rows multiplied by it",
        a->scaler_path, a->factor);
  values_scale(a->weights, k * p, a->factor);
  values_scale(a->decoder, k * p, 1 / a->factor);
  values_scale(a->mean, p, 1 / a->factor);
  TRY(settings_replace(&a->settings, "normalize_activations", "none"));
  TRY(settings_replace(&a->settings, "dtype", "float32"));
  strcpy(a->dtype, "F32");
  return OK;
}

int autoencoder_open(struct autoencoder *a, const char *folder)
{
  struct form form = {0};
  int which = 0;
  *a = (struct autoencoder){0};
  TRY(files_find(a, folder, &which));
  if (programs[which].settings) TRY(settings_open(&a->settings, a->settings_path));
  if (a->settings.whole) TRY(autoencoder_settings_check(&a->settings, a->program));
  const char *end = strrchr(a->weights_path, '.');
  int is_npz = end && !strcmp(end, ".npz");
  TRY((is_npz ? npz_open : tensors_open)(&a->file, &a->tensors, a->weights_path));
  TRY(form_find(a, which, &form));
  a->pursues = !strcmp(a->architecture, "matching_pursuit");
  TRY(tensors_check(a, &form));
  TRY(shape_find(a, &form));
  TRY(matrix_read(a, form.decoder, form.decoder_transposed, &a->decoder));
  TRY(vector_read(a, form.mean, a->encoder.p, &a->mean));
  TRY(shape_check(a));
  TRY(encoder_read(a, &form, which));
  return factor_fold(a, folder);
}

int autoencoder_close(struct autoencoder *a)
{
  int status = settings_close(&a->settings), scaler = settings_close(&a->scaler);
  int closed = flat_close(&a->file);
  tensors_free(&a->tensors);
  arena_free(&a->arena);
  *a = (struct autoencoder){0};
  return status ? status : scaler ? scaler : closed;
}
