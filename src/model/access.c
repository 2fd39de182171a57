/* SPDX-License-Identifier: BSD-3-Clause
 * One worker job a call. */
#include "model/access.h"

#include "base/num.h"
#include "base/status.h"

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
