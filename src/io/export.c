/* SPDX-License-Identifier: BSD-3-Clause
 * An imported autoencoder that is exported to the program from which it came gets the tensors and
 * settings that it had.  A dictionary without encoder gets matching pursuit for SAELens, and a tied
 * top-k encoder for sparsify. */
#include "io/export.h"

#include <string.h>

#include "base/json.h"
#include "base/num.h"
#include "base/status.h"
#include "io/temporary.h"
#include "io/tensors_write.h"

#define LENS_VERSION "6.54.12" /* the version of SAELens that has these settings */

struct export_files export_files_of(enum export_form form)
{
  static const struct export_files files[] = {
      [EXPORT_SAFETENSORS] = {"dictionary.safetensors", NULL},
      [EXPORT_NPY] = {"atoms.npy", "mean.npy"},
      [EXPORT_SAELENS] = {"sae_weights.safetensors", "cfg.json"},
      [EXPORT_SPARSIFY] = {"sae.safetensors", "cfg.json"},
  };
  return files[form];
}

/* m->mean32 <- the mean in float32, or zeros.  m->rounded counts the values that change. */
static int mean_narrow(struct export_model *m, struct arena *arena)
{
  float *mean;
  TRY(arena_alloc(arena, &mean, m->p, sizeof *mean));
  for (idx c = 0; c < m->p && m->mean; c++) {
    mean[c] = (float)m->mean[c];
    m->rounded += (real)mean[c] != m->mean[c];
  }
  m->mean32 = mean;
  return OK;
}

/* Make an encoder whose matrix is the decoder. */
static int encoder_tie(struct export_model *m, struct arena *arena)
{
  float *bias;
  TRY(arena_alloc(arena, &bias, m->k, sizeof *bias));
  m->encoder = (struct encoder){.kind = ENCODER_TOPK,
                                .k = m->k,
                                .p = m->p,
                                .top = m->top,
                                .centered = 1,
                                .weights = m->atoms,
                                .bias = bias};
  return OK;
}

static int imported_plan(struct export_model *m)
{
  const struct stored_encoder *s = m->stored;
  const struct encoder *e = &s->encoder;
  m->as_it_was = !strcmp(s->program, m->form == EXPORT_SAELENS ? "saelens" : "sparsify");
  m->pursues = m->form == EXPORT_SAELENS && !strcmp(s->architecture, "matching_pursuit");
  m->dtype = s->dtype;
  m->threshold_dtype = s->threshold_dtype;
  if (s->decoder) m->decoder = s->decoder;
  CHECK(s->has_encoder || m->pursues, ERR_INPUT,
        "the encoder of this dictionary, a '%s' of %s, was not imported: write its decoder with "
        "'--to safetensors'",
        s->architecture, s->program);
  m->encoder = *e;
  if (m->pursues) { /* the defaults of SAELens */
    m->stops = !strstr(s->settings, "\"stop_on_duplicate_support\": false");
    m->top = e->top ? e->top : m->p;
  }
  int is_plain = e->kind == ENCODER_TOPK && e->centered && !e->rescaled;
  CHECK(is_plain || m->form == EXPORT_SAELENS, ERR_INPUT,
        "sparsify has only encoders of kind topk that take rows less the mean, this one is "
        "%s%s: use '--to saelens'",
        encoder_names[e->kind], e->centered ? "" : " of rows as they are");
  return OK;
}

int export_plan(struct export_model *m, struct arena *arena)
{
  int is_program = m->form == EXPORT_SAELENS || m->form == EXPORT_SPARSIFY;
  m->decoder = m->atoms;
  m->dtype = m->threshold_dtype = "F32";
  TRY(mean_narrow(m, arena));
  if (!is_program) return OK;
  CHECK(m->d == 1, ERR_INPUT,
        "atoms are frames of %d vectors, which other programs do not know: use '--to safetensors'",
        m->d);
  if (m->stored) return imported_plan(m);
  CHECK(m->top > 0, ERR_USAGE,
        "'--top-s' is missing: give the atoms per row, which the dictionary does not say");
  m->pursues = m->form == EXPORT_SAELENS;
  return m->pursues ? OK : encoder_tie(m, arena);
}

/* Settings of SAELens that all classes have. */
static void lens_begin(struct json *j, const struct export_model *m, const char *architecture)
{
  static const char *const types[][2] = {
      {"F32", "float32"}, {"F16", "float16"}, {"BF16", "bfloat16"}};
  int i = 0;
  while (i < LENGTH(types) - 1 && strcmp(types[i][0], m->dtype) != 0) i++;
  json_object(j, NULL);
  json_text(j, "architecture", architecture);
  json_long(j, "d_in", m->p);
  json_long(j, "d_sae", m->k);
  json_text(j, "dtype", types[i][1]);
  json_text(j, "device", "cpu");
  json_flag(j, "apply_b_dec_to_input", m->pursues || m->encoder.centered);
  json_text(j, "normalize_activations", "none");
  json_text(j, "reshape_activations", "none");
}

