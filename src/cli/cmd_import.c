/* SPDX-License-Identifier: BSD-3-Clause
 * sagitta import: the folder of an autoencoder -> dictionary.h5. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "io/input_agreement.h"
#include "cli/command.h"
#include "job/summary.h"
#include "io/autoencoder.h"
#include "io/dictionary.h"
#include "io/encoder.h"
#include "model/dictionary.h"
#include "model/rows.h"
#include "model/route.h"

struct import_options {
  struct general_options general;
  struct output_options output;
  const char *from;
};

static const struct option_row input_rows[] = {
    {"from", OPTION_TEXT, offsetof(struct import_options, from), NULL, 0, 0, NULL, "FOLDER",
     "the folder, instead of the argument", .effect = OPTION_BITS, .flags = OPTION_INPUT},
};

static const struct option_table tables[] = {
    {"Input", input_rows, LENGTH(input_rows), 0},
    {"Result", output_rows, OUTPUT_ROWS, offsetof(struct import_options, output)},
    {"Job", general_rows, GENERAL_ROWS, offsetof(struct import_options, general)},
};

static const struct option_set import_set = {
    .command = "sagitta import",
    .arguments = "[FOLDER]",
    .doc = "Make a dictionary from an autoencoder that another program has saved."
           "\v"
           "A folder of SAELens has cfg.json and sae_weights.safetensors, of sparsify cfg.json "
           "and sae.safetensors, of dictionary_learning config.json and ae.safetensors or ae.npz, "
           "of Gemma Scope params.npz.  For ae.pt, which is a pickle, an error message says how "
           "to convert it.\n\n"
           "The decoder becomes the atoms, its bias becomes the mean, and the encoder becomes "
           "/encoder of the dictionary, all with their bits.  If the norms of the decoder are not "
           "1, the atoms are divided by their norms, and the decoder is stored too, so that "
           "`sagitta export` gives back the autoencoder.\n\n"
           "If a setting makes the other program compute codes that Sagitta would not, an error "
           "names it; a setting that import does not know gives a warning.  The factor of "
           "activation_scaler.json is folded into the weights.\n\n"
           "A single argument that ends in .in is a deck.\n\n"
           "  sagitta import sae/ --output dict/\n"
           "  sagitta encode --rows acts.h5 --encoder dict/ --output own/\n"
           "  sagitta encode --rows acts.h5 --dictionary dict/ --rounds 8 --output run/\n"
           "  sagitta evaluate --rows acts.h5 --dictionary dict/ --codes own/ --codes run/",
    .tables = tables,
    .count = LENGTH(tables),
    .max_arguments = 1,
    .takes_files = 1,
};

/* The state of the job, on the heap, since threads may use it after a failure (job/run.h). */
struct import {
  struct autoencoder source;
  struct output_path place;
  struct matrix_output file;
  struct stored_encoder stored;
  struct arena arena;
  float *atoms, *norm; /* [k][p]; [k] norms of the decoder's rows */
  real *mean;          /* [p] */
  real least, most;    /* smallest and largest of the norms */
  int is_scaled;
};

static int folder_choose(const struct import_options *o, const struct run *run,
                         const char **arguments, const char **folder)
{
  const char *argument = run->deck ? NULL : arguments[0];
  CHECK(o->from || argument, ERR_USAGE,
        "the folder is missing, as in: sagitta import sae/ --output dict/");
  CHECK(!o->from || !argument, ERR_USAGE, "the folder is given twice, as '%s' and '%s'", o->from,
        argument);
  TRY(output_check_given(o->output.output));
  *folder = argument ? argument : o->from;
  return OK;
}

/* All values must be finite, but a threshold may be infinity: such an atom never has a code. */
static int values_check(const struct autoencoder *a)
{
  idx k = a->encoder.k, p = a->encoder.p;
  const struct {
    const char *name;
    const float *values;
    idx n, p;
  } all[] = {{"decoder", a->decoder, k, p},
             {"decoder's bias", a->mean, 1, p},
             {"encoder", a->weights, k, p},
             {"encoder's bias", a->bias, 1, k},
             {"thresholds", a->threshold, 1, k}};
  for (int i = 0; i < (a->has_encoder ? LENGTH(all) : 2); i++)
    for (gidx at = 0; all[i].values && at < (gidx)all[i].n * all[i].p; at++)
      CHECK(isfinite(all[i].values[at]) || (i == 4 && all[i].values[at] > 0), ERR_INPUT,
            "the %s of '%s' has %g at row %lld, column %d: such weights describe nothing; give "
            "those of an earlier checkpoint",
            all[i].name, a->weights_path, (double)all[i].values[at], (long long)(at / all[i].p),
            (int)(at % all[i].p));
  return OK;
}

/* Compute the norms of the decoder's rows.  m->is_scaled <- must these rows be divided by their
 * norms to become the atoms? */
static int norms_find(struct import *m)
{
  const struct autoencoder *a = &m->source;
  idx k = a->encoder.k, p = a->encoder.p;
  TRY(arena_alloc(&m->arena, &m->norm, k, sizeof *m->norm));
  m->least = INFINITY;
  for (idx i = 0; i < k; i++) {
    real sum = 0;
    for (idx c = 0; c < p; c++) {
      real value = a->decoder[(gidx)i * p + c];
      sum += value * value;
    }
    m->norm[i] = (float)sqrt(sum);
    CHECK(m->norm[i] > 0, ERR_INPUT,
          "atom %d of '%s' has no direction: its decoder is 0; give the decoder any direction, and "
          "the encoder a bias that keeps the atom silent",
          i, a->weights_path);
    m->least = fmin(m->least, m->norm[i]);
    m->most = fmax(m->most, m->norm[i]);
  }
  m->is_scaled =
      a->encoder.rescaled || m->least < 1 - UNIT_TOLERANCE / 2 || m->most > 1 + UNIT_TOLERANCE / 2;
  return OK;
}

