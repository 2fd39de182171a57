/* SPDX-License-Identifier: BSD-3-Clause
 * One pass over the values, converted to float32 as a job converts them. */
#include "io/inspect_npy.h"

#include <math.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "base/text.h"
#include "io/inspect.h"
#include "io/npy.h"
#include "io/safetensors.h"
#include "io/schema.h"

enum { BLOCK_VALUES = 1 << 18, VALUES_SHOWN = 6 };

/* The results of a pass over all rows; a row is an entry of the first dimension. */
struct survey {
  gidx rows, width; /* width: values of a row */
  gidx bad, bad_at; /* number of values that are not finite, and index of the first of them */
  real least, most; /* norms of rows */
  float first[VALUES_SHOWN];
};

static void row_survey(struct survey *s, gidx row, const float *x)
{
  real squares = 0;
  for (gidx i = 0; i < s->width; i++) {
    if (!isfinite(x[i]) && !s->bad++) s->bad_at = row * s->width + i;
    squares = fma(x[i], x[i], squares);
    if (row == 0 && i < VALUES_SHOWN) s->first[i] = x[i];
  }
  real norm = sqrt(squares);
  s->least = row ? fmin(s->least, norm) : norm;
  s->most = row ? fmax(s->most, norm) : norm;
}

static int values_survey(const struct flat_file *f, struct survey *s)
{
  struct arena arena = {0};
  float *block;
  gidx most = imax(1, BLOCK_VALUES / imax(1, s->width));
  int status = arena_alloc(&arena, &block, most * s->width, sizeof *block);
  for (gidx at = 0; at < s->rows && !status; at += most) {
    gidx n = imin(most, s->rows - at);
    status = flat_read(f, at, n, block);
    for (gidx i = 0; i < n && !status; i++) row_survey(s, at + i, block + i * s->width);
  }
  arena_free(&arena);
  return status;
}

static void row_print(const char *name, const char *text, FILE *out)
{
  text_print(out, "  %-*s %s\n", NAME_WIDTH, name, text);
}

/* How --rows and --dictionary interpret a shape. */
static void meaning_text(int rank, const gidx *n, char *text, size_t capacity)
{
  snprintf(text, capacity,
           "neither rows nor a dictionary: rows are a matrix, a row per activation vector");
  if (rank == 2)
    snprintf(text, capacity, "as --rows %lld rows of %lld columns", (long long)n[0],
             (long long)n[1]);
  if (rank == 3)
    snprintf(text, capacity, "as --dictionary %lld frames of %lld vectors of %lld columns",
             (long long)n[0], (long long)n[1], (long long)n[2]);
}

static void survey_print(const struct survey *s, FILE *out)
{
  char text[256];
  int used = 0;
  if (s->bad)
    snprintf(text, sizeof text,
             "no: %lld values are not, the first in row %lld, column %lld: a job refuses them",
             (long long)s->bad, (long long)(s->bad_at / s->width),
             (long long)(s->bad_at % s->width));
  row_print("finite", s->bad ? text : "yes, every value", out);
  snprintf(text, sizeof text, "%.6g to %.6g", s->least, s->most);
  row_print("norms of rows", text, out);
  for (gidx i = 0; i < s->width && i < VALUES_SHOWN; i++)
    used += snprintf(text + used, sizeof text - (size_t)used, "%s%.6g", i ? " " : "", s->first[i]);
  snprintf(text + used, sizeof text - (size_t)used, "%s", s->width > VALUES_SHOWN ? " ..." : "");
  row_print("row 0", text, out);
}

static void shape_text(int rank, const gidx *n, char *text, size_t capacity)
{
  size_t used = 0;
  snprintf(text, capacity, "%d dimensions", rank);
  for (int i = 0; i < rank && rank <= 3; i++)
    used +=
        (size_t)snprintf(text + used, capacity - used, "%s%lld", i ? " x " : "", (long long)n[i]);
}

/* *s <- a survey of the values.  *is_surveyed <- 0: the array is empty, or its shape is not
 * supported. */
static int array_survey(const struct flat_file *f, struct survey *s, int *is_surveyed)
{
  int is_known = f->rank >= 1 && f->rank <= LENGTH(f->shape);
  *s = (struct survey){.rows = f->rank ? f->shape[0] : 0, .width = 1};
  for (int i = 1; i < f->rank && is_known; i++) s->width *= f->shape[i];
  *is_surveyed = is_known && s->rows && s->width;
  return *is_surveyed ? values_survey(f, s) : OK;
}

