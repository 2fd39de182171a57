/* SPDX-License-Identifier: BSD-3-Clause
 * First come the requests: a signal, the time or a file may ask a job to stop; the time asks it to
 * save.  Then comes publishing; a thread of rank 0 may do it (writes_beside). */
#include "job/checkpoint.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/pace.h"
#include "base/status.h"
#include "io/sidecars.h"
#include "io/input_agreement.h"
#include "job/summary.h"

/* file[capacity] <- the path of the file beside `shown` that asks a job to stop. */
static void stop_file(const char *shown, char *file, size_t capacity)
{
  char folder[4096];
  path_folder(shown, folder);
  snprintf(file, capacity, "%s/STOP", folder);
}

enum { BY_SIGNAL = 1, BY_FILE = 2 };

static uint64_t wish_asked(void *self)
{
  const struct job *job = self;
  char file[4096 + 8];
  uint64_t asked = stop_signal() ? BY_SIGNAL : 0;
  if (job->run->comm.rank) return asked;
  stop_file(job->place.shown, file, sizeof file);
  return asked | (access(file, F_OK) ? 0 : BY_FILE);
}

uint64_t job_stop_asked(struct job *job)
{
  const struct run *run = job->run;
  if (run->max_seconds > 0 && log_seconds() >= run->max_seconds) stop_ask("--max-seconds");
  return wish_asked(job);
}

enum { MAX_TYPED = 400 }; /* the longest path of used.in in the log, in bytes */

/* text[capacity] <- how to continue the job; "" if the path of used.in is long or needs quotes. */
static void command_again(const struct run *run, char *text, size_t capacity)
{
  static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                              "/._-+=,:@%";
  size_t length = strspn(run->used, plain);
  text[0] = '\0';
  if (!length || run->used[length] || length > MAX_TYPED) return;
  snprintf(text, capacity, ", as by: sagitta %s %.*s --resume", run->command->name, MAX_TYPED,
           run->used);
}

void job_stopped(struct job *job, uint64_t asked)
{
  struct run *run = job->run;
  char file[4096 + 8], again[512];
  run->stopped = 1;
  if (run->comm.rank) return;
  stop_file(job->place.shown, file, sizeof file);
  command_again(run, again, sizeof again);
  if (asked & BY_FILE)
    log_notice("stopped by '%s': remove it, and --resume continues the job%s", file, again);
  else
    log_notice("stopped by %s: --resume continues the job%s", stop_why(), again);
  pace_ending_log();
}

int job_poll(struct job *job, int *stop)
{
  uint64_t asked = job_stop_asked(job);
  TRY(comm_or(&job->run->comm, &asked, 1));
  *stop = asked != 0;
  if (asked) job_stopped(job, asked);
  return OK;
}

/* Is it too early to check for STOP again?  No, if a signal or the time asks to stop. */
static int is_early(struct job *job)
{
  const struct run *run = job->run;
  real now = log_seconds(), limit = run->max_seconds > 0 ? run->max_seconds : INFINITY;
  if (job->polled > 0 && now - job->polled < job->poll_seconds && now < limit && !stop_signal())
    return 1;
  job->polled = now;
  return 0;
}

void job_save_later(struct job *job)
{
  job->due = log_seconds() + job->save_seconds;
}

/* Rank 0: is it time for a checkpoint? */
static uint64_t save_asked(struct job *job)
{
  if (!job->stops_to_save || job->run->comm.rank) return 0;
  if (job->due == 0) job_save_later(job);
  return log_seconds() >= job->due ? STOPS_SAVE : 0;
}

static uint64_t stop_asked(void *self)
{
  struct job *job = self;
  uint64_t save = save_asked(job);
  if (job->may_stop && !job->may_stop(job->of)) return save;
  return save | (is_early(job) ? 0 : job_stop_asked(job));
}

static void job_ends(void *self, uint64_t asked)
{
  struct job *job = self;
  job->is_save_asked = asked == STOPS_SAVE;
  if (!job->is_save_asked) job_stopped(job, asked);
}

struct stops job_stops(struct job *job)
{
  return (struct stops){stop_asked, job_ends, job};
}

struct stops job_wishes(struct job *job)
{
  return (struct stops){wish_asked, job_ends, job};
}

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

/* Called by the writer thread of rank 0, or by all ranks if there is none. */
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
