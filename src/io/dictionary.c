/* SPDX-License-Identifier: BSD-3-Clause
 * Dictionaries are read through inputs.c and written through matrix.c; the check of a dictionary.h5
 * tests that atoms have unit norm and frames are orthonormal. */
#include "io/dictionary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "io/encoder.h"
#include "io/firing.h"
#include "io/fit_history.h"
#include "io/mean.h"
#include "io/safetensors.h"
#include "io/seeds.h"
#include "io/finding.h"
#include "io/training.h"
#include "io/check.h"
#include "model/rows.h"

static const struct object_row object_rows[] = {
    {"/atoms", TYPE_F32, "K P|K d P", 1, "unit atoms or orthonormal frames"},
};
static const struct object_table objects = {object_rows, LENGTH(object_rows)};

static int atoms_read(void *self, idx first, idx count, float *out)
{
  TRY(input_array_read(self, first, count, out));
  return OK;
}

static int atoms_confirm(void *self)
{
  const struct input_array *s = self;
  TRY(h5_array_confirm(&s->h5, s->object));
  return OK;
}

/* Read the mean in float64, as export writes it. */
static int tensor_read(struct dictionary_input *f, const struct flat_file *file,
                       const struct tensor *t)
{
  idx p = f->source.p;
  CHECK(t->rank == 1 && t->shape[0] == p && !strcmp(t->dtype, "F64"), ERR_INPUT,
        "'mean' of '%s' is not a vector of %d F64, and is subtracted from rows: store it so, or "
        "name a file that has the atoms alone",
        f->file, p);
  f->mean = malloc((size_t)p * sizeof *f->mean);
  CHECK(f->mean, ERR_MEMORY, "cannot allocate %lld bytes", (long long)p * 8);
  return flat_bytes(file, file->values + t->begin, (size_t)p * sizeof *f->mean, f->mean);
}

/* Read the mean from the safetensors file that has the atoms. */
static int tensor_open(struct dictionary_input *f)
{
  struct flat_file file;
  struct tensor_table t;
  int status = tensors_open(&file, &t, f->file);
  const struct tensor *mean = status ? NULL : tensor_find(&t, "mean");
  if (mean) status = tensor_read(f, &file, mean);
  tensors_free(&t);
  int closed = flat_close(&file);
  TRY(status);
  return closed;
}

int nonnegative_write(const struct h5_file *f, int nonnegative)
{
  if (nonnegative) TRY(h5_attribute_long(f, "/", "nonnegative", 1));
  return OK;
}

int nonnegative_read(const struct h5_file *f, int *nonnegative)
{
  gidx value = 0;
  int there;
  TRY(h5_attribute_exists(f, "/", "nonnegative", &there));
  if (there) TRY(h5_read_long(f, "/", "nonnegative", &value));
  CHECK(value == 0 || value == 1, ERR_INPUT, "'%s' says nonnegative %lld, not 0 or 1", f->path,
        (long long)value);
  *nonnegative = (int)value;
  return OK;
}

/* *value <- a number of the fit that made the atoms; 0: the file does not have it. */
static int fitted_read(const struct h5_file *f, const char *name, idx *value)
{
  gidx wide = 0;
  int there;
  TRY(h5_attribute_exists(f, "/", name, &there));
  if (there) TRY(h5_read_long(f, "/", name, &wide));
  CHECK(wide >= 0 && wide <= INT32_MAX, ERR_INPUT, "'%s' says %lld %s" ANEW, f->path,
        (long long)wide, name);
  *value = (idx)wide;
  return OK;
}

/* *norm <- the norm of the median row of the fit; 0: the file does not have it. */
static int norm_read(const struct h5_file *f, real *norm)
{
  int there;
  TRY(h5_attribute_exists(f, "/", "median_norm", &there));
  if (there) TRY(h5_read_real(f, "/", "median_norm", norm));
  CHECK(!there || (*norm > 0 && isfinite(*norm)), ERR_INPUT, "'%s' says median_norm %g" ANEW,
        f->path, *norm);
  return OK;
}

