/* SPDX-License-Identifier: BSD-3-Clause
 * Rank 0 finds files and writes them; what it finds goes to all ranks. */
#include "cli/refit_files.h"

#include <string.h>

#include "base/num.h"
#include "base/status.h"
#include "job/summary.h"
#include "io/inputs.h"
#include "job/agreement.h"
#include "refit/state_write.h"

int refit_files_check(const struct refit_files *f)
{
  char why[1024];
  const char *advice = sweep_files_advice(&f->sweep);
  int is_there, status = job_file_check(&f->job, &f->job.place, &is_there);
  if (status != ERR_INPUT || !*advice) return status;
  status_take(why, sizeof why);
  FAIL(ERR_INPUT, "%s%s", why, advice);
}

/* Read how far an earlier run of this job came. */
static int before_find(struct refit_files *f, struct job *job)
{
  const char *path = job->place.file;
  job->is_resumed = input_is_there(path);
  if (!job->is_resumed) return OK;
  f->has_supports = input_is_there(job->more[REFIT_SUPPORTS].file);
  TRY(refit_files_check(f));
  TRY(fit_read(path, &f->arena, &f->facts, &f->lines));
  CHECK(f->facts.sweeps <= f->sweeps, ERR_USAGE,
        "'%s' has %lld sweeps, and '--sweeps' asks for %lld: resume with as many or more, or begin "
        "again with --force and not --resume",
        path, (long long)f->facts.sweeps, (long long)f->sweeps);
  return OK;
}

/* Refuse to begin where a refit was stopped before the sweeps that are wanted. */
static int stopped_check(struct refit_files *f, const char *path)
{
  struct fit_facts was;
  struct history_line *lines;
  if (!input_is_there(path)) return OK;
  int status = fit_read(path, &f->arena, &was, &lines);
  status_clear();
  return !status && was.sweeps < f->sweeps ? job_part_refuse(path) : OK;
}

static int find(void *self, struct job *job)
{
  TRY(sweep_files_claim(&((struct refit_files *)self)->sweep, &job->output, job->resume));
  if (job->resume) return before_find(self, job);
  return job->output.force ? OK : stopped_check(self, job->place.file);
}

static int distribute(void *self, struct comm *c)
{
  struct refit_files *f = self;
  struct job *job = &f->job;
  TRY(comm_broadcast(c, &job->place, 1, sizeof job->place));
  TRY(comm_broadcast(c, job->more, 1, sizeof job->more));
  TRY(comm_broadcast(c, &f->has_supports, 1, sizeof f->has_supports));
  TRY(comm_broadcast(c, &f->facts, 1, sizeof f->facts));
  TRY(sweep_files_broadcast(&f->sweep));
  job->is_resumed |= f->sweep.there;
  return OK;
}

/* Allocate lines for all sweeps to come, and copy those that there are. */
static int lines_alloc(struct refit_files *f)
{
  struct history_line *old = f->lines;
  gidx max = imax(f->sweeps, f->facts.sweeps);
  TRY(arena_alloc(&f->arena, &f->lines, max + 1, sizeof *f->lines));
  if (old) memcpy(f->lines, old, (size_t)(f->facts.sweeps + 1) * sizeof *old);
  return OK;
}

void refit_files_free(struct refit_files *f)
{
  state_copy_free(&f->copy);
  arena_free(&f->arena);
  memset(f, 0, sizeof *f);
}

static int values_write(void *self, gidx first, gidx count, const float *values)
{
  return matrix_output_write(self, first, count, values);
}

static int dictionary_write(struct refit_files *f)
{
  struct matrix_output *file = &f->dictionary_file;
  const struct refit_state *state = f->result.state;
  const struct refit_task *task = state->task;
  TRY(dictionary_output_create(file, f->job.place.file, state->k, state->d, state->p));
  TRY(nonnegative_write(&file->result.h5, task->nonnegative));
  f->frames_sink = (struct matrix_sink){file, values_write};
  TRY(refit_state_frames_write(state, &f->frames_sink));
  if (task->mean) TRY(object_write_vector(&file->result.h5, "/mean", state->p, task->mean));
  TRY(fit_write(file, &f->published, f->lines, f->result.steps, state->k));
  return job_file_finish(&f->job, file);
}

