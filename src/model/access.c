/* SPDX-License-Identifier: BSD-3-Clause
 * Each call is one job of the worker.  A row_reader has a worker of its own, whose job is to read
 * the next piece. */
#include "model/access.h"

#include "base/num.h"
#include "base/status.h"
#include "base/sums.h"
#include "base/team.h"
#include "model/identity.h"

enum { PIECE_BYTES = 16 << 20 }; /* about the most bytes of a piece of a row_reader */

enum { MAX_PARTS = 256, LEAST_PART = 128 }; /* most parts; fewest rows per part */

/* A load, cut into parts of `each` rows.  The first part may be shorter, so that it ends at a
 * multiple of the source's unit. */
struct parts {
  const struct rows_load *load;
  gidx each, before; /* number of rows by which the first part is shorter */
  uint64_t terms[MAX_PARTS];
  int status[MAX_PARTS];
};

static int part_load(struct parts *parts, gidx i)
{
  const struct rows_load *l = parts->load;
  gidx begin = imax(i * parts->each - parts->before, 0), p = l->rows->p;
  idx n = (idx)(imin((i + 1) * parts->each - parts->before, l->count) - begin);
  float *x = l->x + begin * p;
  TRY(l->rows->read(l->rows->self, l->first + begin, n, x));
  parts->terms[i] = l->terms ? items_terms(x, n, p, l->place + begin) : 0;
  rows_center(x, n, (idx)p, l->mean);
  return l->whole ? rows_source_check(l->whole, x, l->place + begin, n) : OK;
}

static void part_run(void *self, gidx i)
{
  struct parts *parts = self;
  parts->status[i] = part_load(parts, i);
  status_clear(); /* of this thread */
}

int rows_load(const struct rows_load *l)
{
  struct parts parts = {.load = l};
  int threads = l->rows->is_shared ? (int)imin(team_spare(), MAX_PARTS / 2) : 1;
  gidx unit = imax(l->rows->unit, 1);
  gidx share = threads > 1 ? imax(ceil_div(l->count, threads), LEAST_PART) : imax(l->count, 1);
  parts.each = ceil_div(share, unit) * unit;
  parts.before = threads > 1 ? l->first % unit : 0;
  gidx count = ceil_div(l->count + parts.before, parts.each);
  if (count > 1) spare_run(count, part_run, &parts);
  for (gidx i = 0; i < count; i++) {
    /* Parts that failed are read again by this thread, in the order of rows, so that the message is
     * recorded in this thread. */
    if (count == 1 || parts.status[i]) TRY(part_load(&parts, i));
    if (l->terms) *l->terms += parts.terms[i];
  }
  return OK;
}

struct rows_job {
  struct row_source rows;
  gidx first, count;
  float *x;
};

static int rows_job_run(void *argument)
{
  const struct rows_job *j = argument;
  return rows_load(&(struct rows_load){&j->rows, j->first, (idx)j->count, .x = j->x});
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
  return rows_load(&(struct rows_load){r->rows, r->first, (idx)r->count, .x = r->next});
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
