/* SPDX-License-Identifier: BSD-3-Clause
 * Behind the computation of a batch one thread writes the results of the one before and reads the
 * one after. */
#include "base/status.h"
#include "stage/solve_inside.h"

struct systems_block block_view(const struct systems_shape *s, gidx first, gidx end, real *at)
{
  struct systems_block b = {.first = first, .count = end - first, .h = at};
  b.b = b.h + (s->h[end] - s->h[first]);
  b.g = b.b + (s->b[end] - s->b[first]);
  b.c = b.g + (s->g[end] - s->g[first]);
  b.hb = b.c + (s->c[end] - s->c[first]);
  return b;
}

struct arrow_system system_view(const struct systems_shape *s, const struct systems_block *b,
                                gidx a)
{
  gidx f = b->first;
  return (struct arrow_system){.d = s->d[a],
                               .k = s->k[a],
                               .n = s->row[a + 1] - s->row[a],
                               .h = b->h + (s->h[a] - s->h[f]),
                               .b = b->b + (s->b[a] - s->b[f]),
                               .g = b->g + (s->g[a] - s->g[f]),
                               .c = b->c + (s->c[a] - s->c[f]),
                               .hb = b->hb + (s->border[a] - s->border[f])};
}

/* What the thread of the files does in one go; static, because after a deadline it is left
 * behind. */
static struct files_job {
  struct solve *s;
  struct results *write[TURNS]; /* or NULL */
  struct systems_block *read;   /* or NULL */
} files;

static int files_run(void *argument)
{
  struct files_job *job = argument;
  const struct solve_task *task = job->s->task;
  struct phase *phases = job->s->out->phases;
  for (int i = 0; i < TURNS; i++) {
    struct results *r = job->write[i];
    if (!r || r->count == 0) continue;
    struct solution_block block = {r->first, r->count, r->step_t, r->step_b, r->outcomes};
    phase_begin(&phases[SOLVE_WRITE]);
    TRY(task->sink->write(task->sink->self, &block));
    phase_end(&phases[SOLVE_WRITE],
              8. * (double)steps_reals(job->s->shape, r->first, r->first + r->count));
    r->count = 0;
  }
  if (!job->read) return OK;
  phase_begin(&phases[SOLVE_READ]);
  TRY(task->systems->read(task->systems->self, job->read));
  phase_end(&phases[SOLVE_READ], 8. * (double)systems_reals(job->s->shape, job->read->first,
                                                            job->read->first + job->read->count));
  return OK;
}

int solve_files_start(struct solve *s, gidx first, int turn)
{
  const struct systems_shape *shape = s->shape;
  files = (struct files_job){.s = s};
  if (s->c->rank == 0) files.write[0] = &s->results[turn];
  if (first < shape->count) {
    gidx begin, end;
    solve_deal(s, first);
    batch_part(&s->batch, s->c->rank, &begin, &end);
    s->block[turn] = block_view(shape, begin, end, s->read[turn]);
    files.read = &s->block[turn];
  }
  return worker_start(&s->worker, files_run, &files);
}

int solve_files_wait(struct solve *s)
{
  phase_begin(&s->out->phases[SOLVE_WAIT]);
  int status = worker_wait(&s->worker, s->c->deadline);
  phase_end(&s->out->phases[SOLVE_WAIT], 0);
  return comm_agree(s->c, status);
}

int solve_files_finish(struct solve *s, int turn)
{
  files = (struct files_job){.s = s, .write = {&s->results[turn], &s->results[!turn]}};
  return worker_start(&s->worker, files_run, &files);
}
