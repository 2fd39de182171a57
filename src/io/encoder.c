/* SPDX-License-Identifier: BSD-3-Clause
 * An encoder consists of datasets and attributes of one group; the matrix of ENCODER_ACTIVE is
 * /atoms.  encoder_read() reads the matrices whole, for commands that write them again.
 * encoder_input_open() reads the encoder's matrix in pieces, to encode rows; it does not read the
 * decoder. */
#include "io/encoder.h"

#include <math.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "io/check.h"
#include "io/firing.h"
#include "model/rows.h"

#define GROUP "/encoder"
enum { MAX_TEXT = (1 << 20) + 1 };

static const struct object_row object_rows[] = {
    {GROUP "/weights", TYPE_F32, "K P", 0, "the encoder's matrix, a row for each atom"},
    {GROUP "/bias", TYPE_F32, "K", 0, "bias, added to products of rows and this matrix"},
    {GROUP "/threshold", TYPE_F32, "K", 0, "threshold above which a score is a code"},
    {GROUP "/norm", TYPE_F32, "K", 0,
     "norms of the decoder's rows, which are scaled to atoms of norm 1"},
    {GROUP "/decoder", TYPE_F32, "K P", 0, "the decoder before it was scaled"},
    {GROUP "/cuts", TYPE_F32, "T", 0, "thresholds of active atoms, choice after choice"},
};
const struct object_table encoder_objects = {object_rows, LENGTH(object_rows)};

static int matrix_write(const struct h5_file *f, const char *path, const struct encoder *e,
                        const float *values)
{
  gidx shape[] = {e->k, e->p};
  return values ? object_write(f, path, 2, shape, values) : OK;
}

static int vector_write(const struct h5_file *f, const char *path, idx k, const float *values)
{
  return values ? object_write_vector(f, path, k, values) : OK;
}

struct stored_encoder encoder_own(const struct encoder *e)
{
  return (struct stored_encoder){.program = "sagitta",
                                 .architecture = encoder_names[e->kind],
                                 .settings = "",
                                 .dtype = "F32",
                                 .threshold_dtype = e->threshold ? "F32" : "",
                                 .has_encoder = 1,
                                 .encoder = *e};
}

int encoder_write(struct matrix_output *f, const struct stored_encoder *s)
{
  const struct h5_file *h5 = &f->result.h5;
  const struct encoder *e = &s->encoder;
  TRY(h5_attribute_text(h5, GROUP, "program", s->program));
  TRY(h5_attribute_text(h5, GROUP, "architecture", s->architecture));
  TRY(h5_attribute_text(h5, GROUP, "settings", s->settings));
  TRY(h5_attribute_text(h5, GROUP, "dtype", s->dtype));
  TRY(h5_attribute_long(h5, GROUP, "top", e->top));
  TRY(matrix_write(h5, GROUP "/decoder", e, s->decoder));
  TRY(vector_write(h5, GROUP "/norm", e->k, e->norm));
  if (!s->has_encoder) return OK;
  TRY(h5_attribute_text(h5, GROUP, "kind", encoder_names[e->kind]));
  TRY(h5_attribute_long(h5, GROUP, "centered", e->centered));
  TRY(h5_attribute_long(h5, GROUP, "rescaled", e->rescaled));
  if (s->solved) TRY(h5_attribute_long(h5, GROUP, "solved", 1));
  if (e->kind == ENCODER_ACTIVE) {
    TRY(h5_attribute_long(h5, GROUP, "relative", e->active.relative));
    TRY(h5_attribute_real(h5, GROUP, "floor", e->active.floor));
    return object_write_vector(h5, GROUP "/cuts", e->active.looks + 1, e->active.threshold);
  }
  if (e->threshold) TRY(h5_attribute_text(h5, GROUP, "threshold_dtype", s->threshold_dtype));
  TRY(matrix_write(h5, GROUP "/weights", e, e->weights));
  TRY(vector_write(h5, GROUP "/bias", e->k, e->bias));
  return vector_write(h5, GROUP "/threshold", e->k, e->threshold);
}

