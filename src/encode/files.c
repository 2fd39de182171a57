/* SPDX-License-Identifier: BSD-3-Clause
 * The files worker, the only thread that uses files: it writes the block that was finished last and
 * reads the next one. */
#include "encode/files.h"

#include "base/num.h"
#include "base/status.h"
#include "encode/encode_impl.h"
#include "model/access.h"

static int results_write(const struct file_job *j)
{
  const struct encode_task *t = j->task;
  phase_begin(&j->phases[PHASE_WRITE]);
  TRY(t->sink->write(t->sink->self, &j->write));
  phase_end(&j->phases[PHASE_WRITE], (double)j->write.n * j->write.s * 4 * (t->codes ? 3 : 2));
  return OK;
}

/* Read rows, hash them, subtract the mean, check them, and copy them to the device. */
static int rows_read(const struct file_job *j)
{
  const struct row_source *rows = j->task->rows;
  float *x = (float *)((char *)j->read_into->host + j->read_at);
  phase_begin(&j->phases[PHASE_READ]);
  struct rows_load load = {
      rows,          j->read_first, j->read_count,         x,
      j->rows_terms, j->task->mean, encode_whole(j->task), j->task->first + j->read_first};
  TRY(rows_load(&load));
  phase_end(&j->phases[PHASE_READ], (double)j->read_count * rows->row_bytes);
  gidx bytes = (gidx)j->read_count * rows->p * (gidx)sizeof *x;
  phase_begin(&j->phases[PHASE_COPY]);
  TRY(device_put(j->device, j->read_into, j->read_at, bytes));
  phase_end(&j->phases[PHASE_COPY], (double)bytes);
  return OK;
}

static int file_job_run(void *argument)
{
  const struct file_job *j = argument;
  if (j->write.n > 0) TRY(results_write(j));
  return j->read_count > 0 ? rows_read(j) : OK;
}

int files_start(struct encode *e)
{
  gidx n = encode_turn_at(e, e->read), first, share_first, share;
  gidx buffer = e->readings++ % ROW_BUFFERS;
  encode_group_share(e, n, e->number, &first, &share);
  encode_rank_share(e, n, e->c->rank, &share_first, &share);
  e->file_job = (struct file_job){.task = e->task,
                                  .read_first = e->read + share_first,
                                  .read_count = (idx)share,
                                  .device = &e->device,
                                  .read_into = &e->rows[buffer],
                                  .read_at = (share_first - first) * e->p * (gidx)sizeof(float),
                                  .write = e->finished,
                                  .phases = e->result->phases,
                                  .rows_terms = &e->terms[buffer]};
  e->terms[buffer] = 0;
  e->read += n;
  e->finished.n = 0;
  return worker_start(&e->files, file_job_run, &e->file_job);
}

int files_wait(struct encode *e)
{
  struct phase *phase = &e->result->phases[PHASE_WAIT_FILES];
  phase_begin(phase);
  TRY(worker_wait(&e->files));
  phase_end(phase, 0);
  return OK;
}
