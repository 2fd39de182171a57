/* SPDX-License-Identifier: BSD-3-Clause
 * Every rank may write its own rows.  Rows that an earlier run wrote count as rows of rank 0. */
#include "encoding/encode_ranks.h"

#include "base/status.h"
#include "base/sums.h"
#include "encoding/encode_growing.h"
#include "encoding/encode_ranges.h"
#include "io/supports_ranks.h"

struct supports_shape encode_shape(const struct encode_task *t, gidx n)
{
  return (struct supports_shape){.n = n,
                                 .k = t->atoms->k,
                                 .s = t->top_s,
                                 .d = t->atoms->d,
                                 .p = t->rows->p,
                                 .has_codes = t->codes,
                                 .nonnegative = t->nonnegative,
                                 .encoder = encode_kind_name(t),
                                 .solved = t->solves,
                                 .cuts = t->cuts};
}

static int may(const struct encode_task *task, gidx n, int ranks)
{
  return ranks > 1 && task->groups == ranks && !task->encoder && n > ROW_BLOCK;
}

int encode_ranks_may(const struct encode_task *task, int ranks)
{
  return may(task, task->rows->n, ranks);
}

/* Copy the rows of an earlier run, as rows of rank 0. */
static int before_copy(struct encode_files *f)
{
  if (!f->job.done || f->common.recorded) return OK;
  TRY(part_copy(&f->before, &f->file.sink, 0));
  supports_input_close(&f->before.supports);
  return OK;
}

int encode_ranks_begin(struct encode_files *f)
{
  struct comm *c = &f->job.run->comm;
  struct encode_task *task = f->task;
  const struct supports_shape shape = encode_shape(task, ranges_rows(f));
  task->by_ranks = may(task, f->common.grows ? f->n : task->rows->n, c->size);
  if (task->by_ranks) TRY(supports_ranks_begin(&f->file, c, &shape, task->rounds, &task->by_ranks));
  return comm_agree(c, c->rank ? OK : before_copy(f));
}

/* Check the rows of a growing file that come after its last record. */
static int growing_check(struct encode_files *f, gidx end)
{
  const struct comm *c = &f->job.run->comm;
  gidx at = ranges_first(f);
  TRY(supports_ranks_check(&f->file, &f->job.run->comm, f->task->by_ranks, at + f->common.recorded,
                           at + end));
  if (c->rank && end == f->n) encode_growing_free(f);
  return OK;
}

int encode_ranks_end(struct encode_files *f, const struct encode_result *result)
{
  if (f->common.grows) return growing_check(f, f->job.done + result->part.n);
  if (!f->task->by_ranks) return OK;
  return supports_ranks_end(&f->file, &f->job.run->comm, f->job.done + result->part.n);
}
