/* SPDX-License-Identifier: BSD-3-Clause
 * One dataset, a number for each atom. */
#include "io/firing.h"

#include <math.h>

#include "base/status.h"
#include "io/check.h"

#define OBJECT "/threshold"

static const struct object_row object_rows[] = {
    {OBJECT, TYPE_F32, "K", 0, "code above which the atom fires"},
};
const struct object_table firing_objects = {object_rows, LENGTH(object_rows)};

int firing_write(struct matrix_output *f, idx k, const float *threshold)
{
  return object_write_vector(&f->result.h5, OBJECT, k, threshold);
}

int firing_read(const struct h5_file *f, idx k, struct arena *arena, float **threshold)
{
  struct h5_array a;
  int there;
  *threshold = NULL;
  TRY(h5_exists(f, OBJECT, &there));
  if (!there) return OK;
  TRY(arena_alloc(arena, threshold, k, sizeof **threshold));
  TRY(h5_array_open(f, OBJECT, &a));
  int fits = a.rank == 1 && a.type == TYPE_F32 && a.shape[0] == k;
  int status = fits ? h5_array_read(&a, 0, k, TYPE_F32, *threshold) : OK;
  h5_array_close(&a);
  CHECK(fits, ERR_INPUT, "'" OBJECT "' of '%s' is not float32 of %d atoms" ANEW, f->path, k);
  TRY(status);
  for (idx i = 0; i < k; i++)
    CHECK(isfinite((*threshold)[i]) && (*threshold)[i] >= 0, ERR_INPUT,
          "atom %d of '%s' fires above a code of %g, which is below 0 or not finite" ANEW, i,
          f->path, (double)(*threshold)[i]);
  return OK;
}

int firing_check(struct verify *v)
{
  struct arena arena = {0};
  float *threshold;
  int status = firing_read(v->file, (idx)dimension_value(&v->dims, "K"), &arena, &threshold);
  int there = threshold != NULL;
  arena_free(&arena);
  TRY(status);
  if (there) check_note(v, "threshold codes above which atoms fire are finite, 0 or more");
  return OK;
}
