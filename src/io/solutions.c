/* SPDX-License-Identifier: BSD-3-Clause
 * The outcomes of a block are written column by column, one array for each member of struct
 * arrow_outcome. */
#include "io/solutions.h"

#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "io/check.h"
#include "io/h5/array_write.h"
#include "io/verify.h"

enum { SLACK_BYTES = 16 << 20, PIECE = 1 << 14 };

static const struct object_row object_rows[] = {
    {"/solutions/delta_t", TYPE_F64, "nd", 1, "steps of the rows"},
    {"/solutions/delta_beta", TYPE_F64, "k", 1, "steps of the borders"},
    {"/solutions/log_det_hessian", TYPE_F64, "B", 1, "log determinant; NaN where a system failed"},
    {"/solutions/log_det_mantissa", TYPE_F64, "B", 1, "mantissa m of the determinant m 2^e"},
    {"/solutions/log_det_exponent", TYPE_I64, "B", 1, "exponent e of the determinant m 2^e"},
    {"/solutions/status", TYPE_I32, "B", 1, "0 ok, 1 row, 2 border, 3 not finite"},
    {"/solutions/failed_at", TYPE_I64, "B", 1, "row, pivot or entry that failed; -1: none"},
    {"/solutions/suggested_bump", TYPE_F64, "B", 1,
     "what to add to the ridge of the part that failed"},
    {"/solutions/ridge_t", TYPE_F64, "B", 1, "ridge of the rows in the last try"},
    {"/solutions/ridge_beta", TYPE_F64, "B", 1, "ridge of the border in the last try"},
    {"/solutions/retries", TYPE_I32, "B", 1, "tries after the first"},
    {"/solutions/lost_bits", TYPE_I32, "B", 0, "bits of 53 that cancellation took"},
};
static const struct object_table objects = {object_rows, LENGTH(object_rows)};

/* The arrays of struct arrow_outcome: one for each member, which is a real, a gidx, or an int of 4
 * bytes. */
static const struct outcome_row {
  const char *path;
  size_t offset, bytes;
} outcome_rows[OUTCOME_ARRAYS] = {
#define MEMBER(path, name)                                                                         \
  {                                                                                                \
    path, offsetof(struct arrow_outcome, name), sizeof(((struct arrow_outcome *)0)->name)          \
  }
    MEMBER("/solutions/log_det_hessian", log_det),
    MEMBER("/solutions/log_det_mantissa", pair.m),
    MEMBER("/solutions/log_det_exponent", pair.e),
    MEMBER("/solutions/status", status),
    MEMBER("/solutions/failed_at", failed_at),
    MEMBER("/solutions/suggested_bump", suggested_bump),
    MEMBER("/solutions/ridge_t", ridge_t),
    MEMBER("/solutions/ridge_beta", ridge_b),
    MEMBER("/solutions/retries", retries),
    MEMBER("/solutions/lost_bits", lost_bits),
};

gidx solutions_bytes(const struct systems_shape *s)
{
  double reals = (double)s->g[s->count] + (double)s->border[s->count] + 9 * (double)s->count;
  return (gidx)(8 * reals * (1 + 0x1p-10)) + SLACK_BYTES;
}

/* Write the outcomes of a block. `column` has space for one member of each outcome. */
static int outcomes_write(struct solutions_output *r, const struct solution_block *block,
                          char *column)
{
  for (int i = 0; i < OUTCOME_ARRAYS; i++) {
    const struct outcome_row *row = &outcome_rows[i];
    for (gidx a = 0; a < block->count; a++)
      memcpy(column + (size_t)a * row->bytes, (const char *)(block->outcomes + a) + row->offset,
             row->bytes);
    TRY(h5_array_write(&r->outcomes[i], block->first, block->count, column));
  }
  return OK;
}

/* Write all arrays except the steps of rows. */
static int rest_write(struct solutions_output *r, const struct solution_block *block)
{
  const gidx *border = r->shape->border;
  gidx first = block->first, end = first + block->count;
  TRY(h5_array_write(&r->step_b, border[first], border[end] - border[first], block->step_b));
  char *column = malloc((size_t)block->count * sizeof(real) + 1);
  CHECK(column, ERR_MEMORY, "cannot allocate %lld bytes", (long long)block->count * 8);
  int status = outcomes_write(r, block, column);
  free(column);
  return status;
}

static int block_write(void *self, const struct solution_block *block)
{
  struct solutions_output *r = self;
  const gidx *g = r->shape->g;
  gidx first = block->first, end = first + block->count;
  TRY(h5_array_write(&r->step_t, g[first], g[end] - g[first], block->step_t));
  return rest_write(r, block);
}

