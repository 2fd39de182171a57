/* SPDX-License-Identifier: BSD-3-Clause
 * While a batch is solved, one worker reads the next batch, and another writes the results of the
 * previous one.  With a GPU each of these takes longer than solving. */
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

static int write_run(void *argument)
{
  const struct files_job *job = argument;
  const struct solution_sink *sink = job->s->task->sink;
  struct phase *phase = &job->s->out->phases[SOLVE_WRITE];
  for (int i = 0; i < SLOTS; i++) {
    struct batch_results *r = job->write[i];
    if (!r || r->count == 0) continue;
    struct solution_block block = {r->first, r->count, r->step_t, r->step_b, r->outcomes};
    phase_begin(phase);
    TRY(sink->write(sink->self, &block));
    phase_end(phase, 8. * (double)steps_reals(job->s->shape, r->first, r->first + r->count));
    r->count = 0;
  }
  return OK;
}

static int read_run(void *argument)
{
  const struct files_job *job = argument;
  const struct system_source *systems = job->s->task->systems;
  const struct systems_block *to = job->read;
  struct phase *phase = &job->s->out->phases[SOLVE_READ];
  if (!to) return OK;
  phase_begin(phase);
  TRY(systems->read(systems->self, to));
  phase_end(phase, 8. * (double)systems_reals(job->s->shape, to->first, to->first + to->count));
  return OK;
}

static int files_run(struct solve *s)
{
  TRY(worker_start(&s->writer, write_run, &s->files));
  return worker_start(&s->reader, read_run, &s->files);
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
  return files_run(s);
}

int solve_files_wait(struct solve *s, uint64_t *asked)
{
  phase_begin(&s->out->phases[SOLVE_WAIT]);
  int read = worker_wait(&s->reader), written = worker_wait(&s->writer);
  phase_end(&s->out->phases[SOLVE_WAIT], 0);
  return comm_agree_flags(s->c, written ? written : read, 0, asked);
}

int solve_files_finish(struct solve *s, int slot)
{
  s->files = (struct files_job){.s = s, .write = {&s->results[slot], &s->results[!slot]}};
  return files_run(s);
}
