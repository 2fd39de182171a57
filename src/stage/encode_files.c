/* SPDX-License-Identifier: BSD-3-Clause
 * Behind the computation of a block, in one thread: column sums of the block before, whose place
 * the block after takes, writing the one, reading the other. */
#include "base/status.h"
#include "stage/encode_inside.h"

static int file_job_run(void *argument)
{
  struct file_job *j = argument;
  const struct encode_task *t = j->task;
  idx p = t->rows->p;
  if (j->summed_count > 0) {
    phase_begin(j->summing);
    statistics_rows(j->statistics, j->summed, j->summed_count, p);
    phase_end(j->summing, (double)j->summed_count * p * (double)sizeof *j->summed);
  }
  if (j->write.n > 0) {
    phase_begin(j->writing);
    TRY(t->sink->write(t->sink->self, &j->write));
    phase_end(j->writing, (double)j->write.n * j->write.s * 4 * (t->codes ? 3 : 2));
  }
  if (j->read_count > 0) {
    phase_begin(j->reading);
    float *x = (float *)((char *)j->read_into->host + j->read_at);
    TRY(t->rows->read(t->rows->self, j->read_first, j->read_count, x));
    rows_center(x, j->read_count, p, t->mean);
    TRY(rows_check(x, j->read_count, p, j->read_first, t->rows->name));
    phase_end(j->reading, (double)j->read_count * t->rows->row_bytes);
    gidx bytes = (gidx)j->read_count * p * (gidx)sizeof *x;
    phase_begin(j->copying);
    TRY(device_put(j->device, j->read_into, j->read_at, bytes));
    phase_end(j->copying, (double)bytes);
  }
  return OK;
}

int files_start(struct encode *e, const struct support_block *block, gidx first, int turn)
{
  gidx n = e->task->rows->n - first, share_first, share;
  n = n < 0 ? 0 : n < e->block ? n : e->block;
  comm_share(n, e->c->size, e->c->rank, &share_first, &share);
  e->job = (struct file_job){.task = e->task,
                             .statistics = &e->statistics,
                             .summed = e->rows[!e->turn].host,
                             .summed_count = e->task->codes ? e->n : 0,
                             .summing = &e->result->phases[PHASE_SUMS],
                             .read_first = first + share_first,
                             .read_count = (idx)share,
                             .device = &e->device,
                             .read_into = &e->rows[turn],
                             .read_at = share_first * e->p * (gidx)sizeof(float),
                             .reading = &e->result->phases[PHASE_READ],
                             .copying = &e->result->phases[PHASE_COPY],
                             .writing = &e->result->phases[PHASE_WRITE]};
  if (block) e->job.write = *block;
  return worker_start(&e->worker, file_job_run, &e->job);
}

int files_wait(struct encode *e)
{
  phase_begin(&e->result->phases[PHASE_WAIT]);
  int status = worker_wait(&e->worker, e->c->deadline);
  TRY(comm_agree(e->c, status));
  phase_end(&e->result->phases[PHASE_WAIT], 0);
  return OK;
}
