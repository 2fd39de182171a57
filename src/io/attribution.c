/* SPDX-License-Identifier: BSD-3-Clause
 * Each pair has a list of its largest contributions, `top` at most.  Unused places at the end of a
 * list are not stored; the check tests the order of each list. */
#include "io/attribution.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/num.h"
#include "base/status.h"
#include "io/check.h"
#include "io/identity.h"
#include "io/inputs.h"

#define GROUP "/attribution"

enum { CHUNK_VALUES = 1 << 17, SLACK_BYTES = 8 << 20, PIECE = 1 << 12 };

static const struct object_row object_rows[] = {
    {GROUP "/indptr", TYPE_I64, "E+1", 1, "where each pair's list begins"},
    {GROUP "/indices", TYPE_I64, "M", 1, "source: position heads + head"},
    {GROUP "/data", TYPE_F32, "M", 1, "contribution of each source to the score, largest first"},
    {GROUP "/sum", TYPE_F64, "E", 1, "sum of all contributions of a pair"},
    {GROUP "/mean", TYPE_F64, "K", 1, "inner product of mean and atom"},
    {GROUP "/sequence", TYPE_I64, "N", 1, "sequence of each row"},
};
static const struct object_table objects = {object_rows, LENGTH(object_rows)};

static int attributes_write(const struct h5_file *h5, const struct attribution_shape *s)
{
  const gidx shape[] = {s->pairs, s->longest * s->heads};
  TRY(h5_attribute_text(h5, GROUP, "encoding-type", "csr_matrix"));
  TRY(h5_attribute_text(h5, GROUP, "encoding-version", "0.1.0"));
  TRY(h5_attribute_longs(h5, GROUP, "shape", 2, shape));
  TRY(h5_attribute_long(h5, GROUP, "heads", s->heads));
  return h5_attribute_long(h5, GROUP, "top", s->top);
}

int attribution_output_create(struct attribution_output *f, const char *path,
                              const struct attribution_shape *shape)
{
  const gidx grows = H5_GROWS, zero = 0, starts = shape->pairs + 1;
  *f = (struct attribution_output){.shape = *shape};
  double bytes = 12.0 * (double)shape->pairs * shape->top + 16.0 * (double)shape->pairs +
                 8.0 * ((double)shape->n + shape->k);
  CHECK(bytes < 0x1p60, ERR_CREATE, "'%s' would have %.3g bytes: lower --top", path, bytes);
  TRY(result_create(&f->result, path, &attribution_kind, (gidx)(bytes * 1.001) + SLACK_BYTES));
  const struct h5_file *h5 = &f->result.h5;
  TRY(object_create(h5, GROUP "/indptr", 1, &starts, 0, &f->indptr));
  TRY(object_create(h5, GROUP "/indices", 1, &grows, CHUNK_VALUES, &f->indices));
  TRY(object_create(h5, GROUP "/data", 1, &grows, CHUNK_VALUES, &f->data));
  TRY(object_create(h5, GROUP "/sum", 1, &grows, CHUNK_VALUES, &f->sum));
  TRY(object_create(h5, GROUP "/sequence", 1, &shape->n, 0, &f->sequence));
  TRY(attributes_write(h5, shape));
  return h5_array_write(&f->indptr, 0, 1, &zero);
}

int attribution_output_write(struct attribution_output *f, gidx rows, const gidx *sequence,
                             const real *sum, const struct top_rows *top)
{
  gidx places = (gidx)top->k * top->r, count = 0, begun = f->indices.next;
  TRY(array_reserve(&f->start, &f->start_room, top->k, sizeof *f->start));
  TRY(array_reserve(&f->column, &f->column_room, places, sizeof *f->column));
  TRY(array_reserve(&f->value, &f->value_room, places, sizeof *f->value));
  for (gidx i = 0; i < places; i++) {
    if (top->row[i] >= 0) {
      f->column[count] = top->row[i];
      f->value[count++] = top->code[i];
    }
    if ((i + 1) % top->r == 0) f->start[i / top->r] = begun + count;
  }
  TRY(h5_array_write(&f->sequence, f->sequence.next, rows, sequence));
  TRY(h5_array_write(&f->indptr, f->indptr.next, top->k, f->start));
  TRY(h5_array_write(&f->sum, f->sum.next, top->k, sum));
  TRY(h5_array_write(&f->indices, begun, count, f->column));
  return h5_array_write(&f->data, begun, count, f->value);
}

static struct h5_array *array_of(struct attribution_output *f, int i)
{
  struct h5_array *const all[] = {&f->indptr, &f->indices, &f->data, &f->sum, &f->sequence};
  return i < LENGTH(all) ? all[i] : NULL;
}

int attribution_output_finish(struct attribution_output *f, const struct attribution_ending *e,
                              const struct run_fact *facts, int n_facts)
{
  const struct h5_file *h5 = &f->result.h5;
  for (int i = 0; array_of(f, i); i++) TRY(h5_array_close(array_of(f, i)));
  TRY(h5_attribute_long(h5, GROUP, "compared", e->compared));
  TRY(h5_attribute_long(h5, GROUP, "beyond", e->beyond));
  TRY(h5_attribute_real(h5, GROUP, "error", e->error));
  TRY(object_write_vector(h5, GROUP "/mean", f->shape.k, e->mean));
  TRY(identity_write(h5, INPUTS_GROUP, &e->inputs));
  return result_publish(&f->result, facts, n_facts);
}