/* Program and architecture of detectors in a file, by which detectors_there() recognises them. */
#define DETECTORS_PROGRAM "sagitta"
#define DETECTORS_ARCHITECTURE "jumprelu"

int detectors_there(const struct dictionary_input *d, int *there)
{
  const struct h5_file *f = &d->input->h5;
  int ours = 0, kind = 0;
  *there = 0;
  if (d->input->format != INPUT_H5) return OK;
  TRY(h5_exists(f, GROUP "/weights", there));
  if (!*there) return OK;
  TRY(h5_attribute_is(f, GROUP, "program", DETECTORS_PROGRAM, &ours));
  TRY(h5_attribute_is(f, GROUP, "architecture", DETECTORS_ARCHITECTURE, &kind));
  *there = ours && kind;
  return OK;
}

int encoder_is_active(const struct dictionary_input *d, int *is)
{
  int there = 0;
  *is = 0;
  if (d->input->format != INPUT_H5) return OK;
  TRY(h5_exists(&d->input->h5, GROUP, &there));
  if (there) TRY(h5_attribute_is(&d->input->h5, GROUP, "kind", encoder_names[ENCODER_ACTIVE], is));
  return OK;
}

int detectors_write(struct matrix_output *f, const struct detectors *d)
{
  struct arena arena = {0};
  float *bias;
  TRY(arena_alloc(&arena, &bias, d->k, sizeof *bias));
  const struct stored_encoder stored = {.program = DETECTORS_PROGRAM,
                                        .architecture = DETECTORS_ARCHITECTURE,
                                        .settings = "",
                                        .dtype = "F32",
                                        .threshold_dtype = "F32",
                                        .has_encoder = 1,
                                        .encoder = {.kind = ENCODER_JUMPRELU,
                                                    .k = d->k,
                                                    .p = d->p,
                                                    .centered = 1,
                                                    .weights = d->weights,
                                                    .bias = bias,
                                                    .threshold = d->threshold}};
  int status = encoder_write(f, &stored);
  if (!status) status = firing_write(f, d->k, d->firing);
  arena_free(&arena);
  return status;
}

/* *out <- a text attribute; "": there is none. */
static int text_read(const struct h5_file *f, const char *name, struct arena *arena,
                     const char **out)
{
  int there;
  char *text;
  TRY(arena_alloc(arena, &text, MAX_TEXT, 1));
  TRY(h5_attribute_exists(f, GROUP, name, &there));
  if (there) TRY(h5_read_text(f, GROUP, name, text, MAX_TEXT));
  *out = text;
  return OK;
}

/* Open a dataset of k entries, of p values each, if it exists. p 0: one value each. */
static int values_open(const struct h5_file *f, const char *path, gidx k, gidx p,
                       struct h5_array *a, int *there)
{
  int rank = p ? 2 : 1;
  *a = (struct h5_array){0};
  TRY(h5_exists(f, path, there));
  if (!*there) return OK;
  TRY(h5_array_open(f, path, a));
  CHECK(a->rank == rank && a->shape[0] == k && (!p || a->shape[1] == p), ERR_INPUT,
        "'%s' of '%s' is not of %lld atoms" ANEW, path, f->path, (long long)k);
  return OK;
}

/* *out <- the values of a dataset; NULL: it does not exist. */
static int values_read(const struct h5_file *f, const char *path, gidx k, gidx p,
                       struct arena *arena, const float **out)
{
  struct h5_array a;
  float *values = NULL;
  int there;
  *out = NULL;
  int status = values_open(f, path, k, p, &a, &there);
  if (!status && there) status = arena_alloc(arena, &values, k * (p ? p : 1), sizeof *values);
  if (!status && there) status = h5_array_read(&a, 0, k, TYPE_F32, values);
  h5_array_close(&a);
  *out = values;
  return status;
}

