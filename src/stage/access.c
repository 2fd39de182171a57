/* SPDX-License-Identifier: BSD-3-Clause
 * One job per call.  After a deadline the thread is left behind with its arguments, so what it may
 * still touch must outlive it: the caller ends the program without freeing. */
#include "stage/access.h"

#include "base/status.h"

int access_run(struct worker *w, double deadline, int (*job)(void *), void *argument)
{
  TRY(worker_start(w, job, argument));
  return worker_wait(w, deadline);
}

static int rows_job(void *argument)
{
  const struct rows_access *a = argument;
  TRY(a->rows->read(a->rows->self, a->first, (idx)a->count, a->x));
  return OK;
}

int rows_access(struct worker *w, double deadline, struct rows_access access)
{
  static struct rows_access last;
  last = access;
  TRY(access_run(w, deadline, rows_job, &last));
  return rows_check(access.x, access.count, access.rows->p, access.first, access.rows->name);
}

static int matrix_job(void *argument)
{
  const struct matrix_access *a = argument;
  return a->sink->write(a->sink->self, a->first, a->count, a->values);
}

int matrix_access(struct worker *w, double deadline, struct matrix_access access)
{
  static struct matrix_access last;
  last = access;
  return access_run(w, deadline, matrix_job, &last);
}

struct support_access {
  const struct support_sink *sink;
  const struct support_block *block;
};

static int support_job(void *argument)
{
  const struct support_access *a = argument;
  return a->sink->write(a->sink->self, a->block);
}

int support_access(struct worker *w, double deadline, const struct support_sink *sink,
                   const struct support_block *block)
{
  static struct support_block last;
  static struct support_access access;
  last = *block;
  access = (struct support_access){sink, &last};
  return access_run(w, deadline, support_job, &access);
}