void attribution_output_close(struct attribution_output *f)
{
  for (int i = 0; array_of(f, i); i++) h5_array_close(array_of(f, i));
  free(f->start);
  free(f->column);
  free(f->value);
}

/* Open an array, which must have one dimension and this type. */
static int vector_open(struct attribution_input *f, const char *object, enum h5_type type,
                       struct h5_array *a)
{
  TRY(h5_array_open(&f->h5, object, a));
  CHECK(a->rank == 1 && a->type == type, ERR_INPUT,
        "'%s' of '%s' is not what `sagitta attribute` writes", object, f->name);
  return OK;
}

static int arrays_open(struct attribution_input *f)
{
  struct h5_array mean = {0};
  TRY(vector_open(f, GROUP "/indptr", TYPE_I64, &f->indptr));
  TRY(vector_open(f, GROUP "/indices", TYPE_I64, &f->indices));
  TRY(vector_open(f, GROUP "/data", TYPE_F32, &f->data));
  TRY(vector_open(f, GROUP "/sum", TYPE_F64, &f->sum));
  TRY(vector_open(f, GROUP "/sequence", TYPE_I64, &f->sequence));
  int status = vector_open(f, GROUP "/mean", TYPE_F64, &mean);
  gidx k = status ? 0 : mean.shape[0];
  h5_array_close(&mean);
  TRY(status);
  f->n = f->sequence.shape[0];
  f->pairs = f->sum.shape[0];
  f->k = (idx)k;
  CHECK(f->indptr.shape[0] == f->pairs + 1 && f->indices.shape[0] == f->data.shape[0], ERR_INPUT,
        "'%s' has lists of %lld pairs and sums of %lld pairs" ANEW, f->name,
        (long long)f->indptr.shape[0] - 1, (long long)f->pairs);
  return OK;
}

int attribution_input_open(struct attribution_input *f, const char *name)
{
  static const struct input_standard standard = {.object = GROUP, .file = "attribution.h5"};
  const char *object;
  gidx heads, top;
  int there;
  *f = (struct attribution_input){0};
  TRY(input_split(name, &standard, &f->name, &object));
  TRY(h5_open(&f->h5, f->name));
  f->is_open = 1;
  TRY(h5_exists(&f->h5, GROUP, &there));
  CHECK(there, ERR_INPUT, "'%s' has no '%s': give what `sagitta attribute` wrote", f->name, GROUP);
  TRY(h5_read_long(&f->h5, GROUP, "heads", &heads));
  TRY(h5_read_long(&f->h5, GROUP, "top", &top));
  CHECK(heads >= 1 && heads <= INT32_MAX && top >= 1 && top <= MAX_TOP_ROWS, ERR_INPUT,
        "'%s' says %lld heads and lists of %lld sources" ANEW, f->name, (long long)heads,
        (long long)top);
  f->heads = (idx)heads, f->top = (idx)top;
  TRY(arrays_open(f));
  f->source = malloc((size_t)top * sizeof *f->source);
  f->value = malloc((size_t)top * sizeof *f->value);
  CHECK(f->source && f->value, ERR_MEMORY, "cannot allocate a list of %lld sources",
        (long long)top);
  return identity_read(&f->h5, INPUTS_GROUP, &f->inputs);
}

void attribution_input_close(struct attribution_input *f)
{
  struct h5_array *const all[] = {&f->indptr, &f->indices, &f->data, &f->sum, &f->sequence};
  for (int i = 0; i < LENGTH(all); i++) h5_array_close(all[i]);
  h5_close(&f->h5);
  free(f->name);
  free(f->source);
  free(f->value);
  *f = (struct attribution_input){0};
}

int attribution_input_sequence(const struct attribution_input *f, gidx row, gidx *sequence)
{
  TRY(h5_array_read(&f->sequence, row, 1, TYPE_I64, sequence));
  CHECK(*sequence >= 0, ERR_INPUT, "row %lld of '%s' is of sequence %lld" ANEW, (long long)row,
        f->name, (long long)*sequence);
  return OK;
}

int attribution_input_list(const struct attribution_input *f, gidx pair, idx most, gidx **source,
                           float **value, idx *n, real *sum)
{
  gidx start[2];
  TRY(h5_array_read(&f->indptr, pair, 2, TYPE_I64, start));
  TRY(h5_array_read(&f->sum, pair, 1, TYPE_F64, sum));
  gidx length = start[1] - start[0];
  CHECK(start[0] >= 0 && length >= 0 && length <= f->top && start[1] <= f->indices.shape[0],
        ERR_INPUT, "pair %lld of '%s' has sources %lld .. %lld" ANEW, (long long)pair, f->name,
        (long long)start[0], (long long)start[1] - 1);
  *n = (idx)imin(length, most);
  *source = f->source, *value = f->value;
  if (!*n) return OK;
  TRY(h5_array_read(&f->indices, start[0], *n, TYPE_I64, f->source));
  for (idx i = 0; i < *n; i++)
    CHECK(f->source[i] >= 0, ERR_INPUT, "pair %lld of '%s' has source %lld" ANEW, (long long)pair,
          f->name, (long long)f->source[i]);
  return h5_array_read(&f->data, start[0], *n, TYPE_F32, f->value);
}

