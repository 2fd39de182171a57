/* SPDX-License-Identifier: BSD-3-Clause
 * Contents of matrices and vectors, in blocks of about a megabyte. */
#include "io/verify.h"

#include <math.h>

#include "base/memory.h"
#include "base/status.h"
#include "model/dictionary.h"
#include "model/rows.h"

enum { BLOCK_VALUES = 1 << 18 };

struct block_check {
  const struct verify *v;
  struct h5_array array;
  gidx width; /* values of an entry of the first dimension */
  float *values;
  int (*check)(const struct block_check *b, gidx first, gidx count);
};

static int blocks_run(struct block_check *b, struct arena *arena)
{
  b->width = 1;
  for (int i = 1; i < b->array.rank; i++) b->width *= b->array.shape[i];
  gidx rows = b->width < BLOCK_VALUES && b->width > 0 ? BLOCK_VALUES / b->width : 1;
  CHECK(b->array.rank <= LENGTH(b->array.shape) && b->width <= INT32_MAX, ERR_INPUT,
        "'%s' of '%s' has entries of %lld values", b->array.object, b->array.path,
        (long long)b->width);
  TRY(arena_take(arena, &b->values, rows * b->width, sizeof *b->values));
  for (gidx first = 0; first < b->array.shape[0]; first += rows) {
    gidx n = b->array.shape[0] - first < rows ? b->array.shape[0] - first : rows;
    TRY(h5_array_read(&b->array, first, n, TYPE_F32, b->values));
    TRY(b->check(b, first, n));
  }
  return OK;
}

static int array_check(const struct verify *v, const char *object,
                       int (*check)(const struct block_check *, gidx, gidx))
{
  struct arena arena = {0};
  struct block_check b = {.v = v, .check = check};
  int status = h5_array_open(v->file, object, &b.array);
  if (status == OK) status = blocks_run(&b, &arena);
  h5_array_close(&b.array);
  arena_free(&arena);
  return status;
}

static int finite_check(const struct block_check *b, gidx first, gidx count)
{
  TRY(rows_check(b->values, count, (idx)b->width, first, b->array.object));
  return OK;
}

/* A dictionary of ours has unit atoms and orthonormal frames; a foreign one may be scaled later. */
static int atoms_block_check(const struct block_check *b, gidx first, gidx count)
{
  if (!b->v->is_ours) return finite_check(b, first, count);
  idx d = b->array.rank == 3 ? (idx)b->array.shape[1] : 1, p = (idx)(b->width / (d ? d : 1));
  CHECK(first + count <= INT32_MAX && d >= 1 && d <= FRAME_MOST, ERR_INPUT,
        "'%s' of '%s' has %lld atoms, frames of %d", b->array.object, b->array.path,
        (long long)b->array.shape[0], d);
  TRY(atoms_check(b->values, (idx)count, d, p, (idx)first, b->array.object));
  return OK;
}

int verify_rows(const struct verify *v)
{
  TRY(array_check(v, "/rows", finite_check));
  verify_note(v, "rows      all values are finite");
  return OK;
}

int verify_atoms(const struct verify *v)
{
  TRY(array_check(v, "/atoms", atoms_block_check));
  verify_note(v, "atoms     all values are finite%s",
              v->is_ours ? ", atoms of unit norm, frames orthonormal" : "");
  return OK;
}

/* Read as it is: a mean beyond the f32 range is finite. */
int verify_mean(const struct verify *v)
{
  enum { PIECE = 4096 };
  real values[PIECE];
  struct h5_array a;
  int status = h5_array_open(v->file, "/mean", &a);
  gidx p = status == OK && a.rank == 1 ? a.shape[0] : 0;
  for (gidx first = 0; first < p && status == OK; first += PIECE) {
    gidx n = p - first < PIECE ? p - first : PIECE;
    status = h5_array_read(&a, first, n, TYPE_F64, values);
    for (gidx i = 0; i < n && status == OK; i++)
      if (!isfinite(values[i]))
        status = status_fail(ERR_INPUT, __FILE__, __LINE__, "column %lld of '/mean' is %g",
                             (long long)(first + i), values[i]);
  }
  h5_array_close(&a);
  TRY(status);
  verify_note(v, "mean      all values are finite");
  return OK;
}
