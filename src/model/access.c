/* SPDX-License-Identifier: BSD-3-Clause
 * One worker job a call, or one ahead of it. */
#include "model/access.h"

#include "base/num.h"
#include "base/status.h"
#include "base/sums.h"

enum { PIECE_BYTES = 16 << 20 }; /* that a row_reader reads at a time */

struct rows_job {
  struct row_source rows;
  gidx first, count;
  float *x;
};

static int rows_job_run(void *argument)
{
  const struct rows_job *j = argument;
  return j->rows.read(j->rows.self, j->first, (idx)j->count, j->x);
}

int rows_fetch(struct worker *w, struct rows_access access)
{
  struct rows_job job = {*access.rows, access.first, access.count, access.x};
  return worker_run(w, rows_job_run, &job);
}

int rows_access(struct worker *w, struct rows_access access)
{
  TRY(rows_fetch(w, access));
  return rows_source_check(access.rows, access.x, access.first, access.count);
}

int row_reader_open(struct row_reader *r, const struct row_source *rows, struct arena *arena)
{
  gidx p = rows->p;
  r->rows = rows;
  r->most = imin(imin(ROW_BLOCK, rows->n), 1 + PIECE_BYTES / (p * (gidx)sizeof *r->x));
  TRY(arena_alloc(arena, &r->x, r->most * p, sizeof *r->x));
  TRY(arena_alloc(arena, &r->next, r->most * p, sizeof *r->next));
  return worker_open(&r->worker);
}

void row_reader_close(struct row_reader *r)
{
  worker_close(&r->worker);
}

static int reader_run(void *argument)
{
  const struct row_reader *r = argument;
  return r->rows->read(r->rows->self, r->first, (idx)r->count, r->next);
}

static int reader_begin(struct row_reader *r, gidx first, gidx count)
{
  r->first = first;
  r->count = imin(count, r->most);
  r->is_ahead = r->count > 0;
  return r->is_ahead ? worker_start(&r->worker, reader_run, r) : OK;
}

int row_reader_take(struct row_reader *r, gidx first, gidx count, gidx ahead, gidx n)
{
  float *x = r->next;
  if (!r->is_ahead) TRY(reader_begin(r, first, count));
  CHECK(r->first == first && r->count == count, ERR_INTERNAL, "rows %lld + %lld were not begun",
        (long long)first, (long long)count);
  TRY(worker_wait(&r->worker));
  r->next = r->x;
  r->x = x;
  TRY(reader_begin(r, ahead, n));
  return rows_source_check(r->rows, x, first, count);
}

int shift_access(struct worker *w, const struct row_source *rows, const real *mean, float *x,
                 real *shift)
{
  idx n = (idx)imin(rows->n, SHIFT_ROWS);
  struct rows_job job = {*rows, 0, n, x};
  if (n > 0) TRY(worker_run(w, rows_job_run, &job));
  rows_center(x, n, rows->p, mean);
  TRY(rows_source_check(rows, x, 0, n));
  rows_shift(x, n, rows->p, shift);
  return OK;
}

struct matrix_job {
  struct matrix_sink sink;
  gidx first, count;
  const float *values;
};

static int matrix_job_run(void *argument)
{
  const struct matrix_job *j = argument;
  return j->sink.write(j->sink.self, j->first, j->count, j->values);
}

int matrix_access(struct worker *w, struct matrix_access access)
{
  struct matrix_job job = {*access.sink, access.first, access.count, access.values};
  return worker_run(w, matrix_job_run, &job);
}

struct support_job {
  struct support_sink sink;
  struct support_block block;
};

static int support_job_run(void *argument)
{
  const struct support_job *j = argument;
  return j->sink.write(j->sink.self, &j->block);
}

int support_access(struct worker *w, const struct support_sink *sink,
                   const struct support_block *block)
{
  struct support_job job = {*sink, *block};
  return worker_run(w, support_job_run, &job);
}