int encoder_kind_find(const char *name)
{
  int i = ENCODER_KINDS - 1;
  while (i >= 0 && strcmp(encoder_names[i], name) != 0) i--;
  return i;
}

static int kind_read(const struct h5_file *f, struct encoder *e)
{
  gidx centered, rescaled;
  char name[32];
  TRY(h5_read_text(f, GROUP, "kind", name, sizeof name));
  int i = encoder_kind_find(name);
  CHECK(i >= 0, ERR_INPUT, "'%s' has an encoder '%s', which is not known", f->path, name);
  TRY(h5_read_long(f, GROUP, "centered", &centered));
  TRY(h5_read_long(f, GROUP, "rescaled", &rescaled));
  e->kind = (enum encoder_kind)i;
  e->centered = centered != 0;
  e->rescaled = rescaled != 0;
  return OK;
}

/* Read the thresholds of ENCODER_ACTIVE.  Its bias is 0. */
static int active_read(const struct h5_file *f, struct arena *arena, struct encoder *e)
{
  struct found_encoder *a = &e->active;
  struct h5_array cuts;
  float *bias;
  gidx relative;
  TRY(arena_alloc(arena, &bias, e->k, sizeof *bias));
  e->bias = bias;
  TRY(h5_read_long(f, GROUP, "relative", &relative));
  TRY(h5_read_real(f, GROUP, "floor", &a->floor));
  TRY(h5_array_open(f, GROUP "/cuts", &cuts));
  gidx n = cuts.rank == 1 ? cuts.shape[0] : 0;
  int fits = n >= 1 && n <= FIND_LOOKS + 1 && a->floor > 0 && isfinite(a->floor);
  int status = fits ? h5_array_read(&cuts, 0, n, TYPE_F32, a->threshold) : OK;
  h5_array_close(&cuts);
  a->relative = relative != 0;
  a->looks = (int)n - 1;
  for (gidx i = 0; i < n && fits; i++) fits = a->threshold[i] >= 0 && isfinite(a->threshold[i]);
  CHECK(status || fits, ERR_INPUT,
        "'%s' has an encoder of %lld thresholds that cannot be used" ANEW, f->path, (long long)n);
  return status;
}

static int vectors_read(const struct h5_file *f, struct arena *arena, struct encoder *e)
{
  if (e->kind == ENCODER_ACTIVE) return active_read(f, arena, e);
  int has_threshold = e->kind == ENCODER_JUMPRELU || e->kind == ENCODER_BATCHTOPK, has_weights;
  TRY(h5_exists(f, GROUP "/weights", &has_weights));
  TRY(values_read(f, GROUP "/bias", e->k, 0, arena, &e->bias));
  TRY(values_read(f, GROUP "/threshold", e->k, 0, arena, &e->threshold));
  CHECK(has_weights && e->bias && !has_threshold == !e->threshold, ERR_INPUT,
        "'%s' has an encoder of kind %s, and not the datasets of one: import it again", f->path,
        encoder_names[e->kind]);
  CHECK(e->kind != ENCODER_TOPK || (e->top >= 1 && e->top <= e->k), ERR_INPUT,
        "'%s' has an encoder of %d codes a row, and %d atoms" ANEW, f->path, e->top, e->k);
  return OK;
}

