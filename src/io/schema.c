/* SPDX-License-Identifier: BSD-3-Clause
 * The table, and shapes written as letters. */
#include "io/schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

const struct object_row object_rows[] = {
    {"rows", "/rows", TYPE_F32, "N P", 1, "activations, a row per token or sample"},
    {"rows", "/planted/atoms", TYPE_I32, "N s", 0, "planted data: the atoms behind each row"},
    {"rows", "/planted/codes", TYPE_F32, "N s|N s d", 0, "planted data: their codes"},
    {"dictionary", "/atoms", TYPE_F32, "K P|K d P", 1, "unit atoms or orthonormal frames"},
    {"dictionary", "/mean", TYPE_F64, "P", 0, "subtracted from rows before anything else"},
    {"dictionary", "/fit/history", TYPE_F64, "S+1 H", 0, "the start and every sweep of refit"},
    {"dictionary", "/fit/accepted", TYPE_I32, "K", 0, "1: the last sweep's step was accepted"},
    {"dictionary", "/fit/status", TYPE_I32, "K", 0, "of the last sweep's last solve"},
    {"dictionary", "/fit/retries", TYPE_I32, "K", 0, "its retries with larger ridges"},
    {"dictionary", "/fit/ridge", TYPE_F64, "K", 0, "the ridge that it ended with"},
    {"dictionary", "/fit/log_det_hessian", TYPE_F64, "K", 0, "log determinant of its system"},
    {"dictionary", "/fit/log_det_mantissa", TYPE_F64, "K", 0, "the determinant as a pair"},
    {"dictionary", "/fit/log_det_exponent", TYPE_I64, "K", 0, "the determinant as a pair"},
    {"supports", "/supports/indptr", TYPE_I64, "N+1", 1, "where each row's support begins"},
    {"supports", "/supports/indices", TYPE_I32, "nnz", 1, "atoms, in selection order"},
    {"supports", "/supports/data", TYPE_F32, "nnz", 1, "code if codes were solved, else score"},
    {"supports", "/supports/score", TYPE_F32, "nnz", 1, "signed score of the round that chose"},
    {"supports", "/supports/codes", TYPE_F32, "nnz d", 0, "code blocks of frames"},
    {"supports", "/metrics/density", TYPE_I64, "K", 1, "rows in whose support the atom is"},
    {"supports", "/metrics/density_histogram", TYPE_I64, "11", 1, "atoms by decade of density"},
    {"supports", "/mean", TYPE_F64, "P", 0, "subtracted from rows before anything else"},
    {"classes", "/color", TYPE_I32, "K", 1, "class of each atom; -1: in no row's support"},
    {"classes", "/class_offsets", TYPE_I64, "C+1", 1, "where the atoms of each class begin"},
    {"classes", "/class_atoms", TYPE_I32, "placed", 1, "atoms of each class, ascending"},
    {"systems", "/systems/atom", TYPE_I32, "B", 1, "atom of each system"},
    {"systems", "/systems/color", TYPE_I32, "B", 1, "its colour class"},
    {"systems", "/systems/atom_offsets", TYPE_I64, "B+1", 1, "where each system's rows begin"},
    {"systems", "/systems/row", TYPE_I64, "n", 0, "global row of each block, ascending"},
    {"systems", "/systems/row_dims", TYPE_I32, "B", 1, "d, size of the row blocks"},
    {"systems", "/systems/border_dims", TYPE_I32, "B", 1, "k, size of the border"},
    {"systems", "/systems/D_blocks", TYPE_F64, "ndd", 1, "row blocks H_i, without ridge"},
    {"systems", "/systems/B_blocks", TYPE_F64, "ndk", 1, "couplings B_i of rows and border"},
    {"systems", "/systems/g_t", TYPE_F64, "nd", 1, "gradient of the rows"},
    {"systems", "/systems/hbb", TYPE_F64, "kk", 1, "borders C, without ridge"},
    {"systems", "/systems/g_b", TYPE_F64, "k", 1, "gradient of the borders"},
    {"solutions", "/solutions/delta_t", TYPE_F64, "nd", 1, "steps of the rows"},
    {"solutions", "/solutions/delta_beta", TYPE_F64, "k", 1, "steps of the borders"},
    {"solutions", "/solutions/log_det_hessian", TYPE_F64, "B", 1, "NaN where a system failed"},
    {"solutions", "/solutions/log_det_mantissa", TYPE_F64, "B", 1, "the determinant is m 2^e"},
    {"solutions", "/solutions/log_det_exponent", TYPE_I64, "B", 1, "its e"},
    {"solutions", "/solutions/status", TYPE_I32, "B", 1, "0 ok, 1 row, 2 border, 3 not finite"},
    {"solutions", "/solutions/failed_at", TYPE_I64, "B", 1, "row, pivot or entry; -1 where ok"},
    {"solutions", "/solutions/suggested_bump", TYPE_F64, "B", 1, "what to add to the ridges"},
    {"solutions", "/solutions/ridge_t", TYPE_F64, "B", 1, "ridge of the rows in the last try"},
    {"solutions", "/solutions/ridge_beta", TYPE_F64, "B", 1, "ridge of the border in it"},
    {"solutions", "/solutions/retries", TYPE_I32, "B", 1, "tries after the first"},
    {"terminal", "/terminal/border", TYPE_I64, "K+1", 1, "where each atom's borders begin"},
    {"terminal", "/terminal/covariance_blocks", TYPE_F64, "K b b", 0, "phi S^-1 of each atom"},
    {"terminal", "/terminal/cross_pair", TYPE_I32, "M 2", 0, "strongest pairs of atoms"},
    {"terminal", "/terminal/cross_strength", TYPE_F64, "M", 0, "Frobenius norms of their blocks"},
    {"terminal", "/terminal/cross_blocks", TYPE_F64, "M b b", 0, "their blocks of phi S^-1"},
    {"terminal", "/run/terminal/spectrum", TYPE_F64, "n", 0, "eigenvalues of S, ascending"},
    {"terminal", "/run/terminal/identifiability/eigenvalue", TYPE_F64, "D", 0, "weak directions"},
    {"terminal", "/run/terminal/identifiability/atoms", TYPE_I32, "D 8", 0, "who carries them"},
    {"terminal", "/run/terminal/identifiability/share", TYPE_F64, "D 8", 0, "and their shares"},
    {"terminal", "/run/terminal/duplicates/pair", TYPE_I32, "L 2", 0, "near duplicates"},
    {"terminal", "/run/terminal/duplicates/cosine", TYPE_F64, "L", 0, "their cosines"},
};
const int object_count = LENGTH(object_rows);

