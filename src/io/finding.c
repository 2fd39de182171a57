/* SPDX-License-Identifier: BSD-3-Clause
 * Vectors are datasets; single numbers are attributes. */
#include "io/finding.h"

#include <string.h>

#include "base/status.h"

#define GROUP "/find"
#define HISTORY GROUP "/history"
#define HELD_GROUP "/held_out"

static const struct object_row object_rows[] = {
    {HISTORY, TYPE_F64, "L F", 0, "figures after numbers of updates, a line each"},
    {GROUP "/means", TYPE_F32, "K", 0, "mean code of each atom in the last update"},
    {GROUP "/firing", TYPE_I64, "K", 0, "rows of the last update that had each atom"},
    {GROUP "/offset", TYPE_F32, "P", 0, "subtracted from rows, beside the mean of the fitted rows"},
    {GROUP "/mean", TYPE_F64, "P", 0, "the mean of the fitted rows"},
};
const struct object_table find_objects = {object_rows, LENGTH(object_rows)};

static const char columns[] =
    "update,atoms,l0,dead,replaced,explained_variance_held_out,l0_held_out";

int finding_write(struct matrix_output *f, const struct find_point *point, gidx wanted, idx p)
{
  const struct h5_file *h5 = &f->result.h5;
  const struct identity rows = {.rows = point->rows_hash}, held = {.rows = point->held_out_hash};
  TRY(object_write_lines(h5, HISTORY, columns, &find_line_form, point->lines, point->count));
  TRY(h5_attribute_long(h5, HISTORY, "updates", point->update));
  TRY(h5_attribute_long(h5, HISTORY, "atoms", wanted));
  TRY(h5_attribute_long(h5, HISTORY, "rows", point->fired_rows));
  TRY(h5_attribute_long(h5, HISTORY, "replaced", point->replaced));
  TRY(object_write_vector(h5, GROUP "/means", point->k, point->means));
  TRY(object_write_vector(h5, GROUP "/firing", point->k, point->firing));
  TRY(object_write_vector(h5, GROUP "/offset", p, point->offset));
  if (point->mean) TRY(object_write_vector(h5, GROUP "/mean", p, point->mean));
  TRY(identity_write(h5, INPUTS_GROUP, &rows));
  return identity_write(h5, HELD_GROUP, &held);
}

/* *rows <- the number of rows of an array, which must be below INT32_MAX. */
static int rows_count(const struct h5_file *f, const char *object, gidx *rows)
{
  struct h5_array a;
  TRY(h5_array_open(f, object, &a));
  *rows = a.rank ? a.shape[0] : 0;
  TRY(h5_array_close(&a));
  CHECK(*rows >= 0 && *rows < INT32_MAX, ERR_INPUT, "'%s' of '%s' has %lld rows, too many" ANEW,
        object, f->path, (long long)*rows);
  return OK;
}

static int point_read(const struct h5_file *f, struct arena *arena, idx p, struct find_point *point)
{
  struct identity rows, held;
  int there;
  gidx n, wanted;
  TRY(h5_exists(f, HISTORY, &there));
  CHECK(there, ERR_INPUT, "'%s' was not written by `fit --find features`: it cannot be resumed",
        f->path);
  TRY(h5_read_long(f, HISTORY, "updates", &point->update));
  TRY(h5_read_long(f, HISTORY, "atoms", &wanted));
  TRY(h5_read_long(f, HISTORY, "rows", &point->fired_rows));
  TRY(h5_read_long(f, HISTORY, "replaced", &point->replaced));
  TRY(identity_read(f, INPUTS_GROUP, &rows));
  TRY(identity_read(f, HELD_GROUP, &held));
  point->rows_hash = rows.rows;
  point->held_out_hash = held.rows;
  TRY(rows_count(f, HISTORY, &point->count));
  TRY(rows_count(f, "/atoms", &n));
  point->k = (idx)n;
  TRY(object_take_lines(f, HISTORY, &find_line_form, arena, point->count, &point->lines));
  TRY(object_take(f, "/atoms", n, p, TYPE_F32, arena, &point->atoms));
  TRY(object_take(f, GROUP "/means", n, 0, TYPE_F32, arena, &point->means));
  TRY(object_take(f, GROUP "/firing", n, 0, TYPE_I64, arena, &point->firing));
  TRY(object_take(f, GROUP "/offset", p, 0, TYPE_F32, arena, &point->offset));
  TRY(h5_exists(f, GROUP "/mean", &there));
  return there ? object_take(f, GROUP "/mean", p, 0, TYPE_F64, arena, &point->mean) : OK;
}

int finding_read(const char *path, struct arena *arena, idx p, struct find_point *point)
{
  struct h5_file f;
  *point = (struct find_point){0};
  TRY(h5_open(&f, path));
  return h5_close_after(&f, point_read(&f, arena, p, point));
}
