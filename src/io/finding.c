/* SPDX-License-Identifier: BSD-3-Clause
 * Vectors are datasets; what is one number is an attribute. */
#include "io/finding.h"

#include <string.h>

#include "base/status.h"

#define GROUP "/find"
#define HISTORY GROUP "/history"
#define HELD_GROUP "/held_out"

static const struct object_row object_rows[] = {
    {HISTORY, TYPE_F64, "L F", 0, "what was reached after so many updates"},
    {GROUP "/means", TYPE_F32, "K", 0, "mean code of each atom in the last update"},
    {GROUP "/firing", TYPE_I64, "K", 0, "rows of the last update that had each atom"},
    {GROUP "/offset", TYPE_F32, "P", 0, "what rows lose beside the mean of the fitted rows"},
    {GROUP "/mean", TYPE_F64, "P", 0, "the mean of the fitted rows"},
};
const struct object_table find_objects = {object_rows, LENGTH(object_rows)};

static const char columns[] =
    "update,atoms,l0,dead,replaced,explained_variance_held_out,l0_held_out";

_Static_assert(sizeof(struct finding_line) == FINDING_COLUMNS * sizeof(real), "a line of reals");

int finding_write(struct matrix_output *f, const struct finding_record *r, idx k, idx p)
{
  const struct h5_file *h5 = &f->result.h5;
  gidx table[] = {r->count, FINDING_COLUMNS};
  TRY(object_write(h5, HISTORY, 2, table, r->lines));
  TRY(h5_attribute_text(h5, HISTORY, "columns", columns));
  TRY(h5_attribute_long(h5, HISTORY, "updates", r->update));
  TRY(h5_attribute_long(h5, HISTORY, "atoms", r->atoms));
  TRY(h5_attribute_long(h5, HISTORY, "rows", r->rows));
  TRY(h5_attribute_long(h5, HISTORY, "replaced", r->replaced));
  TRY(object_write_vector(h5, GROUP "/means", k, r->means));
  TRY(object_write_vector(h5, GROUP "/firing", k, r->firing));
  TRY(object_write_vector(h5, GROUP "/offset", p, r->offset));
  if (r->mean) TRY(object_write_vector(h5, GROUP "/mean", p, r->mean));
  TRY(identity_write(h5, INPUTS_GROUP, &r->fitted));
  return identity_write(h5, HELD_GROUP, &r->held);
}

/* *rows <- those of an array, at most INT32_MAX. */
static int rows_count(const struct h5_file *f, const char *object, gidx *rows)
{
  struct h5_array a;
  TRY(h5_array_open(f, object, &a));
  *rows = a.rank ? a.shape[0] : 0;
  TRY(h5_array_close(&a));
  CHECK(*rows >= 0 && *rows < INT32_MAX, ERR_INPUT, "'%s' of '%s' has %lld rows" ANEW, object,
        f->path, (long long)*rows);
  return OK;
}

static int record_read(const struct h5_file *f, struct arena *arena, idx p,
                       struct finding_record *r, float **atoms, idx *k)
{
  int there;
  gidx n;
  *r = (struct finding_record){0};
  TRY(h5_exists(f, HISTORY, &there));
  CHECK(there, ERR_INPUT, "'%s' was not written by `fit --find features`: it cannot be resumed",
        f->path);
  TRY(h5_read_long(f, HISTORY, "updates", &r->update));
  TRY(h5_read_long(f, HISTORY, "atoms", &r->atoms));
  TRY(h5_read_long(f, HISTORY, "rows", &r->rows));
  TRY(h5_read_long(f, HISTORY, "replaced", &r->replaced));
  TRY(identity_read(f, INPUTS_GROUP, &r->fitted));
  TRY(identity_read(f, HELD_GROUP, &r->held));
  TRY(rows_count(f, HISTORY, &r->count));
  TRY(rows_count(f, "/atoms", &n));
  *k = (idx)n;
  TRY(object_take(f, HISTORY, r->count, FINDING_COLUMNS, TYPE_F64, arena, &r->lines));
  TRY(object_take(f, "/atoms", n, p, TYPE_F32, arena, atoms));
  TRY(object_take(f, GROUP "/means", n, 0, TYPE_F32, arena, &r->means));
  TRY(object_take(f, GROUP "/firing", n, 0, TYPE_I64, arena, &r->firing));
  TRY(object_take(f, GROUP "/offset", p, 0, TYPE_F32, arena, &r->offset));
  TRY(h5_exists(f, GROUP "/mean", &there));
  return there ? object_take(f, GROUP "/mean", p, 0, TYPE_F64, arena, &r->mean) : OK;
}

int finding_read(const char *path, struct arena *arena, idx p, struct finding_record *record,
                 float **atoms, idx *k)
{
  struct h5_file f;
  TRY(h5_open(&f, path));
  return h5_close_after(&f, record_read(&f, arena, p, record, atoms, k));
}