/* The state of a check. */
struct look {
  struct h5_array indptr, indices, data;
  gidx columns, top;
  gidx start[PIECE + 1];
  gidx *column;
  float *value;
  gidx column_room, value_room;
};

static int list_check(const struct look *l, gidx pair, gidx from, gidx end)
{
  for (gidx i = from; i < end; i++) {
    CHECK(l->column[i] >= 0 && l->column[i] < l->columns, ERR_INPUT,
          "pair %lld: source %lld is not in 0 .. %lld" ANEW, (long long)pair,
          (long long)l->column[i], (long long)l->columns - 1);
    CHECK(isfinite(l->value[i]) && l->value[i] != 0, ERR_INPUT,
          "pair %lld: the contribution of source %lld is %g" ANEW, (long long)pair,
          (long long)l->column[i], (double)l->value[i]);
    CHECK(i == from || top_before(l->value[i - 1], l->column[i - 1], l->value[i], l->column[i]),
          ERR_INPUT, "pair %lld: source %lld comes after a weaker one" ANEW, (long long)pair,
          (long long)l->column[i]);
  }
  return OK;
}

static int piece_check(struct look *l, gidx first, gidx n)
{
  TRY(h5_array_read(&l->indptr, first, n + 1, TYPE_I64, l->start));
  for (gidx i = 0; i < n; i++) {
    gidx length = l->start[i + 1] - l->start[i];
    CHECK(l->start[0] >= 0 && length >= 0 && length <= l->top, ERR_INPUT,
          "pair %lld has %lld sources, the file says 0 to %lld" ANEW, (long long)(first + i),
          (long long)length, (long long)l->top);
  }
  gidx begin = l->start[0], count = l->start[n] - begin;
  CHECK(l->start[n] <= l->indices.shape[0], ERR_INPUT, "pair %lld ends at %lld of %lld" ANEW,
        (long long)(first + n - 1), (long long)l->start[n], (long long)l->indices.shape[0]);
  TRY(array_reserve(&l->column, &l->column_room, count, sizeof *l->column));
  TRY(array_reserve(&l->value, &l->value_room, count, sizeof *l->value));
  if (count) TRY(h5_array_read(&l->indices, begin, count, TYPE_I64, l->column));
  if (count) TRY(h5_array_read(&l->data, begin, count, TYPE_F32, l->value));
  for (gidx i = 0; i < n; i++)
    TRY(list_check(l, first + i, l->start[i] - begin, l->start[i + 1] - begin));
  return OK;
}

static int lists_check(const struct verify *v, struct look *l)
{
  gidx shape[2], heads;
  TRY(h5_read_longs(v->file, GROUP, "shape", 2, shape));
  TRY(h5_read_long(v->file, GROUP, "heads", &heads));
  TRY(h5_read_long(v->file, GROUP, "top", &l->top));
  TRY(h5_array_open(v->file, GROUP "/indptr", &l->indptr));
  TRY(h5_array_open(v->file, GROUP "/indices", &l->indices));
  TRY(h5_array_open(v->file, GROUP "/data", &l->data));
  gidx pairs = l->indptr.shape[0] - 1;
  l->columns = shape[1];
  CHECK(shape[0] == pairs && heads >= 1 && shape[1] % heads == 0 && l->top >= 1 &&
            l->top <= MAX_TOP_ROWS,
        ERR_INPUT, "'%s' says shape %lld x %lld, heads %lld, top %lld, and has %lld pairs" ANEW,
        GROUP, (long long)shape[0], (long long)shape[1], (long long)heads, (long long)l->top,
        (long long)pairs);
  for (gidx first = 0; first < pairs; first += PIECE)
    TRY(piece_check(l, first, imin(PIECE, pairs - first)));
  TRY(h5_array_read(&l->indptr, pairs, 1, TYPE_I64, l->start));
  CHECK(l->start[0] == l->indices.shape[0], ERR_INPUT, "the lists end at %lld of %lld" ANEW,
        (long long)l->start[0], (long long)l->indices.shape[0]);
  return OK;
}

static int file_check(struct verify *v)
{
  struct look *l;
  if (!v->is_ours || strcmp(v->kind, attribution_kind.name) != 0) return OK;
  TRY(struct_alloc(&l, sizeof *l));
  int status = lists_check(v, l);
  h5_array_close(&l->indptr);
  h5_array_close(&l->indices);
  h5_array_close(&l->data);
  free(l->column);
  free(l->value);
  free(l);
  TRY(status);
  check_note(v, "sources   in range, each list in order");
  return OK;
}

const struct file_kind attribution_kind = {"attribution", {&objects}, file_check, NULL, NULL, NULL};
