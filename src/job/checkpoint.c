/* SPDX-License-Identifier: BSD-3-Clause
 * One worker, which begins with the first checkpoint. */
#include "job/checkpoint.h"

#include "base/status.h"
#include "job/agreement.h"

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

static int writer_start(struct job *job)
{
  TRY(job->type->snapshot(job->self));
  if (job->run->comm.rank) return OK;
  if (!job->writer.state) TRY(worker_open(&job->writer));
  return worker_start(&job->writer, job->type->save, job->self);
}

int job_checkpoint(struct job *job)
{
  struct comm *c = &job->run->comm;
  TRY(job_wait(job));
  TRY(inputs_confirm(c));
  return comm_agree(c, job->writes_beside ? writer_start(job) : job->type->save(job->self));
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
