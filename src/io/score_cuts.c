/* SPDX-License-Identifier: BSD-3-Clause
 * The values are attributes, and three vectors with an entry for each choice. */
#include "io/score_cuts.h"

#include <math.h>
#include <string.h>

#include "base/status.h"
#include "io/schema.h"

#define GROUP "/cut"

int cuts_write(const struct h5_file *f, const struct score_cuts *cuts)
{
  float least[CUTS_MOST];
  gidx row[CUTS_MOST], ties[CUTS_MOST];
  for (int i = 0; i < cuts->n; i++) {
    least[i] = cuts->at[i].least;
    row[i] = cuts->at[i].row;
    ties[i] = cuts->at[i].ties;
  }
  TRY(object_write_vector(f, GROUP "/least", cuts->n, least));
  TRY(object_write_vector(f, GROUP "/row", cuts->n, row));
  TRY(object_write_vector(f, GROUP "/ties", cuts->n, ties));
  TRY(h5_attribute_real(f, GROUP, "l0", cuts->l0));
  TRY(h5_attribute_real(f, GROUP, "floor", cuts->floor));
  return h5_attribute_long(f, GROUP, "rows_hash", (gidx)cuts->rows);
}

/* Read a vector of *n values.  If *n is 0, all its values are read, and *n <- their number. */
static int vector_read(const struct h5_file *f, const char *path, enum h5_type type, gidx *n,
                       void *out)
{
  struct h5_array a;
  TRY(h5_array_open(f, path, &a));
  int fits = a.rank == 1 && a.shape[0] >= 1 && a.shape[0] <= CUTS_MOST;
  if (fits && *n) fits = a.shape[0] == *n;
  if (fits) *n = a.shape[0];
  int status = fits ? h5_array_read(&a, 0, *n, type, out) : OK;
  h5_array_close(&a);
  CHECK(fits, ERR_INPUT, "'%s' of '%s' has another shape", path, f->path);
  return status;
}

int cuts_read(const struct h5_file *f, struct score_cuts *cuts)
{
  float least[CUTS_MOST];
  gidx row[CUTS_MOST], ties[CUTS_MOST], n = 0, hash;
  int there;
  *cuts = (struct score_cuts){0};
  TRY(h5_exists(f, GROUP, &there));
  if (!there) return OK;
  TRY(vector_read(f, GROUP "/least", TYPE_F32, &n, least));
  TRY(vector_read(f, GROUP "/row", TYPE_I64, &n, row));
  TRY(vector_read(f, GROUP "/ties", TYPE_I64, &n, ties));
  TRY(h5_read_real(f, GROUP, "l0", &cuts->l0));
  TRY(h5_read_real(f, GROUP, "floor", &cuts->floor));
  TRY(h5_read_long(f, GROUP, "rows_hash", &hash));
  for (gidx i = 0; i < n; i++) {
    CHECK(least[i] >= 0 && isfinite(least[i]) && row[i] >= 0 && ties[i] >= 0, ERR_INPUT,
          "'%s' says that the cut of choice %lld is %g, with %lld ties in row %lld", f->path,
          (long long)i, (double)least[i], (long long)ties[i], (long long)row[i]);
    cuts->at[i] = (struct score_cut){least[i], row[i], ties[i]};
  }
  CHECK(cuts->l0 > 0 && isfinite(cuts->l0) && cuts->floor >= 0 && isfinite(cuts->floor), ERR_INPUT,
        "'%s' says that rows have %g codes, with a floor of %g", f->path, cuts->l0, cuts->floor);
  cuts->n = (int)n;
  cuts->rows = (uint64_t)hash;
  return OK;
}

int cuts_rows_check(const struct score_cuts *cuts, uint64_t rows, const char *file)
{
  CHECK(!cuts || cuts->rows == rows, ERR_INPUT,
        "the rows have changed since '--l0' counted them: their hash is %016llx, and was %016llx; "
        "make '%s' again, with --force and not --resume",
        (unsigned long long)rows, (unsigned long long)cuts->rows, file);
  return OK;
}
