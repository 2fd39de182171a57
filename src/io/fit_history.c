/* SPDX-License-Identifier: BSD-3-Clause
 * The history is a matrix of float64; an attribute names its columns. */
#include "io/fit_history.h"

#include <stddef.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"

#define HELD_GROUP "/held_out" /* the held-out rows, which evaluate the fit */

static const struct object_row object_rows[] = {
    {"/fit/history", TYPE_F64, "S+1 H", 0, "figures of the start and of every sweep"},
    {"/fit/gram", TYPE_F64, "K K", 0, "fit by parts: sums of codes times codes"},
    {"/fit/target", TYPE_F64, "K P", 0, "fit by parts: sums of codes times rows"},
    {"/fit/weight", TYPE_F64, "K", 0,
     "fit by parts: sums of squared codes, if these are kept alone"},
    {"/fit/idle", TYPE_I32, "K", 0, "fit by parts: parts since a row used the atom"},
    {"/fit/accepted", TYPE_I32, "K", 0, "1: the last sweep's step was accepted"},
    {"/fit/status", TYPE_I32, "K", 0, "status of the last sweep's last solve"},
    {"/fit/retries", TYPE_I32, "K", 0, "retries of this solve with larger ridges"},
    {"/fit/ridge", TYPE_F64, "K", 0, "ridge of the rows that this solve ended with"},
    {"/fit/log_det_hessian", TYPE_F64, "K", 0, "log determinant of this solve's system"},
    {"/fit/log_det_mantissa", TYPE_F64, "K", 0, "mantissa m of the determinant m 2^e"},
    {"/fit/log_det_exponent", TYPE_I64, "K", 0, "exponent e of the determinant m 2^e"},
};
const struct object_table fit_objects = {object_rows, LENGTH(object_rows)};

static const char columns[] =
    "sweep,explained_variance,explained_variance_held_out,dead,revived,accepted,rejected,escalated";

_Static_assert(sizeof(struct history_line) == HISTORY_COLUMNS * sizeof(real), "a line of reals");

int fit_start_write(const struct h5_file *h5, const struct fit_start *start)
{
  TRY(h5_attribute_long(h5, "/", "directions", start->directions));
  TRY(h5_attribute_long(h5, "/", "reroute", start->reroute));
  TRY(h5_attribute_long(h5, "/", "cosine_limit", start->cosine_limit));
  TRY(h5_attribute_long(h5, "/", "rounds", start->rounds));
  if (start->top_s) TRY(h5_attribute_long(h5, "/", "top_s", start->top_s));
  TRY(h5_attribute_real(h5, "/", "rho", start->rho));
  TRY(identity_write(h5, HELD_GROUP, &start->held));
  return identity_write(h5, INPUTS_GROUP, &start->inputs);
}

int fit_start_read(const struct h5_file *h5, struct fit_start *start)
{
  int has_top_s;
  start->top_s = 0;
  TRY(h5_read_long(h5, "/", "directions", &start->directions));
  TRY(h5_read_long(h5, "/", "reroute", &start->reroute));
  TRY(h5_read_long(h5, "/", "cosine_limit", &start->cosine_limit));
  TRY(h5_read_long(h5, "/", "rounds", &start->rounds));
  TRY(h5_attribute_exists(h5, "/", "top_s", &has_top_s));
  if (has_top_s) TRY(h5_read_long(h5, "/", "top_s", &start->top_s));
  TRY(h5_read_real(h5, "/", "rho", &start->rho));
  TRY(identity_read(h5, HELD_GROUP, &start->held));
  return identity_read(h5, INPUTS_GROUP, &start->inputs);
}

/* Write lines[sweeps + 1] and the number of sweeps. */
static int history_write(struct matrix_output *f, const struct history_line *lines, gidx sweeps)
{
  const struct h5_file *h5 = &f->result.h5;
  gidx table[] = {sweeps + 1, HISTORY_COLUMNS};
  TRY(h5_attribute_long(h5, "/", "sweeps", sweeps));
  TRY(object_write(h5, "/fit/history", 2, table, lines));
  TRY(h5_attribute_text(h5, "/fit/history", "columns", columns));
  return OK;
}