static int supports_create(struct refit_files *f)
{
  const struct refit_state *state = f->result.state;
  const struct supports_shape shape = {.n = state->total,
                                       .k = state->k,
                                       .s = state->s,
                                       .d = state->d,
                                       .p = state->p,
                                       .has_codes = 1,
                                       .nonnegative = state->task->nonnegative};
  return supports_output_create(&f->supports_file, f->job.more[REFIT_SUPPORTS].file, &shape);
}

static int supports_end(struct refit_files *f)
{
  const struct refit_state *state = f->result.state;
  const struct identity *contents = &state->contents;
  struct run_fact facts[MAX_FACTS];
  int n = run_facts(f->job.run, f->job.device, f->job.threads, facts);
  const struct supports_ending ending = {
      .metrics = f->result.metrics,
      .mean = state->task->mean,
      .rho = state->rho,
      .rounds = (idx)f->published.start.rounds,
      .sweeps = f->published.sweeps,
      .inputs = {.rows = state->inputs.rows, .dictionary = contents->dictionary},
      .contents = {.supports = contents->supports, .codes = contents->codes}};
  return supports_output_finish(&f->supports_file, &ending, facts, n);
}

static int supports_write(struct refit_files *f)
{
  struct comm *c = comm_whole(f->result.state->c);
  TRY(comm_agree(c, c->rank ? OK : supports_create(f)));
  TRY(refit_state_supports_write(f->result.state, &f->supports_file.sink));
  return comm_agree(c, c->rank ? OK : supports_end(f));
}

/* In the writer's thread what is published is a copy, the communicator included. */
static int save(void *self)
{
  struct refit_files *f = self;
  if (f->saves) return f->job.run->comm.rank ? OK : f->saves(f->job.of);
  struct comm *c = comm_whole(f->result.state->c);
  phase_begin(f->write);
  TRY(comm_agree(c, c->rank ? OK : dictionary_write(f)));
  TRY(supports_write(f));
  sweep_files_end(&f->sweep);
  phase_end(f->write, 0);
  return OK;
}

static int snapshot(void *self)
{
  struct refit_files *f = self;
  struct state_copy *copy = &f->copy;
  const struct refit_result *r = &f->result;
  state_copy_take(copy, r->state, r->metrics, r->steps, f->job.threads);
  copy->task.threads = f->job.threads;
  f->result = (struct refit_result){&copy->state, &copy->metrics, copy->steps};
  return OK;
}

int refit_files_open(struct refit_files *f, struct run *run, const struct output_options *output,
                     int resume, const struct run_inputs *inputs)
{
  static const struct job_type type = {.file = "dictionary.h5",
                                       .more = {[REFIT_SUPPORTS] = "supports.h5"},
                                       .find = find,
                                       .distribute = distribute,
                                       .snapshot = snapshot,
                                       .save = save,
                                       .saves_together = 1};
  f->job = (struct job){.run = run, .type = &type, .self = f, .output = *output, .resume = resume};
  f->sweep.job = &f->job;
  TRY(job_open(&f->job, inputs));
  return comm_agree(&run->comm, lines_alloc(f));
}

/* The list of inputs is the writer's while it publishes. */
static int result_set(struct refit_files *f)
{
  TRY(job_wait(&f->job));
  f->result = f->now;
  f->facts.contents = f->now.state->contents;
  f->published = f->facts;
  summary_inputs_set(&f->facts.start.inputs);
  return OK;
}

int refit_files_publish(struct refit_files *f)
{
  TRY(result_set(f));
  return job_checkpoint(&f->job);
}

int refit_supports_publish(struct refit_files *f)
{
  TRY(result_set(f));
  phase_begin(f->write);
  TRY(inputs_confirm(&f->job.run->comm));
  TRY(supports_write(f));
  phase_end(f->write, 0);
  return OK;
}
