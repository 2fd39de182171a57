/* SPDX-License-Identifier: BSD-3-Clause
 * The order of a job's steps, so that no command has to know it.  Rank 0 handles the files. */
#include "job/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/key_lines.h"
#include "base/log.h"
#include "base/status.h"
#include "io/inputs.h"
#include "io/matrix.h"
#include "io/part.h"
#include "io/writer.h"
#include "io/input_agreement.h"
#include "job/summary.h"

int job_part_refuse(const char *path)
{
  FAIL(ERR_CREATE,
       "'%s' already exists, of a job that stopped: add --resume to continue it, or --force to "
       "begin again",
       path);
}

/* The file that an earlier run left: a journal, or the file in the place of the result. */
static const char *left_name(const struct job *job)
{
  return *job->left ? job->left : job->place.file;
}

int job_file_check(const struct job *job, const struct output_path *place)
{
  int is_result = place == &job->place;
  const char *file = is_result ? left_name(job) : place->file;
  char why[1024];
  int status = identity_text_check(&job->run->identity, file, place->shown);
  if (status != ERR_INPUT || !is_result || !job->advice || !*job->advice) return status;
  status_take(why, sizeof why);
  FAIL(ERR_INPUT, "%s%s", why, job->advice);
}

/* A: open the file that an earlier run left, and check its options and known inputs. */
static int earlier_open(struct job *job)
{
  const struct output_path *place = &job->place;
  char reason[2048];
  int status = job->type->open(job->self, left_name(job));
  status_take(reason, sizeof reason);
  CHECK(!status, status == ERR_INPUT ? ERR_CREATE : status,
        "cannot resume '%s': %s; with --force, and not --resume, it is replaced", place->shown,
        reason);
  TRY(job_file_check(job, place));
  return job->type->find ? job->type->find(job->self, job) : OK;
}

int job_claim(struct job *job)
{
  const struct job_type *type = job->type;
  const char *output = job->output.output;
  TRY(output_path(&job->place, output, type->file, 1));
  for (int i = 0; i < JOB_MORE && type->more[i]; i++)
    TRY(output_path(&job->more[i], output, type->more[i], 1));
  return OK;
}

/* B, with --resume: read the state.  If there is none, or it is of another job, read the result.
 * If both are of other jobs, the error is that of the state. */
static int state_find(struct job *job)
{
  const struct output_path *state = &job->more[0], *result = &job->place;
  int has_state = input_is_there(state->file), has_result = input_is_there(result->file);
  const struct output_path *left = has_state ? state : result;
  char why[1024];
  if (!job->resume || !(has_state || has_result)) return OK;
  int status = job_file_check(job, left);
  if (status && !(has_state && has_result)) return status;
  if (status) {
    status_take(why, sizeof why);
    left = result;
    CHECK(!job_file_check(job, left), status, "%s", why);
  }
  TRY(job->type->read(job->self, left->file, left == result));
  job->is_resumed = !job->is_complete;
  return OK;
}

/* B, C: find earlier files.  If none can be resumed, none may exist without --force. */
static int several_find(struct job *job)
{
  const struct output_path *more = job->more;
  int is_left =
      job->type->write && input_is_there(more[0].file) && !input_is_there(job->place.file);
  if (is_left && !job->resume && !job->output.force) return job_part_refuse(more[0].file);
  TRY(job->type->read ? state_find(job) : job->type->find(job->self, job));
  for (int i = 0; i < JOB_MORE && job->type->more[i]; i++)
    TRY(output_check_left(job->more[i].file, job->output.force));
  if (job->is_resumed || job->is_complete) return OK;
  CHECK(!job->resume || job->output.force || !input_is_there(more[0].file), ERR_CREATE,
        "cannot resume: '%s' is there, '%s' is missing: restore it, or begin again, with --force "
        "and not --resume",
        more[0].shown, job->place.shown);
  TRY(output_check_free(job->place.file, job->output.force));
  for (int i = 0; i < JOB_MORE && job->type->more[i]; i++)
    TRY(output_check_free(more[i].file, job->output.force));
  return OK;
}