int dictionary_input_open(struct dictionary_input *f, const char *name)
{
  *f = (struct dictionary_input){0};
  TRY(input_array_open(&f->input, name,
                       &(struct input_standard){.object = "/atoms", .file = "dictionary.h5"}));
  struct input_array *s = f->input;
  CHECK(
      s->rank == 2 || s->rank == 3, ERR_INPUT,
      "'%s' has %d dimensions, a dictionary has 2 (atoms, columns) or 3 (atoms, vectors, columns)",
      s->name, s->rank);
  gidx d = s->rank == 3 ? s->shape[1] : 1, p = s->shape[s->rank - 1];
  CHECK(s->shape[0] >= 1 && s->shape[0] <= INT32_MAX, ERR_INPUT,
        "'%s' has %lld atoms, none or too many" ANEW, s->name, (long long)s->shape[0]);
  CHECK(d >= 1 && d <= MAX_FRAME, ERR_INPUT,
        "'%s' has frames of %lld vectors, 1 to %d are possible", s->name, (long long)d, MAX_FRAME);
  CHECK(p >= 1 && p <= INT32_MAX, ERR_INPUT, "'%s' has %lld columns, none or too many" ANEW,
        s->name, (long long)p);
  f->source = (struct atom_source){.k = (idx)s->shape[0],
                                   .d = (idx)d,
                                   .p = (idx)p,
                                   .name = s->name,
                                   .self = s,
                                   .read = atoms_read};
  f->file = s->file;
  int is_ours = !s->object || !strcmp(s->object, "atoms"); /* export calls it so */
  if (s->format == INPUT_SAFETENSORS && is_ours) TRY(tensor_open(f));
  if (s->format != INPUT_H5) return mean_values_check(f->mean, f->source.p, f->file);
  int has_mean;
  gidx length;
  TRY(h5_exists(&s->h5, "/mean", &has_mean));
  if (has_mean) TRY(mean_read(&s->h5, p, &f->mean, &length));
  TRY(mean_values_check(f->mean, p, f->file));
  TRY(nonnegative_read(&s->h5, &f->nonnegative));
  CHECK(!f->nonnegative || d == 1, ERR_INPUT,
        "'%s' says that codes are nonnegative, and has frames of %lld vectors" ANEW, s->file,
        (long long)d);
  TRY(fitted_read(&s->h5, "rounds", &f->rounds));
  TRY(fitted_read(&s->h5, "top_s", &f->top_s));
  return norm_read(&s->h5, &f->norm);
}

void dictionary_input_concurrent(struct dictionary_input *f)
{
  f->source.is_shared = 1;
  f->source.unit = f->input->unit;
  h5_array_stream(&f->input->array);
  if (f->input->format == INPUT_H5) f->source.confirm = atoms_confirm;
}

void dictionary_input_close(struct dictionary_input *f)
{
  free(f->mean);
  input_array_close(&f->input);
  *f = (struct dictionary_input){0};
}

static int atoms_take(const struct dictionary_input *in, struct arena *arena, idx k, idx p,
                      float *atoms, const real **mean)
{
  const struct atom_source *source = &in->source;
  real *copy;
  CHECK(source->k == k && source->d == 1 && source->p == p, ERR_INPUT,
        "'%s' has %d atoms of %d columns, not %d of %d", source->name, source->k, source->p, k, p);
  TRY(source->read(source->self, 0, k, atoms));
  if (!in->mean || !mean) return OK;
  TRY(arena_alloc(arena, &copy, p, sizeof *copy));
  *mean = memcpy(copy, in->mean, (size_t)p * sizeof *copy);
  return OK;
}

int dictionary_read_all(const char *name, struct arena *arena, idx k, idx p, float *atoms,
                        const real **mean)
{
  struct dictionary_input in = {0};
  int status = dictionary_input_open(&in, name);
  if (!status) status = atoms_take(&in, arena, k, p, atoms, mean);
  dictionary_input_close(&in);
  return status;
}

int dictionary_output_create(struct matrix_output *f, const char *path, idx k, idx d, idx p)
{
  gidx atoms[2] = {k, p}, frames[3] = {k, d, p};
  TRY(matrix_output_create(f, path, &dictionary_kind, "/atoms", d > 1 ? 3 : 2,
                           d > 1 ? frames : atoms));
  return OK;
}

/* Check values of /atoms.  The atoms of a dictionary of another program need not have norm 1: they
 * may be scaled when they are used. */
static int block_check(const struct verify *v, const struct value_block *b)
{
  const struct h5_array *a = b->array;
  if (!v->is_ours) return rows_check(b->values, b->count, (idx)b->width, b->first, a->object);
  idx d = a->rank == 3 ? (idx)a->shape[1] : 1, p = (idx)(b->width / (d ? d : 1));
  CHECK(b->first + b->count <= INT32_MAX && d >= 1 && d <= MAX_FRAME, ERR_INPUT,
        "'%s' of '%s' has %lld atoms, frames of %d" ANEW, a->object, a->path,
        (long long)a->shape[0], d);
  TRY(atoms_check(b->values, (idx)b->count, d, p, (idx)b->first, a->object));
  return OK;
}

/* Check a dictionary file.  The mean of a supports file is checked here too: its dataset has the
 * same path, /mean. */
static int file_check(struct verify *v)
{
  int has_atoms, has_mean;
  TRY(h5_exists(v->file, "/atoms", &has_atoms));
  TRY(h5_exists(v->file, "/mean", &has_mean));
  if (has_atoms) {
    TRY(check_blocks(v, "/atoms", block_check));
    check_note(v, "atoms     all values are finite%s",
               v->is_ours ? ", atoms of unit norm, frames orthonormal" : "");
  }
  if (has_mean) TRY(mean_check(v));
  if (has_atoms && v->is_ours) TRY(encoder_check(v));
  if (has_atoms && v->is_ours) TRY(seeds_check(v));
  if (has_atoms && v->is_ours) TRY(firing_check(v));
  return OK;
}

const struct file_kind dictionary_kind = {"dictionary",
                                          {&objects, &mean_objects, &fit_objects, &encoder_objects,
                                           &train_objects, &find_objects, &seeds_objects,
                                           &firing_objects},
                                          file_check,
                                          NULL,
                                          seeds_show,
                                          seeds_json};