/* Read everything except the matrices. */
static int facts_read(const struct h5_file *f, struct arena *arena, struct stored_encoder *s,
                      int *there)
{
  struct h5_array atoms;
  gidx top;
  *s = (struct stored_encoder){0};
  TRY(h5_exists(f, GROUP, there));
  if (!*there) return OK;
  TRY(h5_array_open(f, "/atoms", &atoms));
  gidx k = atoms.shape[0], p = atoms.shape[1];
  int rank = atoms.rank;
  TRY(h5_array_close(&atoms));
  CHECK(rank == 2 && k <= INT32_MAX && p <= INT32_MAX, ERR_INPUT,
        "'%s' has an encoder, and atoms of rank %d" ANEW, f->path, rank);
  TRY(text_read(f, "program", arena, &s->program));
  TRY(text_read(f, "architecture", arena, &s->architecture));
  TRY(text_read(f, "settings", arena, &s->settings));
  TRY(text_read(f, "dtype", arena, &s->dtype));
  TRY(text_read(f, "threshold_dtype", arena, &s->threshold_dtype));
  TRY(h5_read_long(f, GROUP, "top", &top));
  s->encoder = (struct encoder){.k = (idx)k, .p = (idx)p, .top = (idx)imin(top, k)};
  TRY(values_read(f, GROUP "/norm", k, 0, arena, &s->encoder.norm));
  TRY(h5_attribute_exists(f, GROUP, "kind", &s->has_encoder));
  TRY(h5_attribute_exists(f, GROUP, "solved", &s->solved));
  if (!s->has_encoder) return OK;
  TRY(kind_read(f, &s->encoder));
  return vectors_read(f, arena, &s->encoder);
}

static const char *weights_of(const struct encoder *e)
{
  return e->kind == ENCODER_ACTIVE ? "/atoms" : GROUP "/weights";
}

static int decoder_check(const struct h5_file *f, const struct stored_encoder *s, int there)
{
  CHECK(!there == !s->encoder.norm, ERR_INPUT,
        "'%s' has only one of '/encoder/decoder' and '/encoder/norm': import it again", f->path);
  return OK;
}

int encoder_read(const struct h5_file *f, struct arena *arena, struct stored_encoder *s, int *there)
{
  struct encoder *e = &s->encoder;
  TRY(facts_read(f, arena, s, there));
  if (!*there) return OK;
  TRY(values_read(f, GROUP "/decoder", e->k, e->p, arena, &s->decoder));
  TRY(decoder_check(f, s, s->decoder != NULL));
  return s->has_encoder ? values_read(f, weights_of(e), e->k, e->p, arena, &e->weights) : OK;
}

/* Read and check everything except the values of the matrices. */
static int encoder_facts_read(const struct h5_file *f, struct arena *arena,
                              struct stored_encoder *s, int *there)
{
  const struct encoder *e = &s->encoder;
  struct h5_array decoder = {0}, weights = {0};
  int has, status = facts_read(f, arena, s, there);
  if (status || !*there) return status;
  status = values_open(f, GROUP "/decoder", e->k, e->p, &decoder, &has);
  if (!status) status = decoder_check(f, s, has);
  if (!status && s->has_encoder) status = values_open(f, weights_of(e), e->k, e->p, &weights, &has);
  h5_array_close(&decoder);
  h5_array_close(&weights);
  return status;
}

/* Check thresholds.  One of infinity means that the atom never has a code. */
static int thresholds_check(const float *threshold, gidx n, gidx first, const char *path)
{
  for (gidx a = 0; a < n; a++)
    CHECK(threshold[a] > -INFINITY, ERR_INPUT, "the threshold of atom %lld of '%s' is %g" ANEW,
          (long long)(first + a), path, (double)threshold[a]);
  return OK;
}

/* Check the values that are not in a matrix: bias, norms and thresholds. */
static int values_check(const struct encoder *e, const char *path)
{
  TRY(rows_check(e->bias, 1, e->k, 0, GROUP "/bias"));
  if (e->threshold) TRY(thresholds_check(e->threshold, e->k, 0, path));
  if (e->norm) TRY(rows_check(e->norm, 1, e->k, 0, GROUP "/norm"));
  for (idx a = 0; a < e->k; a++)
    CHECK(!e->norm || e->norm[a] > 0, ERR_INPUT, "atom %d of '%s' has the norm %g" ANEW, a, path,
          (double)e->norm[a]);
  return OK;
}

static int weights_read(void *self, idx first, idx count, float *out)
{
  TRY(h5_array_read(self, first, count, TYPE_F32, out));
  return OK;
}

/* Fail: the dictionary has no encoder (`there` is 0), or only the description of one.  The message
 * says what to do. */