static int earlier_find(struct job *job)
{
  const struct output_path *place = &job->place;
  const struct job_type *type = job->type;
  if (!*job->place.file) TRY(job_claim(job));
  if (type->more[0]) return several_find(job);
  if (type->has_rows && !*job->left) strcpy(job->left, output_left(place->file));
  if (!job->output.force && !job->resume) {
    if (*job->left || part_is_left(place->file, type->part->name, type->has_rows ? job->total : 0))
      return job_part_refuse(left_name(job));
    TRY(output_check_free(place->file, 0));
  }
  return job->resume && input_is_there(left_name(job)) ? earlier_open(job) : OK;
}

int job_distribute(struct job *job)
{
  struct comm *c = &job->run->comm;
  gidx found[] = {job->done, job->is_complete, job->total, job->is_resumed || job->done > 0};
  TRY(comm_broadcast(c, found, LENGTH(found), sizeof *found));
  job->done = found[0];
  job->is_complete = found[1] != 0;
  job->total = found[2];
  job->is_resumed = found[3] != 0;
  return job->type->distribute ? job->type->distribute(job->self, c) : OK;
}

int job_open(struct job *job, const struct job_type *type, void *self,
             const struct run_inputs *inputs)
{
  struct comm *c = &job->run->comm;
  job->type = type;
  job->self = self;
  TRY(comm_agree(c, c->rank ? OK : earlier_find(job)));
  TRY(job_distribute(job));
  if (job->is_complete) return OK;
  TRY(run_begin_at(job->run, &job->place, inputs, job->is_resumed));
  if (c->rank == 0 && job->is_resumed && job->type->unit)
    log_info("resume  after %lld of %lld %s of '%s'", (long long)job->done, (long long)job->total,
             job->type->unit, job->place.shown);
  return OK;
}

int job_earlier_value(const struct job *job, const char *key, char *value, size_t capacity)
{
  struct key_line line;
  char *text;
  *value = '\0';
  if (!job->resume || !input_is_there(job->place.file)) return OK;
  TRY(writer_identity(job->place.file, &text));
  if (key_line_find(text, key, &line)) snprintf(value, capacity, "%.*s", line.length, line.value);
  free(text);
  return OK;
}

/* Check that the existing file is of this job, as far as inputs are known. */
static int job_check(const struct job *job)
{
  if (!job->type->identify) return OK; /* B, C: compared when it was found */
  TRY(job->type->identify(job->self, &job->run->identity));
  return job->is_resumed || job->is_complete ? job_file_check(job, &job->place) : OK;
}

int job_complete(struct job *job)
{
  struct comm *c = &job->run->comm;
  TRY(comm_agree(c, c->rank ? OK : job_check(job)));
  if (job->type->complete) TRY(job->type->complete(job->self, c));
  TRY(inputs_confirm(c));
  if (c->rank == 0) log_info("resume  '%s' is complete: nothing is left to do", job->place.shown);
  return OK;
}

int job_begin(struct job *job)
{
  struct comm *c = &job->run->comm;
  TRY(comm_agree(c, c->rank ? OK : job_check(job)));
  if (job->done && job->type->prepare) TRY(job->type->prepare(job->self, c));
  return comm_agree(c, c->rank ? OK : job->type->begin(job->self));
}

int job_file_finish(const struct job *job, struct matrix_output *file)
{
  struct run_fact facts[MAX_FACTS];
  return matrix_output_finish(file, facts, run_facts(job->run, job->device, job->threads, facts));
}

int job_finish(struct job *job, int (*publish)(void *self), void *self)
{
  struct comm *c = &job->run->comm;
  TRY(inputs_confirm(c));
  return comm_agree(c, c->rank ? OK : publish(self));
}
