/* SPDX-License-Identifier: BSD-3-Clause
 * Behind the computation, in one thread that alone uses files: writing the block that ended last,
 * reading the next one. */
#include "base/status.h"
#include "stage/encode_inside.h"

static int file_job_run(void *argument)
{
  struct file_job *j = argument;
  const struct encode_task *t = j->task;
  idx p = t->rows->p;
  if (j->write.n > 0) {
    phase_begin(&j->phases[PHASE_WRITE]);
    TRY(t->sink->write(t->sink->self, &j->write));
    phase_end(&j->phases[PHASE_WRITE], (double)j->write.n * j->write.s * 4 * (t->codes ? 3 : 2));
  }
  if (j->read_count > 0) {
    phase_begin(&j->phases[PHASE_READ]);
    float *x = (float *)((char *)j->read_into->host + j->read_at);
    TRY(t->rows->read(t->rows->self, j->read_first, j->read_count, x));
    rows_center(x, j->read_count, p, t->mean);
    TRY(rows_check(x, j->read_count, p, j->read_first, t->rows->name));
    phase_end(&j->phases[PHASE_READ], (double)j->read_count * t->rows->row_bytes);
    gidx bytes = (gidx)j->read_count * p * (gidx)sizeof *x;
    phase_begin(&j->phases[PHASE_COPY]);
    TRY(device_put(j->device, j->read_into, j->read_at, bytes));
    phase_end(&j->phases[PHASE_COPY], (double)bytes);
  }
  return OK;
}

static int files_start(struct encode *e)
{
  gidx n = e->task->rows->n - e->read, share_first, share;
  n = n < e->block ? n : e->block;
  comm_share(n, e->c->size, e->c->rank, &share_first, &share);
  e->file_job = (struct file_job){.task = e->task,
                                  .read_first = e->read + share_first,
                                  .read_count = (idx)share,
                                  .device = &e->device,
                                  .read_into = &e->rows[e->read / e->block % ROW_BUFFERS],
                                  .read_at = share_first * e->p * (gidx)sizeof(float),
                                  .write = e->finished,
                                  .phases = e->result->phases};
  e->read += n;
  e->finished.n = 0;
  return worker_start(&e->files, file_job_run, &e->file_job);
}

static int worker_ended(struct encode *e)
{
  struct phase *phase = &e->result->phases[PHASE_WAIT];
  phase_begin(phase);
  TRY(worker_wait(&e->files, e->c->deadline));
  phase_end(phase, 0);
  return OK;
}

int files_turn(struct encode *e)
{
  int status = worker_ended(e);
  if (!status) status = files_start(e);
  return comm_agree(e->c, status);
}

int files_wait(struct encode *e)
{
  return comm_agree(e->c, worker_ended(e));
}
