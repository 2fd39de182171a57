/* SPDX-License-Identifier: BSD-3-Clause
 * The files worker: while a batch is solved it writes the results of the one before and reads the
 * one after. */
#include "solve/files.h"

#include "base/status.h"
#include "solve/layout.h"

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
                               .g_b = b->g_b + (s->border[a] - s->border[f])};
}

static int files_run(void *argument)
{
  const struct files_job *job = argument;
  const struct solve_task *task = job->s->task;
  struct phase *phases = job->s->out->phases;
  for (int i = 0; i < SLOTS; i++) {
    struct batch_results *r = job->write[i];
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

int solve_files_start(struct solve *s, gidx first, int slot)
{
  const struct systems_shape *shape = s->shape;
  s->files = (struct files_job){.s = s};
  if (s->c->rank == 0) s->files.write[0] = &s->results[slot];
  if (first < s->end) {
    gidx begin, end;
    solve_deal(s, first);
    batch_part(&s->batch, s->c->rank, &begin, &end);
    s->block[slot] = systems_block_at(shape, begin, end, s->read[slot]);
    s->files.read = &s->block[slot];
  }
  return worker_start(&s->worker, files_run, &s->files);
}

int solve_files_wait(struct solve *s, uint64_t *asked)
{
  phase_begin(&s->out->phases[SOLVE_WAIT]);
  int status = worker_wait(&s->worker);
  phase_end(&s->out->phases[SOLVE_WAIT], 0);
  return comm_agree_flags(s->c, status, 0, asked);
}

int solve_files_finish(struct solve *s, int slot)
{
  s->files = (struct files_job){.s = s, .write = {&s->results[slot], &s->results[!slot]}};
  return worker_start(&s->worker, files_run, &s->files);
}
