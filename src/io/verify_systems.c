/* SPDX-License-Identifier: BSD-3-Clause
 * Contents of systems and solutions, in blocks of about a megabyte. */
#include <math.h>
#include <string.h>

#include "base/status.h"
#include "io/systems.h"
#include "io/verify.h"

enum { PIECE = 1 << 14 };

static int finite_check(const struct h5_array *a)
{
  static real values[PIECE];
  for (gidx first = 0; first < a->shape[0]; first += PIECE) {
    gidx n = a->shape[0] - first < PIECE ? a->shape[0] - first : PIECE;
    TRY(h5_array_read(a, first, n, TYPE_F64, values));
    for (gidx i = 0; i < n; i++)
      CHECK(isfinite(values[i]), ERR_INPUT, "entry %lld of '%s' of '%s' is %g",
            (long long)(first + i), a->object, a->path, values[i]);
  }
  return OK;
}

/* Global rows rise inside a system. */
static int rows_check(const struct verify *v, const struct systems_shape *s)
{
  static gidx row[PIECE];
  struct h5_array a = {0};
  gidx last = -1, system = 0, total = s->row[s->count];
  int status = h5_array_open(v->file, "/systems/row", &a);
  for (gidx at = 0; at < total && status == OK; at++) {
    if (at % PIECE == 0)
      status = h5_array_read(&a, at, total - at < PIECE ? total - at : PIECE, TYPE_I64, row);
    for (; at >= s->row[system + 1]; system++) last = -1;
    if (at == s->row[system]) last = -1;
    gidx now = row[at % PIECE];
    if (status == OK && now <= last)
      status = status_fail(ERR_INPUT, __FILE__, __LINE__,
                           "'/systems/row' of '%s' does not rise in system %lld: %lld after %lld",
                           v->file->path, (long long)system, (long long)now, (long long)last);
    last = now;
  }
  h5_array_close(&a);
  return status;
}

int verify_systems(const struct verify *v)
{
  static struct systems_file f;
  int status = systems_open(&f, v->file->path);
  for (int i = 0; i < SYSTEM_ARRAYS && status == OK; i++) status = finite_check(&f.arrays[i]);
  if (status == OK && h5_exists(v->file, "/systems/row")) status = rows_check(v, &f.shape);
  if (status == OK)
    verify_note(v, "systems   %lld of %lld rows, sizes agree, all values are finite",
                (long long)f.shape.count, (long long)f.shape.row[f.shape.count]);
  systems_close(&f);
  return status;
}

/* What is known of a system's outcome, column by column. */
struct outcomes {
  real log_det[PIECE], m[PIECE], ridge_t[PIECE], ridge_b[PIECE];
  gidx e[PIECE], failed_at[PIECE];
  idx status[PIECE], retries[PIECE];
};

static int column_read(const struct verify *v, const char *object, enum h5_type type, gidx first,
                       gidx count, void *out)
{
  struct h5_array a = {0};
  int status = h5_array_open(v->file, object, &a);
  if (status == OK) status = h5_array_read(&a, first, count, type, out);
  h5_array_close(&a);
  return status;
}

static int outcome_check(const struct verify *v, const struct outcomes *o, gidx i, gidx system)
{
  struct log_pair pair = {o->m[i], o->e[i]};
  real value = log_pair_value(pair);
  int is_ok = o->status[i] == ARROW_OK;
  CHECK(o->status[i] >= ARROW_OK && o->status[i] <= ARROW_NOT_FINITE, ERR_INPUT,
        "system %lld of '%s' has status %d, 0 to %d are possible", (long long)system, v->file->path,
        o->status[i], ARROW_NOT_FINITE);
  CHECK(is_ok == (o->failed_at[i] == -1), ERR_INPUT,
        "system %lld of '%s' has status %d and failed at %lld", (long long)system, v->file->path,
        o->status[i], (long long)o->failed_at[i]);
  CHECK(memcmp(&value, &o->log_det[i], sizeof value) == 0 &&
            is_ok == (o->m[i] >= 0.5 && o->m[i] < 1),
        ERR_INPUT, "system %lld of '%s' has log_det_hessian %.17g, its pair is %.17g 2^%lld",
        (long long)system, v->file->path, o->log_det[i], o->m[i], (long long)o->e[i]);
  CHECK(o->retries[i] >= 0 && o->retries[i] <= ARROW_RETRIES_MOST && o->ridge_t[i] >= 0 &&
            o->ridge_b[i] >= 0,
        ERR_INPUT, "system %lld of '%s' has %d retries, ridges %g and %g", (long long)system,
        v->file->path, o->retries[i], o->ridge_t[i], o->ridge_b[i]);
  return OK;
}

int verify_solutions(const struct verify *v)
{
  static struct outcomes o;
  gidx count = dimension_value(&v->dims, "B"), failed = 0;
  if (!v->is_ours) return OK;
  for (gidx first = 0; first < count; first += PIECE) {
    gidx n = count - first < PIECE ? count - first : PIECE;
    TRY(column_read(v, "/solutions/log_det_hessian", TYPE_F64, first, n, o.log_det));
    TRY(column_read(v, "/solutions/log_det_mantissa", TYPE_F64, first, n, o.m));
    TRY(column_read(v, "/solutions/log_det_exponent", TYPE_I64, first, n, o.e));
    TRY(column_read(v, "/solutions/status", TYPE_I32, first, n, o.status));
    TRY(column_read(v, "/solutions/failed_at", TYPE_I64, first, n, o.failed_at));
    TRY(column_read(v, "/solutions/ridge_t", TYPE_F64, first, n, o.ridge_t));
    TRY(column_read(v, "/solutions/ridge_beta", TYPE_F64, first, n, o.ridge_b));
    TRY(column_read(v, "/solutions/retries", TYPE_I32, first, n, o.retries));
    for (gidx i = 0; i < n; i++) TRY(outcome_check(v, &o, i, first + i));
    for (gidx i = 0; i < n; i++) failed += o.status[i] != ARROW_OK;
  }
  verify_note(v, "solutions %lld, of which %lld failed; log-determinants agree with their pairs",
              (long long)count, (long long)failed);
  return OK;
}