int solutions_output_create(struct solutions_output *r, const char *path,
                            const struct systems_shape *shape, const struct arrow_options *options)
{
  memset(r, 0, sizeof *r);
  r->shape = shape;
  r->sink = (struct solution_sink){r, block_write};
  const struct h5_file *h5 = &r->result.h5;
  gidx count = shape->count;
  TRY(result_create(&r->result, path, &solutions_kind, solutions_bytes(shape)));
  TRY(h5_attribute_real(h5, "/", "ridge_t", options->ridge_t));
  TRY(h5_attribute_real(h5, "/", "ridge_b", options->ridge_b));
  TRY(h5_attribute_long(h5, "/", "escalate", options->escalate));
  TRY(object_create(h5, "/solutions/delta_t", 1, &shape->g[count], 0, &r->step_t));
  TRY(object_create(h5, "/solutions/delta_beta", 1, &shape->border[count], 0, &r->step_b));
  for (int i = 0; i < OUTCOME_ARRAYS; i++)
    TRY(object_create(h5, outcome_rows[i].path, 1, &count, 0, &r->outcomes[i]));
  return OK;
}

int solutions_output_finish(struct solutions_output *r, const struct identity *inputs,
                            const struct systems_part *part, const struct run_fact *facts,
                            int n_facts)
{
  struct h5_array *arrays[OUTCOME_ARRAYS + 2] = {&r->step_t, &r->step_b};
  for (int i = 0; i < OUTCOME_ARRAYS; i++) arrays[i + 2] = &r->outcomes[i];
  for (int i = 0; i < LENGTH(arrays); i++) {
    if (!systems_part_is_whole(part)) TRY(h5_array_truncate(arrays[i]));
    TRY(h5_array_close(arrays[i]));
  }
  TRY(systems_part_write(&r->result.h5, &solutions_part_kind, part));
  TRY(identity_write(&r->result.h5, INPUTS_GROUP, inputs));
  TRY(result_publish(&r->result, facts, n_facts));
  return OK;
}

/* The outcomes of some systems: one column for each array. */
struct outcomes {
  real log_det[PIECE], m[PIECE], ridge_t[PIECE], ridge_b[PIECE];
  gidx e[PIECE], failed_at[PIECE];
  idx status[PIECE], retries[PIECE];
};

/* Read a part of an array. */
static int column_read(const struct verify *v, const char *object, enum h5_type type, gidx first,
                       gidx count, void *out)
{
  struct h5_array a = {0};
  int status = h5_array_open(v->file, object, &a);
  if (status == OK) status = h5_array_read(&a, first, count, type, out);
  h5_array_close(&a);
  return status;
}

/* Check outcome i.  Its members must agree with each other. */
static int outcome_check(const struct verify *v, const struct outcomes *o, gidx i, gidx system)
{
  struct det_pair pair = {o->m[i], o->e[i]};
  real value = det_pair_value(pair);
  int is_ok = o->status[i] == ARROW_OK;
  CHECK(o->status[i] >= ARROW_OK && o->status[i] <= ARROW_NOT_FINITE, ERR_INPUT,
        "system %lld of '%s' has status %d, 0 to %d are possible", (long long)system, v->file->path,
        o->status[i], ARROW_NOT_FINITE);
  CHECK(is_ok == (o->failed_at[i] == -1), ERR_INPUT,
        "system %lld of '%s' has status %d and failed at %lld" ANEW, (long long)system,
        v->file->path, o->status[i], (long long)o->failed_at[i]);
  CHECK(memcmp(&value, &o->log_det[i], sizeof value) == 0 &&
            is_ok == (o->m[i] >= 0.5 && o->m[i] < 1),
        ERR_INPUT, "system %lld of '%s' has log_det_hessian %.17g, its pair is %.17g 2^%lld" ANEW,
        (long long)system, v->file->path, o->log_det[i], o->m[i], (long long)o->e[i]);
  CHECK(o->retries[i] >= 0 && o->retries[i] <= ARROW_MAX_RETRIES && o->ridge_t[i] >= 0 &&
            o->ridge_b[i] >= 0,
        ERR_INPUT, "system %lld of '%s' has %d retries, ridges %g and %g" ANEW, (long long)system,
        v->file->path, o->retries[i], o->ridge_t[i], o->ridge_b[i]);
  return OK;
}