static int encoder_missing(const struct dictionary_input *d, const struct stored_encoder *s,
                           int there)
{
  CHECK(there, ERR_INPUT,
        "'%s' has no encoder: `sagitta train` makes a dictionary that has one from rows, and "
        "`sagitta import` from an autoencoder's folder; with '--dictionary' codes are solved "
        "without an encoder",
        d->file);
  FAIL(ERR_INPUT,
       "'%s' was imported from %s, %s, which has no encoder of one product: give it as "
       "'--dictionary', and codes are solved",
       d->file, s->program, s->architecture);
}

int encoder_input_open(struct encoder_input *e, const struct dictionary_input *dictionary)
{
  const struct h5_file *f = &dictionary->input->h5;
  const struct atom_source *atoms = &dictionary->source;
  int there = 0;
  *e = (struct encoder_input){0};
  if (dictionary->input->format == INPUT_H5) TRY(facts_read(f, &e->arena, &e->stored, &there));
  if (!there || !e->stored.has_encoder) return encoder_missing(dictionary, &e->stored, there);
  const struct encoder *of = &e->stored.encoder;
  CHECK(atoms->d == 1 && atoms->k == of->k && atoms->p == of->p, ERR_INPUT,
        "'%s' is not what the encoder of its file decodes with: leave out the path", atoms->name);
  TRY(values_check(of, f->path));
  TRY(h5_array_open(f, weights_of(of), &e->array));
  const struct h5_array *a = &e->array;
  CHECK(a->rank == 2 && a->shape[0] == of->k && a->shape[1] == of->p, ERR_INPUT,
        "'%s' of '%s' is not of %d atoms" ANEW, weights_of(of), f->path, of->k);
  e->weights = (struct atom_source){.k = of->k,
                                    .d = 1,
                                    .p = of->p,
                                    .name = weights_of(of),
                                    .self = &e->array,
                                    .read = weights_read};
  return OK;
}

int encoder_dictionary_open(struct dictionary_input *d, const char *name)
{
  char path[4096];
  TRY(input_in_folder(name, "dictionary.h5", path));
  CHECK(strcmp(path, name) == 0 || input_is_there(path), ERR_INPUT,
        "'%s' has no dictionary.h5: if it is an autoencoder's folder, run `sagitta import %s "
        "--output dict/` and give '--encoder dict/'",
        name, name);
  CHECK(input_format_of(path) != INPUT_SAFETENSORS, ERR_INPUT,
        "'%s' has an autoencoder's weights alone: run `sagitta import FOLDER --output dict/` on "
        "the folder that has them, and give '--encoder dict/'",
        path);
  return dictionary_input_open(d, name);
}

void encoder_input_close(struct encoder_input *e)
{
  h5_array_close(&e->array);
  arena_free(&e->arena);
  *e = (struct encoder_input){0};
}

static int block_check(const struct verify *v, const struct value_block *b)
{
  if (!strcmp(b->array->object, GROUP "/threshold"))
    return thresholds_check(b->values, b->count * b->width, b->first, v->file->path);
  return rows_check(b->values, b->count, (idx)b->width, b->first, b->array->object);
}

int encoder_check(struct verify *v)
{
  struct stored_encoder s;
  struct arena arena = {0};
  int there;
  int status = encoder_facts_read(v->file, &arena, &s, &there);
  for (int i = 0; i < LENGTH(object_rows) && status == OK && there; i++) {
    int has;
    status = h5_exists(v->file, object_rows[i].path, &has);
    if (status == OK && has) status = check_blocks(v, object_rows[i].path, block_check);
  }
  for (idx a = 0; status == OK && there && s.encoder.norm && a < s.encoder.k; a++)
    if (!(s.encoder.norm[a] > 0))
      status = status_fail(ERR_INPUT, __FILE__, __LINE__, "atom %d has the norm %g" ANEW, a,
                           (double)s.encoder.norm[a]);
  if (status == OK && there)
    check_note(v, "encoder   of %s, %s: all values may be used", s.program, s.architecture);
  arena_free(&arena);
  return status;
}