const struct object_row *object_find(const char *kind, const char *path)
{
  for (int i = 0; i < object_count; i++)
    if (strcmp(object_rows[i].path, path) == 0 && (!kind || !strcmp(object_rows[i].kind, kind)))
      return &object_rows[i];
  return NULL;
}

const char *type_name(enum h5_type type)
{
  static const char *const names[] = {"int32",   "int64",    "float32",     "float64",
                                      "float16", "bfloat16", "another type"};
  return names[type];
}

void metric_formula_name(const char *metric, char *out, int room)
{
  snprintf(out, (size_t)room, "%s_formula", metric);
}

int dimension_bind(struct dimensions *d, const char *name, gidx value, const char *object)
{
  for (int i = 0; i < d->count; i++) {
    const struct dimension *known = &d->list[i];
    if (strcmp(known->name, name) != 0) continue;
    CHECK(known->value == value, ERR_INPUT, "'%s' has %s = %lld, '%s' has %lld", object, name,
          (long long)value, known->object, (long long)known->value);
    return OK;
  }
  CHECK(d->count < LENGTH(d->list) && strlen(name) < sizeof d->list[0].name, ERR_INTERNAL,
        "too many dimensions");
  struct dimension *new = &d->list[d->count++];
  *new = (struct dimension){.value = value, .object = object};
  strcpy(new->name, name);
  return OK;
}

gidx dimension_value(const struct dimensions *d, const char *name)
{
  for (int i = 0; i < d->count; i++)
    if (strcmp(d->list[i].name, name) == 0) return d->list[i].value;
  return -1;
}

static int words_count(const char *words)
{
  int count = 1;
  for (; *words && *words != '|'; words++) count += *words == ' ';
  return count;
}

/* The alternative of the right rank; NULL when none is. */
static const char *alternative(const char *shape, int rank)
{
  while (shape && words_count(shape) != rank) {
    shape = strchr(shape, '|');
    shape += shape != NULL;
  }
  return shape;
}

int object_check_shape(const struct object_row *row, const struct h5_array *a, struct dimensions *d)
{
  const char *shape = alternative(row->shape, a->rank);
  CHECK(shape, ERR_INPUT, "'%s' has %d dimensions, its shape is to be %s", row->path, a->rank,
        row->shape);
  for (int i = 0; i < a->rank; i++, shape += *shape == ' ') {
    char word[8] = {0};
    int length = (int)strcspn(shape, " |");
    snprintf(word, sizeof word, "%.*s", length, shape);
    shape += length;
    char *plus = strchr(word, '+');
    gidx more = plus ? atoi(plus) : 0, size = a->shape[i] - more;
    if (plus) *plus = '\0';
    CHECK(size >= 0, ERR_INPUT, "'%s' has %lld entries, at least %lld are needed", row->path,
          (long long)a->shape[i], (long long)more);
    if (word[0] >= '0' && word[0] <= '9')
      CHECK(size == atoi(word), ERR_INPUT, "'%s' has %lld entries, not %s", row->path,
            (long long)size, word);
    else
      TRY(dimension_bind(d, word, size, row->path));
  }
  return OK;
}

int object_create(const struct h5_file *f, const char *path, int rank, const gidx *shape,
                  gidx rows_per_chunk, struct h5_array *a)
{
  const struct object_row *row = object_find(NULL, path);
  *a = (struct h5_array){0};
  CHECK(row, ERR_INTERNAL, "no object '%s' in the table", path);
  TRY(h5_array_create_chunked(f, path, row->type, rank, shape, rows_per_chunk, a));
  return OK;
}

int object_write_vector(const struct h5_file *f, const char *path, gidx count, const void *values)
{
  struct h5_array a;
  int status = object_create(f, path, 1, &count, 0, &a);
  if (status == OK) status = h5_array_write(&a, 0, count, values);
  int closed = h5_array_close(&a);
  return status ? status : closed;
}