static void lens_settings(struct json *j, const struct export_model *m)
{
  static const char *const names[] = {"standard", "topk", "jumprelu", "jumprelu"};
  lens_begin(j, m, m->pursues ? "matching_pursuit" : names[m->encoder.kind]);
  if (m->pursues) {
    json_long(j, "max_iterations", m->top);
    json_real(j, "residual_threshold", 0);
    json_flag(j, "stop_on_duplicate_support", 0);
  } else if (m->encoder.kind == ENCODER_TOPK) {
    json_long(j, "k", m->encoder.top);
    json_flag(j, "rescale_acts_by_decoder_norm", m->encoder.rescaled);
  }
  json_object(j, "metadata");
  json_text(j, "sae_lens_version", LENS_VERSION);
  json_end(j);
  json_end(j);
}

static void sparsify_settings(struct json *j, const struct export_model *m)
{
  json_object(j, NULL);
  json_text(j, "activation", "topk");
  json_long(j, "expansion_factor", ceil_div(m->k, m->p));
  json_flag(j, "normalize_decoder", 1);
  json_long(j, "num_latents", m->k);
  json_long(j, "k", m->encoder.top);
  json_flag(j, "multi_topk", 0);
  json_flag(j, "skip_connection", 0);
  json_flag(j, "transcode", 0);
  json_long(j, "d_in", m->p);
  json_end(j);
}

/* Write cfg.json or mean.npy. */
static int rest_fill(const struct export_model *m, FILE *out, const char *path)
{
  struct json j = {.out = out};
  struct tensor_out mean = {"mean", "F64", 1, {m->p}, .reals = m->mean};
  if (m->form == EXPORT_NPY) return npy_write(out, path, &mean);
  if (m->as_it_was)
    fputs(m->stored->settings, out);
  else if (m->form == EXPORT_SAELENS)
    lens_settings(&j, m);
  else
    sparsify_settings(&j, m);
  CHECK(!ferror(out), ERR_IO, "cannot write '%s'", path);
  return OK;
}

/* list[] <- the tensors with the names of the program that uses them.  Returns their number. */
static int tensors_list(const struct export_model *m, struct tensor_out *list)
{
  const struct encoder *e = &m->encoder;
  const struct tensor_out turned = {"W_enc",    m->dtype, 2, {m->p, m->k}, .values = e->weights,
                                    .turned = 1};
  const struct tensor_out mean = {"b_dec", m->dtype, 1, {m->p}, .values = m->mean32};
  const struct tensor_out threshold = {
      "threshold", m->threshold_dtype, 1, {m->k}, .values = e->threshold};
  struct tensor_out bias = {"encoder.bias", m->dtype, 1, {m->k}, .values = e->bias};
  int is_lens = m->form == EXPORT_SAELENS, n = 0;
  list[n++] = (struct tensor_out){"W_dec", m->dtype, 2, {m->k, m->p}, .values = m->decoder};
  if (is_lens && !m->pursues) list[n++] = turned;
  list[n++] = mean;
  if (m->pursues) return n;
  if (is_lens) bias.name = "b_enc";
  list[n++] = bias;
  if (e->threshold) list[n++] = threshold;
  if (!is_lens)
    list[n++] =
        (struct tensor_out){"encoder.weight", m->dtype, 2, {m->k, m->p}, .values = e->weights};
  return n;
}

static int values_fill(const struct export_model *m, FILE *out, const char *path)
{
  struct tensor_out list[5];
  int is_frames = m->d > 1, n = 0;
  if (m->form == EXPORT_SAELENS || m->form == EXPORT_SPARSIFY)
    return tensors_write(out, path, list, tensors_list(m, list));
  list[n++] = (struct tensor_out){"atoms", "F32", is_frames ? 3 : 2, .values = m->atoms};
  list[0].shape[0] = m->k;
  list[0].shape[1] = is_frames ? m->d : m->p;
  list[0].shape[2] = m->p;
  if (m->form == EXPORT_NPY) return npy_write(out, path, list);
  if (m->mean) list[n++] = (struct tensor_out){"mean", "F64", 1, {m->p}, .reals = m->mean};
  return tensors_write(out, path, list, n);
}

int export_write(const struct export_model *m, const char *values, const char *rest)
{
  struct temporary t[2];
  FILE *out[2];
  int count = rest && (m->form != EXPORT_NPY || m->mean) ? 2 : 1;
  TRY(temporary_create(&t[0], values, NULL, &out[0]));
  TRY(values_fill(m, out[0], values));
  if (count > 1) TRY(temporary_create(&t[1], rest, NULL, &out[1]));
  if (count > 1) TRY(rest_fill(m, out[1], rest));
  for (int i = 0; i < count; i++) TRY(temporary_close(&t[i], out[i]));
  for (int i = 0; i < count; i++) TRY(temporary_publish(&t[i]));
  return OK;
}