static int atoms_fill(struct import *m)
{
  const struct autoencoder *a = &m->source;
  idx k = a->encoder.k, p = a->encoder.p;
  TRY(arena_alloc(&m->arena, &m->atoms, (gidx)k * p, sizeof *m->atoms));
  memcpy(m->atoms, a->decoder, (size_t)k * (size_t)p * sizeof *m->atoms);
  if (m->is_scaled) atoms_normalize(m->atoms, k, 1, p);
  TRY(arena_alloc(&m->arena, &m->mean, p, sizeof *m->mean));
  for (idx c = 0; c < p; c++) m->mean[c] = a->mean[c];
  m->stored = (struct stored_encoder){.program = a->program,
                                      .architecture = a->architecture,
                                      .settings = a->settings.whole ? a->settings.whole : "",
                                      .dtype = a->dtype,
                                      .threshold_dtype = a->threshold_dtype,
                                      .has_encoder = a->has_encoder,
                                      .encoder = a->encoder,
                                      .decoder = m->is_scaled ? a->decoder : NULL};
  m->stored.encoder.norm = m->is_scaled ? m->norm : NULL;
  return OK;
}

static int entries_json(const struct import *m)
{
  const struct autoencoder *a = &m->source;
  const struct encoder *e = &a->encoder;
  struct json *own;
  TRY(summary_entries(&own));
  json_text(own, "program", a->program);
  json_text(own, "architecture", a->architecture);
  json_long(own, "atoms", e->k);
  json_long(own, "columns", e->p);
  json_text(own, "dtype", a->dtype);
  json_text(own, "encoder", a->has_encoder ? encoder_names[e->kind] : NULL);
  json_long(own, "top", e->top);
  json_real(own, "least_norm", m->least);
  json_real(own, "largest_norm", m->most);
  json_flag(own, "scaled", m->is_scaled);
  return OK;
}

static int result_write(struct run *run, struct import *m)
{
  const struct encoder *e = &m->stored.encoder;
  struct run_fact facts[MAX_FACTS];
  TRY(entries_json(m));
  TRY(dictionary_output_create(&m->file, m->place.file, e->k, 1, e->p));
  TRY(matrix_output_write(&m->file, 0, e->k, m->atoms));
  const struct h5_file *h5 = &m->file.result.h5;
  TRY(object_write_vector(h5, "/mean", e->p, m->mean));
  if (m->source.has_encoder || m->source.pursues) TRY(nonnegative_write(h5, 1));
  if (e->top > 0 && e->top <= MAX_TOP_S) TRY(h5_attribute_long(h5, "/", "top_s", e->top));
  if (m->source.pursues && e->top > 0 && e->top <= MAX_TOP_S)
    TRY(h5_attribute_long(h5, "/", "rounds", e->top));
  TRY(encoder_write(&m->file, &m->stored));
  return matrix_output_finish(&m->file, facts, run_facts(run, "cpu", 1, facts));
}

static void import_report(const struct import *m)
{
  const struct autoencoder *a = &m->source;
  const struct encoder *e = &a->encoder;
  log_info("import  program=%s architecture=%s atoms=%d columns=%d dtype=%s encoder=%s top=%d "
           "norms=%.6g..%.6g",
           a->program, a->architecture, e->k, e->p, a->dtype,
           a->has_encoder ? encoder_names[e->kind] : "none", e->top, m->least, m->most);
  log_info("mean    the decoder's bias is the mean: it is subtracted from rows that are encoded%s",
           !a->has_encoder || e->centered ? ""
                                          : ", but not from rows that the imported encoder takes");
  if (a->factor != 1)
    log_info(
        "factor  activations times %g, as '%s' says: it is folded into encoder, decoder and mean, "
        "in float32",
        a->factor, a->scaler_path);
  if (!m->is_scaled) return;
  log_info("scaled  atoms are the decoder divided by its norms%s; export undoes it",
           !a->has_encoder ? ""
           : e->rescaled   ? ", which multiply the scores of its encoder"
                           : ", which multiply the codes of its encoder");
}

static int source_open(struct import *m, const char *folder)
{
  TRY(autoencoder_open(&m->source, folder));
  TRY(values_check(&m->source));
  TRY(norms_find(m));
  return atoms_fill(m);
}

static int import_command(struct run *run, const void *options, const char **arguments)
{
  struct import_options *o = (struct import_options *)options;
  struct import *m;
  TRY(struct_alloc(&m, sizeof *m));
  TRY(folder_choose(o, run, arguments, &o->from));
  TRY(inputs_agree(&run->comm, source_open(m, o->from)));
  const char *settings = m->source.settings_path, *scaler = m->source.scaler_path;
  const struct run_inputs inputs = {
      .name = {m->source.weights_path, *settings ? settings : NULL, *scaler ? scaler : NULL}};
  TRY(run_begin(run, &o->output, "dictionary.h5", &inputs, &m->place));
  import_report(m);
  TRY(inputs_confirm(&run->comm));
  TRY(result_write(run, m));
  log_info("wrote   %s", m->place.shown);
  TRY(autoencoder_close(&m->source));
  arena_free(&m->arena);
  free(m);
  return OK;
}

const struct command command_import = {"import",    "an autoencoder's folder -> dictionary.h5",
                                       &import_set, sizeof(struct import_options),
                                       0,           import_command};
