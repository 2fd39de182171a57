/* SPDX-License-Identifier: BSD-3-Clause
 * Weights, moments and counts are datasets; single numbers are attributes. */
#include "io/training.h"

#include <string.h>

#include "base/status.h"

#define HELD_GROUP "/held_out"
#define HISTORY "/train/history"
#define THRESHOLD "/train/threshold"
#define OFFSET "/train/offset"

static const struct object_row object_rows[] = {
    {HISTORY, TYPE_F64, "L T", 0, "the start and what was reached after so many steps"},
    {"/train/bias", TYPE_F32, "K", 0, "the encoder's bias for scaled rows"},
    {"/train/decoder_m", TYPE_F32, "K P", 0, "first moments of the decoder"},
    {"/train/decoder_v", TYPE_F32, "K P", 0, "second moments of the decoder"},
    {"/train/encoder_m", TYPE_F32, "K P", 0, "first moments of the encoder"},
    {"/train/encoder_v", TYPE_F32, "K P", 0, "second moments of the encoder"},
    {"/train/bias_m", TYPE_F32, "K", 0, "first moments of the bias"},
    {"/train/bias_v", TYPE_F32, "K", 0, "second moments of the bias"},
    {"/train/idle", TYPE_I64, "K", 0, "rows since a row used the atom"},
    {THRESHOLD, TYPE_F64, "2", 0, "sum and weight of the running mean of the batches' last codes"},
    {"/train/mean", TYPE_F64, "P", 0, "what steps subtract from rows before they scale them"},
    {OFFSET, TYPE_F32, "P", 0, "learned vector subtracted beside the mean, for scaled rows"},
    {OFFSET "_m", TYPE_F32, "P", 0, "first moments of this vector"},
    {OFFSET "_v", TYPE_F32, "P", 0, "second moments of this vector"},
    {"/train/sums", TYPE_F64, "2", 0, "squares of errors and of rows since the last line"},
};
const struct object_table train_objects = {object_rows, LENGTH(object_rows)};

static const char columns[] = "step,explained_variance,explained_variance_held_out,dead";

int training_write(struct matrix_output *f, const struct train_point *p)
{
  const struct h5_file *h5 = &f->result.h5;
  const struct identity rows = {.rows = p->rows_hash}, held = {.rows = p->held_out_hash};
  TRY(object_write_lines(h5, HISTORY, columns, &train_line_form, p->lines, p->count));
  TRY(h5_attribute_long(h5, HISTORY, "steps", p->step));
  TRY(h5_attribute_long(h5, HISTORY, "scale", p->scale));
  if (p->unit) TRY(h5_attribute_long(h5, HISTORY, "matrix_unit", (gidx)p->unit));
  TRY(identity_write(h5, INPUTS_GROUP, &rows));
  return identity_write(h5, HELD_GROUP, &held);
}

static int lines_read(const struct h5_file *f, struct arena *arena, struct train_point *p)
{
  struct h5_array a;
  TRY(h5_array_open(f, HISTORY, &a));
  p->count = a.shape[0];
  TRY(h5_array_close(&a));
  CHECK(p->count >= 1 && p->count < INT32_MAX, ERR_INPUT, "'%s' of '%s' has %lld lines" ANEW,
        HISTORY, f->path, (long long)p->count);
  return object_take_lines(f, HISTORY, &train_line_form, arena, p->count, &p->lines);
}

static int point_read(const struct h5_file *f, struct arena *arena, struct train_point *p)
{
  struct identity rows, held;
  int there;
  gidx scale, unit = 0;
  TRY(h5_exists(f, HISTORY, &there));
  CHECK(there, ERR_INPUT, "'%s' was not written by train, so it cannot be resumed", f->path);
  TRY(h5_read_long(f, HISTORY, "steps", &p->step));
  TRY(h5_read_long(f, HISTORY, "scale", &scale));
  CHECK(p->step >= 0 && scale > -1000 && scale < 1000, ERR_INPUT,
        "'%s' says %lld steps, of rows times 2^%lld" ANEW, f->path, (long long)p->step,
        (long long)scale);
  TRY(h5_attribute_exists(f, HISTORY, "matrix_unit", &there));
  if (there) TRY(h5_read_long(f, HISTORY, "matrix_unit", &unit));
  TRY(identity_read(f, INPUTS_GROUP, &rows));
  TRY(identity_read(f, HELD_GROUP, &held));
  p->scale = (int)scale;
  p->unit = (uint64_t)unit;
  p->rows_hash = rows.rows;
  p->held_out_hash = held.rows;
  return lines_read(f, arena, p);
}

static const char *const moments[TRAIN_ARRAYS][2] = {
    {"/train/decoder_m", "/train/decoder_v"},
    {"/train/encoder_m", "/train/encoder_v"},
    {"/train/bias_m", "/train/bias_v"},
};