/* The datasets of the steps of all atoms: one for each member of struct atom_step. */
static const struct member {
  const char *object;
  enum h5_type type;
  size_t bytes, offset;
} members[] = {
    {"/fit/accepted", TYPE_I32, sizeof(idx), offsetof(struct atom_step, accepted)},
    {"/fit/status", TYPE_I32, sizeof(idx), offsetof(struct atom_step, status)},
    {"/fit/retries", TYPE_I32, sizeof(idx), offsetof(struct atom_step, retries)},
    {"/fit/ridge", TYPE_F64, sizeof(real), offsetof(struct atom_step, ridge)},
    {"/fit/log_det_hessian", TYPE_F64, sizeof(real), offsetof(struct atom_step, log_det)},
    {"/fit/log_det_mantissa", TYPE_F64, sizeof(real), offsetof(struct atom_step, pair.m)},
    {"/fit/log_det_exponent", TYPE_I64, sizeof(gidx), offsetof(struct atom_step, pair.e)},
};

static int member_write(const struct h5_file *h5, const struct member *m,
                        const struct atom_step *steps, idx k)
{
  struct arena arena = {0};
  char *vector;
  TRY(arena_alloc(&arena, &vector, k, m->bytes));
  for (idx a = 0; a < k; a++)
    memcpy(vector + (size_t)a * m->bytes, (const char *)&steps[a] + m->offset, m->bytes);
  int status = object_write_vector(h5, m->object, k, vector);
  arena_free(&arena);
  return status;
}

int fit_steps_write(const struct h5_file *h5, const struct atom_step *steps, idx k)
{
  for (int i = 0; i < LENGTH(members); i++) TRY(member_write(h5, &members[i], steps, k));
  return OK;
}

int fit_write(struct matrix_output *f, const struct fit_facts *facts,
              const struct history_line *lines, const struct atom_step *steps, idx k)
{
  const struct h5_file *h5 = &f->result.h5;
  TRY(fit_start_write(h5, &facts->start));
  TRY(identity_write(h5, CONTENTS_GROUP, &facts->contents));
  TRY(history_write(f, lines, facts->sweeps));
  return fit_steps_write(h5, steps, k);
}

static int lines_read(const struct h5_file *f, struct arena *arena, gidx sweeps,
                      struct history_line **lines)
{
  struct h5_array a;
  TRY(h5_array_open(f, "/fit/history", &a));
  int fits = a.rank == 2 && a.type == TYPE_F64 && a.shape[0] == sweeps + 1 &&
             a.shape[1] == HISTORY_COLUMNS;
  int status = fits ? arena_alloc(arena, lines, a.shape[0], sizeof **lines) : OK;
  if (fits && !status) status = h5_array_read(&a, 0, a.shape[0], TYPE_F64, *lines);
  h5_array_close(&a);
  CHECK(fits, ERR_INPUT, "'/fit/history' of '%s' is not the history of %lld sweeps" ANEW, f->path,
        (long long)sweeps);
  return status;
}

static int file_read(const struct h5_file *f, struct arena *arena, struct fit_facts *facts,
                     struct history_line **lines)
{
  int has_sweeps, has_history;
  TRY(h5_attribute_exists(f, "/", "sweeps", &has_sweeps));
  TRY(h5_exists(f, "/fit/history", &has_history));
  CHECK(has_sweeps && has_history, ERR_INPUT,
        "'%s' was not written by refit, so it cannot be resumed", f->path);
  TRY(identity_read(f, CONTENTS_GROUP, &facts->contents));
  CHECK(facts->contents.dictionary && facts->contents.supports && facts->contents.codes, ERR_INPUT,
        "'%s' does not say what it was made from, which older versions of refit left out: it "
        "cannot be resumed",
        f->path);
  TRY(h5_read_long(f, "/", "sweeps", &facts->sweeps));
  TRY(fit_start_read(f, &facts->start));
  CHECK(facts->sweeps >= 1 && facts->sweeps < INT32_MAX, ERR_INPUT, "'%s' says %lld sweeps" ANEW,
        f->path, (long long)facts->sweeps);
  return lines_read(f, arena, facts->sweeps, lines);
}

int fit_read(const char *path, struct arena *arena, struct fit_facts *facts,
             struct history_line **lines)
{
  struct h5_file f;
  TRY(h5_open(&f, path));
  return h5_close_after(&f, file_read(&f, arena, facts, lines));
}

static int sums_write(const struct h5_file *h5, const struct fit_point *point, idx k, idx p)
{
  gidx gram[] = {k, k}, target[] = {k, p};
  if (point->gram) TRY(object_write(h5, "/fit/gram", 2, gram, point->gram));
  if (point->gram) TRY(object_write(h5, "/fit/target", 2, target, point->target));
  if (point->weight) TRY(object_write_vector(h5, "/fit/weight", k, point->weight));
  return object_write_vector(h5, "/fit/idle", k, point->idle);
}

