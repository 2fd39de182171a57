/* SPDX-License-Identifier: BSD-3-Clause
 * The file has the frames in float64.  Settings of the run and steps of atoms are stored as in
 * dictionary.h5 (fit_history.h). */
#include "io/sweep.h"

#include <math.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "io/check.h"

#define SWEEP_GROUP "/sweep"
enum { SLACK_BYTES = 4 << 20, ATOM_BYTES = 64 };

static const struct object_row object_rows[] = {
    {"/sweep/frames", TYPE_F64, "K P|K d P", 1, "frames of the sweep in work, not rounded"},
};
static const struct object_table objects = {object_rows, LENGTH(object_rows)};

static gidx frames_shape(idx k, idx d, idx p, gidx *shape)
{
  gidx all[] = {k, d, p};
  if (d == 1) all[1] = p;
  memcpy(shape, all, sizeof all);
  return d > 1 ? 3 : 2;
}

int sweep_output_create(struct matrix_output *f, const char *path, idx k, idx d, idx p)
{
  gidx shape[3], bytes = (gidx)k * d * p * (gidx)sizeof(real);
  *f = (struct matrix_output){0};
  int rank = (int)frames_shape(k, d, p, shape);
  TRY(result_create(&f->result, path, &sweep_kind,
                    bytes + bytes / 1024 + (gidx)k * ATOM_BYTES + SLACK_BYTES));
  return object_create(&f->result.h5, "/sweep/frames", rank, shape, 0, &f->array);
}

static int facts_write(const struct h5_file *h5, const struct sweep_facts *facts)
{
  TRY(h5_attribute_long(h5, "/", "sweeps", facts->sweeps));
  TRY(h5_attribute_long(h5, SWEEP_GROUP, "atoms_done", facts->atoms));
  TRY(h5_attribute_long(h5, SWEEP_GROUP, "classes_hash", (gidx)facts->classes));
  TRY(fit_start_write(h5, &facts->start));
  return identity_write(h5, CONTENTS_GROUP, &facts->contents);
}

int sweep_output_write(struct matrix_output *f, const struct sweep_facts *facts, const real *frames,
                       const struct atom_step *steps, idx k)
{
  TRY(h5_array_write(&f->array, 0, k, frames));
  TRY(facts_write(&f->result.h5, facts));
  return fit_steps_write(&f->result.h5, steps, k);
}

static int facts_read(const struct h5_file *h5, struct sweep_facts *facts)
{
  gidx classes;
  int is_sweep;
  *facts = (struct sweep_facts){0};
  TRY(h5_attribute_is(h5, "/", "kind", sweep_kind.name, &is_sweep));
  CHECK(is_sweep, ERR_INPUT, "'%s' is no sweep that refit or fit left", h5->path);
  TRY(h5_read_long(h5, "/", "sweeps", &facts->sweeps));
  TRY(h5_read_long(h5, SWEEP_GROUP, "atoms_done", &facts->atoms));
  TRY(h5_read_long(h5, SWEEP_GROUP, "classes_hash", &classes));
  facts->classes = (uint64_t)classes;
  TRY(fit_start_read(h5, &facts->start));
  return identity_read(h5, CONTENTS_GROUP, &facts->contents);
}

int sweep_facts_read(const char *path, struct sweep_facts *facts)
{
  struct h5_file f;
  TRY(h5_open(&f, path));
  return h5_close_after(&f, facts_read(&f, facts));
}

/* out <- a whole array, which must have this shape. */
static int frames_read(const struct h5_file *f, int rank, const gidx *shape, real *out)
{
  struct h5_array a;
  TRY(h5_array_open(f, "/sweep/frames", &a));
  int fits = a.rank == rank && a.type == TYPE_F64 &&
             memcmp(a.shape, shape, (size_t)rank * sizeof *shape) == 0;
  int status = fits ? h5_array_read(&a, 0, shape[0], TYPE_F64, out) : OK;
  h5_array_close(&a);
  CHECK(fits, ERR_INPUT, "'/sweep/frames' of '%s' are not those of these atoms" ANEW, f->path);
  return status;
}

static int all_read(const struct h5_file *f, idx k, idx d, idx p, real *frames,
                    struct atom_step *steps)
{
  gidx shape[3];
  int rank = (int)frames_shape(k, d, p, shape);
  TRY(frames_read(f, rank, shape, frames));
  for (gidx i = 0; i < (gidx)k * d * p; i++)
    CHECK(isfinite(frames[i]), ERR_INPUT, "atom %lld of '/sweep/frames' of '%s' is not finite" ANEW,
          (long long)(i / ((gidx)d * p)), f->path);
  return fit_steps_read(f, steps, k);
}

int sweep_read(const char *path, idx k, idx d, idx p, real *frames, struct atom_step *steps)
{
  struct h5_file f;
  TRY(h5_open(&f, path));
  return h5_close_after(&f, all_read(&f, k, d, p, frames, steps));
}

/* Check that all values of frames are finite.  No more is required of frames inside a sweep. */
static int frames_check(const struct verify *v, const struct value_block *b)
{
  for (gidx i = 0; i < b->count * b->width; i++)
    CHECK(isfinite(b->values[i]), ERR_INPUT, "'%s' of '%s' has values that are not finite" ANEW,
          b->array->object, v->file->path);
  return OK;
}

static int file_check(struct verify *v)
{
  struct sweep_facts facts;
  if (!v->is_ours || strcmp(v->kind, sweep_kind.name) != 0) return OK;
  TRY(check_blocks(v, "/sweep/frames", frames_check));
  TRY(facts_read(v->file, &facts));
  gidx k = dimension_value(&v->dims, "K");
  CHECK(facts.sweeps >= 0 && facts.atoms >= 0 && facts.atoms <= k, ERR_INPUT,
        "'%s' says %lld of %lld atoms of the sweep after %lld" ANEW, v->file->path,
        (long long)facts.atoms, (long long)k, (long long)facts.sweeps);
  check_note(v, "sweep     all frames are finite, %lld of %lld atoms done", (long long)facts.atoms,
             (long long)k);
  return OK;
}

const struct file_kind sweep_kind = {"sweep", {&objects, &fit_objects}, file_check, NULL, NULL,
                                     NULL};