int training_is_state(const struct h5_file *f, int *is)
{
  return h5_exists(f, "/train/sums", is);
}

static const char *const offsets[] = {OFFSET, OFFSET "_m", OFFSET "_v"};

static int offset_write(const struct h5_file *h5, const struct train_point *point, idx p)
{
  if (point->mean) TRY(object_write_vector(h5, "/train/mean", p, point->mean));
  for (int i = 0; i < LENGTH(offsets); i++)
    TRY(object_write_vector(h5, offsets[i], p, point->state->offset[i]));
  return OK;
}

int training_state_write(struct matrix_output *f, const struct train_point *point, idx k, idx p,
                         int learns_offset)
{
  const struct h5_file *h5 = &f->result.h5;
  const struct train_state *s = point->state;
  const real sums[] = {s->error, s->size};
  gidx shape[] = {k, p};
  for (int i = 0; i < TRAIN_ARRAYS; i++) {
    int rank = i == TRAIN_BIAS ? 1 : 2;
    TRY(object_write(h5, moments[i][0], rank, shape, s->m[i]));
    TRY(object_write(h5, moments[i][1], rank, shape, s->v[i]));
  }
  const real threshold[] = {s->threshold.sum, s->threshold.weight};
  if (threshold[1] > 0) TRY(object_write_vector(h5, THRESHOLD, LENGTH(threshold), threshold));
  TRY(object_write_vector(h5, "/train/bias", k, s->w[TRAIN_BIAS]));
  TRY(object_write_vector(h5, "/train/idle", k, s->idle));
  TRY(object_write_vector(h5, "/train/sums", LENGTH(sums), sums));
  return learns_offset ? offset_write(h5, point, p) : OK;
}

/* Read the mean that training steps subtract.  If an offset is learned, read it too; then the mean
 * is in /train/mean. */
static int mean_read(const struct h5_file *f, const struct train_state *s, idx p, real *mean,
                     int *has_mean)
{
  int learns;
  TRY(h5_exists(f, OFFSET, &learns));
  const char *object = learns ? "/train/mean" : "/mean";
  for (int i = 0; i < LENGTH(offsets) && learns; i++)
    TRY(object_load(f, offsets[i], p, 0, TYPE_F32, s->offset[i]));
  TRY(h5_exists(f, object, has_mean));
  return *has_mean ? object_load(f, object, p, 0, TYPE_F64, mean) : OK;
}

static int state_read(const struct h5_file *f, struct train_state *s, idx k, idx p, real *mean,
                      int *has_mean)
{
  real sums[2], threshold[2] = {0};
  int has_threshold;
  TRY(object_load(f, "/atoms", k, p, TYPE_F32, s->w[TRAIN_DECODER]));
  TRY(object_load(f, "/encoder/weights", k, p, TYPE_F32, s->w[TRAIN_ENCODER]));
  TRY(object_load(f, "/train/bias", k, 0, TYPE_F32, s->w[TRAIN_BIAS]));
  for (int i = 0; i < TRAIN_ARRAYS; i++) {
    gidx width = i == TRAIN_BIAS ? 0 : p;
    TRY(object_load(f, moments[i][0], k, width, TYPE_F32, s->m[i]));
    TRY(object_load(f, moments[i][1], k, width, TYPE_F32, s->v[i]));
  }
  TRY(object_load(f, "/train/idle", k, 0, TYPE_I64, s->idle));
  TRY(object_load(f, "/train/sums", 2, 0, TYPE_F64, sums));
  TRY(h5_exists(f, THRESHOLD, &has_threshold));
  if (has_threshold) TRY(object_load(f, THRESHOLD, 2, 0, TYPE_F64, threshold));
  s->error = sums[0];
  s->size = sums[1];
  s->threshold = (struct batch_threshold){threshold[0], threshold[1]};
  return mean_read(f, s, p, mean, has_mean);
}

/* Read everything, into the arena. */
static int all_read(const struct h5_file *f, struct arena *arena, idx k, idx p,
                    struct train_point *point, struct train_state *s)
{
  real *mean;
  int has_mean;
  TRY(point_read(f, arena, point));
  if (!s) return OK;
  TRY(train_state_alloc(s, arena, k, p));
  TRY(arena_alloc(arena, &mean, p, sizeof *mean));
  TRY(state_read(f, s, k, p, mean, &has_mean));
  point->mean = has_mean ? mean : NULL;
  return OK;
}

int training_read(const char *path, struct arena *arena, idx k, idx p, struct train_point *point,
                  struct train_state *state)
{
  struct h5_file f;
  TRY(h5_open(&f, path));
  return h5_close_after(&f, all_read(&f, arena, k, p, point, state));
}