int fit_record_write(struct matrix_output *f, const struct fit_record *record, idx k, idx p)
{
  const struct h5_file *h5 = &f->result.h5;
  const struct fit_point *point = &record->point;
  const struct identity rows = {.rows = point->rows_hash}, held = {.rows = point->held_out_hash};
  TRY(h5_attribute_long(h5, "/", "sweeps", point->sweep));
  TRY(object_write_lines(h5, "/fit/history", columns, &fit_line_form, point->lines,
                         point->sweep + 1));
  TRY(h5_attribute_long(h5, "/", "best_sweep", record->best));
  TRY(h5_attribute_long(h5, "/", "rounds", record->rounds));
  TRY(h5_attribute_long(h5, "/", "top_s", record->top_s));
  if (point->norm > 0) TRY(h5_attribute_real(h5, "/", "median_norm", point->norm));
  TRY(identity_write(h5, INPUTS_GROUP, &rows));
  TRY(identity_write(h5, HELD_GROUP, &held));
  return point->idle ? sums_write(h5, point, k, p) : OK;
}

static int record_read(const struct h5_file *f, struct arena *arena, struct fit_record *record)
{
  struct fit_point *point = &record->point;
  struct identity rows, held;
  struct history_line *table;
  struct fit_line *lines;
  int there;
  TRY(h5_attribute_exists(f, "/", "best_sweep", &there));
  CHECK(there, ERR_INPUT, "'%s' was not written by fit, so it cannot be resumed", f->path);
  TRY(h5_attribute_exists(f, "/", "median_norm", &there));
  if (there) TRY(h5_read_real(f, "/", "median_norm", &point->norm));
  TRY(h5_read_long(f, "/", "sweeps", &point->sweep));
  TRY(h5_read_long(f, "/", "best_sweep", &record->best));
  TRY(identity_read(f, INPUTS_GROUP, &rows));
  TRY(identity_read(f, HELD_GROUP, &held));
  CHECK(record->best >= 0 && record->best <= point->sweep && point->sweep < INT32_MAX, ERR_INPUT,
        "'%s' says that sweep %lld is the best of %lld" ANEW, f->path, (long long)record->best,
        (long long)point->sweep);
  point->rows_hash = rows.rows;
  point->held_out_hash = held.rows;
  TRY(lines_read(f, arena, point->sweep, &table));
  TRY(arena_alloc(arena, &lines, point->sweep + 1, sizeof *lines));
  CHECK(lines_unpack(&fit_line_form, &table->sweep, point->sweep + 1, lines), ERR_INPUT,
        "'/fit/history' of '%s' has a count that is no integer" ANEW, f->path);
  point->lines = lines;
  return OK;
}

int fit_record_read(const char *path, struct arena *arena, struct fit_record *record)
{
  struct h5_file f;
  TRY(h5_open(&f, path));
  return h5_close_after(&f, record_read(&f, arena, record));
}

static int sums_read(const struct h5_file *f, struct arena *arena, idx k, idx p, int is_conjugate,
                     struct fit_point *point)
{
  if (is_conjugate) TRY(object_take(f, "/fit/weight", k, 0, TYPE_F64, arena, &point->weight));
  if (!is_conjugate) TRY(object_take(f, "/fit/gram", k, k, TYPE_F64, arena, &point->gram));
  if (!is_conjugate) TRY(object_take(f, "/fit/target", k, p, TYPE_F64, arena, &point->target));
  return object_take(f, "/fit/idle", k, 0, TYPE_I32, arena, &point->idle);
}

int fit_sums_read(const char *path, struct arena *arena, idx k, idx p, int is_conjugate,
                  struct fit_point *point)
{
  struct h5_file f;
  TRY(h5_open(&f, path));
  return h5_close_after(&f, sums_read(&f, arena, k, p, is_conjugate, point));
}

static int member_read(const struct h5_file *f, const struct member *m, struct atom_step *steps,
                       idx k)
{
  struct arena arena = {0};
  char *vector;
  int status = object_take(f, m->object, k, 0, m->type, &arena, &vector);
  for (idx a = 0; a < k && !status; a++)
    memcpy((char *)&steps[a] + m->offset, vector + (size_t)a * m->bytes, m->bytes);
  arena_free(&arena);
  return status;
}

int fit_steps_read(const struct h5_file *f, struct atom_step *steps, idx k)
{
  for (int i = 0; i < LENGTH(members); i++) TRY(member_read(f, &members[i], steps, k));
  return OK;
}