static int file_check(struct verify *v)
{
  static struct outcomes o;
  int there;
  TRY(h5_exists(v->file, "/solutions/status", &there));
  if (!v->is_ours || !there) return OK;
  gidx count = dimension_value(&v->dims, "B"), failed = 0;
  for (gidx first = 0; first < count; first += PIECE) {
    gidx n = imin(PIECE, count - first);
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
  check_note(v, "solutions %lld, of which %lld failed; log-determinants agree with their pairs",
             (long long)count, (long long)failed);
  return OK;
}

const struct file_kind solutions_kind = {"solutions", {&objects}, file_check, NULL, NULL, NULL};

static int part_check(struct verify *v)
{
  return systems_part_check(v, &solutions_part_kind);
}

static int part_show(const struct h5_file *f, FILE *out)
{
  return systems_part_show(f, &solutions_part_kind, out);
}

const struct file_kind solutions_part_kind = {"solutions_part", {&objects}, part_check,
                                              part_show,        NULL,       NULL};

int solutions_input_open(struct solutions_input *f, const char *path)
{
  gidx escalate;
  *f = (struct solutions_input){0};
  TRY(h5_open(&f->h5, path));
  TRY(systems_part_read(&f->h5, &solutions_part_kind, &solutions_kind, &f->part));
  TRY(file_verify(path, NULL));
  TRY(h5_read_real(&f->h5, "/", "ridge_t", &f->options.ridge_t));
  TRY(h5_read_real(&f->h5, "/", "ridge_b", &f->options.ridge_b));
  TRY(h5_read_long(&f->h5, "/", "escalate", &escalate));
  f->options.escalate = escalate != 0;
  return OK;
}

void solutions_input_close(struct solutions_input *f)
{
  h5_close(&f->h5);
}

/* The open arrays of a file of solutions, and space for a piece of them. */
struct copying {
  struct h5_array step_t, step_b, outcomes[OUTCOME_ARRAYS];
  struct arrow_outcome *all; /* [SYSTEMS_PIECE] */
  char *column;              /* one member of each outcome */
  real *t, *b;
  struct arena arena;
};

static int copying_open(struct copying *c, const struct solutions_input *f,
                        const struct systems_shape *shape)
{
  gidx count = f->part.systems;
  TRY(h5_array_open(&f->h5, "/solutions/delta_t", &c->step_t));
  TRY(h5_array_open(&f->h5, "/solutions/delta_beta", &c->step_b));
  for (int i = 0; i < OUTCOME_ARRAYS; i++)
    TRY(h5_array_open(&f->h5, outcome_rows[i].path, &c->outcomes[i]));
  CHECK(c->step_t.shape[0] == shape->g[count] && c->step_b.shape[0] == shape->border[count],
        ERR_INPUT,
        "'%s' has %lld row steps and %lld border steps, its systems need %lld and %lld" ANEW,
        f->h5.path, (long long)c->step_t.shape[0], (long long)c->step_b.shape[0],
        (long long)shape->g[count], (long long)shape->border[count]);
  gidx most_t = 0, most_b = 0;
  for (gidx first = 0, end; first < count; first = end) {
    end = systems_piece(shape, first, count);
    most_t = imax(most_t, shape->g[end] - shape->g[first]);
    most_b = imax(most_b, shape->border[end] - shape->border[first]);
  }
  TRY(arena_alloc(&c->arena, &c->t, most_t, sizeof *c->t));
  TRY(arena_alloc(&c->arena, &c->b, most_b, sizeof *c->b));
  TRY(arena_alloc(&c->arena, &c->all, SYSTEMS_PIECE, sizeof *c->all));
  return arena_alloc(&c->arena, &c->column, SYSTEMS_PIECE * (gidx)sizeof(real), 1);
}

static int outcomes_read(const struct copying *c, gidx first, gidx count)
{
  for (int i = 0; i < OUTCOME_ARRAYS; i++) {
    const struct outcome_row *row = &outcome_rows[i];
    TRY(h5_array_read(&c->outcomes[i], first, count, c->outcomes[i].type, c->column));
    for (gidx a = 0; a < count; a++)
      memcpy((char *)(c->all + a) + row->offset, c->column + (size_t)a * row->bytes, row->bytes);
  }
  return OK;
}

static int pieces_copy(const struct copying *c, const struct systems_shape *shape, gidx count,
                       const struct solution_sink *sink)
{
  const gidx *g = shape->g, *border = shape->border;
  for (gidx first = 0, end; first < count; first = end) {
    end = systems_piece(shape, first, count);
    TRY(h5_array_read(&c->step_t, g[first], g[end] - g[first], TYPE_F64, c->t));
    TRY(h5_array_read(&c->step_b, border[first], border[end] - border[first], TYPE_F64, c->b));
    TRY(outcomes_read(c, first, end - first));
    struct solution_block block = {first, end - first, c->t, c->b, c->all};
    TRY(sink->write(sink->self, &block));
  }
  return OK;
}

int solutions_copy(const struct solutions_input *f, const struct systems_shape *shape,
                   const struct solution_sink *sink)
{
  struct copying c = {0};
  int status = copying_open(&c, f, shape);
  if (!status) status = pieces_copy(&c, shape, f->part.systems, sink);
  h5_array_close(&c.step_t);
  h5_array_close(&c.step_b);
  for (int i = 0; i < OUTCOME_ARRAYS; i++) h5_array_close(&c.outcomes[i]);
  arena_free(&c.arena);
  return status;
}