static int contents_print(const struct flat_file *f, FILE *out)
{
  char text[256], size[32];
  struct survey s;
  int is_surveyed;
  size_print((double)f->input->facts.size, size, sizeof size);
  text_print(out, "%s: NumPy file, %s\n\n", f->path, size);
  shape_text(f->rank, f->shape, text, sizeof text);
  row_print("shape", text, out);
  row_print("type", type_name(f->type), out);
  meaning_text(f->rank, f->shape, text, sizeof text);
  row_print("meaning", text, out);
  TRY(array_survey(f, &s, &is_surveyed));
  if (is_surveyed) survey_print(&s, out);
  return OK;
}

/* Add the shape of an array (null: not supported), and how a job can use the array. */
static void array_json(int rank, const gidx *n, struct json *j)
{
  char text[256];
  if (rank > 3)
    json_text(j, "shape", NULL);
  else {
    json_array(j, "shape");
    for (int i = 0; i < rank; i++) json_long(j, NULL, n[i]);
    json_end(j);
  }
  json_long(j, "dimensions", rank);
  meaning_text(rank, n, text, sizeof text);
  json_text(j, "meaning", text);
}

static void head_json(const struct flat_file *f, const char *type, struct json *j)
{
  json_text(j, "file", f->path);
  json_text(j, "type", type);
  json_long(j, "bytes", f->input->facts.size);
}

static void survey_json(const struct survey *s, struct json *j)
{
  json_long(j, "not_finite", s->bad);
  json_array(j, "first_not_finite");
  if (s->bad) json_long(j, NULL, s->bad_at / s->width);
  if (s->bad) json_long(j, NULL, s->bad_at % s->width);
  json_end(j);
  json_real(j, "least_norm", s->least);
  json_real(j, "largest_norm", s->most);
  json_array(j, "row_0");
  for (gidx i = 0; i < s->width && i < VALUES_SHOWN; i++) json_real(j, NULL, s->first[i]);
  json_end(j);
}

static int entries_json(const struct flat_file *f, struct json *j)
{
  struct survey s;
  int is_surveyed;
  head_json(f, "npy", j);
  json_text(j, "values", type_name(f->type));
  array_json(f->rank, f->shape, j);
  TRY(array_survey(f, &s, &is_surveyed));
  if (is_surveyed) survey_json(&s, j);
  return OK;
}

int npy_json(const char *path, struct json *j)
{
  struct flat_file f;
  int status = npy_open(&f, path);
  if (!status) status = entries_json(&f, j);
  int ended = flat_close(&f);
  return status ? status : ended;
}

int npy_inspect(const char *path, FILE *out)
{
  struct flat_file f;
  int status = npy_open(&f, path);
  if (!status) status = contents_print(&f, out);
  int ended = flat_close(&f);
  if (!status) status = ended;
  CHECK(status || !ferror(out), ERR_IO, "cannot write the page about '%s'", path);
  return status;
}

static void tensor_print(const struct tensor *t, FILE *out)
{
  enum h5_type type;
  char shape[128], meaning[256];
  shape_text(t->rank, t->shape, shape, sizeof shape);
  meaning_text(t->rank, t->shape, meaning, sizeof meaning);
  text_print(out, "  %-*s %-18s %-10s %s\n", NAME_WIDTH, t->name, shape, t->dtype,
             tensor_type(t, &type) ? meaning : "a type that is not read");
}

int tensors_inspect(const char *path, FILE *out)
{
  struct flat_file f;
  struct tensor_table t;
  char size[32];
  int status = tensors_open(&f, &t, path);
  if (!status) {
    size_print((double)f.input->facts.size, size, sizeof size);
    text_print(out, "%s: safetensors file, %s\n\n", path, size);
    text_print(out, "  %-*s %-18s %-10s\n", NAME_WIDTH, "tensor", "shape", "type");
  }
  for (gidx i = 0; i < t.count && !status; i++) tensor_print(&t.list[i], out);
  tensors_free(&t);
  int ended = flat_close(&f);
  if (!status) status = ended;
  CHECK(status || !ferror(out), ERR_IO, "cannot write the page about '%s'", path);
  return status;
}

int tensors_json(const char *path, struct json *j)
{
  struct flat_file f;
  struct tensor_table t;
  enum h5_type type;
  int status = tensors_open(&f, &t, path);
  if (!status) head_json(&f, "safetensors", j);
  json_array(j, "tensors");
  for (gidx i = 0; i < t.count && !status; i++) {
    json_object(j, NULL);
    json_text(j, "name", t.list[i].name);
    json_text(j, "values", t.list[i].dtype);
    array_json(t.list[i].rank, t.list[i].shape, j);
    json_flag(j, "readable", tensor_type(&t.list[i], &type));
    json_end(j);
  }
  json_end(j);
  tensors_free(&t);
  int ended = flat_close(&f);
  return status ? status : ended;
}
