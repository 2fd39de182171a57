/* SPDX-License-Identifier: BSD-3-Clause
 * Rows are read through inputs.c and written through matrix.c; checking looks for values that are
 * not finite. */
#include "io/rows.h"

#include "base/status.h"
#include "io/check.h"

static const struct object_row object_rows[] = {
    {"/rows", TYPE_F32, "N P", 1, "activations, a row per token or sample"},
    {"/planted/atoms", TYPE_I32, "N s", 0, "planted data: the atoms behind each row"},
    {"/planted/codes", TYPE_F32, "N s|N s d", 0, "planted data: their codes"},
};
static const struct object_table objects = {object_rows, LENGTH(object_rows)};

static int rows_read(void *self, gidx first, idx count, float *out)
{
  TRY(input_array_read(self, first, count, out));
  return OK;
}

int rows_input_open(struct rows_input *f, const char *name)
{
  *f = (struct rows_input){0};
  TRY(input_array_open(&f->input, name, &(struct input_standard){"/rows", "rows.h5"}));
  struct input_array *s = f->input;
  h5_array_stream(&s->array);
  CHECK(s->rank == 2, ERR_INPUT, "'%s' has %d dimensions, rows have 2: samples, columns", s->name,
        s->rank);
  CHECK(s->shape[1] >= 1 && s->shape[1] <= INT32_MAX, ERR_INPUT, "'%s' has %lld columns", s->name,
        (long long)s->shape[1]);
  f->source = (struct row_source){.n = s->shape[0],
                                  .p = (idx)s->shape[1],
                                  .name = s->name,
                                  .row_bytes = (double)s->shape[1] * input_array_value_bytes(s),
                                  .self = s,
                                  .read = rows_read};
  f->file = s->file;
  return OK;
}

void rows_input_close(struct rows_input *f)
{
  input_array_close(&f->input);
  *f = (struct rows_input){0};
}

int rows_output_create(struct matrix_output *f, const char *path, gidx n, idx p)
{
  gidx shape[2] = {n, p};
  TRY(matrix_output_create(f, path, &rows_kind, "/rows", 2, shape));
  return OK;
}

static int block_check(const struct verify *v, const struct value_block *b)
{
  (void)v;
  TRY(rows_check(b->values, b->count, (idx)b->width, b->first, b->array->object));
  return OK;
}

static int file_check(struct verify *v)
{
  int there;
  TRY(h5_exists(v->file, "/rows", &there));
  if (!there) return OK;
  TRY(check_blocks(v, "/rows", block_check));
  check_note(v, "rows      all values are finite");
  return OK;
}

const struct file_kind rows_kind = {"rows", {&objects}, file_check, NULL, NULL};
