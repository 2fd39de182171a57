/* SPDX-License-Identifier: BSD-3-Clause
 * There is one worker, which is started at the first checkpoint. */
#include "job/checkpoint.h"

#include "base/status.h"
#include "job/agreement.h"
#include "job/stop.h"
#include "job/summary.h"

int job_wait(struct job *job)
{
  struct worker *w = &job->writer;
  if (!job->writes_beside) return OK;
  return comm_agree(&job->run->comm, w->state ? worker_wait(w) : OK);
}

int job_is_saving(struct job *job)
{
  return job->writer.state && worker_is_busy(&job->writer);
}

int job_summary(const struct job *job)
{
  struct json *own;
  TRY(summary_entries(&own));
  return job->summary(job->of, own);
}

/* Called on rank 0, in the writer thread or not; or on all ranks. */
static int state_save(void *self)
{
  struct job *job = self;
  int rank = job->run->comm.rank;
  const struct job_type *type = job->type;
  if (type->save && (rank == 0 || type->saves_together)) TRY(type->save(job->self));
  if (type->write && rank == 0) TRY(type->write(job->self, job->more[0].file, 0));
  if (rank || !job->summary) return OK;
  TRY(job_summary(job));
  summary_write(job->run);
  return OK;
}

static int writer_start(struct job *job)
{
  TRY(job->type->snapshot(job->self));
  if (job->run->comm.rank) return OK;
  if (!job->writer.state) TRY(worker_open(&job->writer));
  return worker_start(&job->writer, state_save, job);
}

int job_checkpoint(struct job *job)
{
  struct comm *c = &job->run->comm;
  TRY(job_wait(job));
  TRY(inputs_confirm(c));
  TRY(comm_agree(c, job->writes_beside ? writer_start(job) : state_save(job)));
  job_save_later(job);
  return OK;
}

static int result_write(void *self)
{
  struct job *job = self;
  TRY(job->type->write(job->self, job->place.file, 1));
  output_remove(job->more[0].file);
  return OK;
}

int job_publish(struct job *job, int is_end)
{
  return is_end ? job_finish(job, result_write, job) : job_checkpoint(job);
}

int job_settle(struct job *job, int status, struct phase *wait)
{
  if (!status && job->writes_beside) {
    phase_begin(wait);
    status = job_wait(job);
    phase_end(wait, 0);
  }
  worker_close(&job->writer);
  return status;
}
