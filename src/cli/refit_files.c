/* SPDX-License-Identifier: BSD-3-Clause
 * Rank 0 finds files and writes them; what it finds goes to all ranks.  Going on from them comes
 * last: the inputs are loaded as for a fresh run and compared, by the hashes of their contents,
 * with what dictionary.h5 says that it was begun with; then its frames take their place.
 * supports.h5 is used if it names this dictionary and holds what the dictionary names. */
#include "cli/refit_files.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
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
  int status = job_file_check(&f->job, &f->job.place);
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
  TRY(sweep_files_claim(&((struct refit_files *)self)->sweep));
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
  if (f->save_instead) return f->job.run->comm.rank ? OK : f->save_instead(f->job.of);
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

int refit_files_open(struct refit_files *f, const struct run_inputs *inputs)
{
  static const struct job_type type = {.file = "dictionary.h5",
                                       .more = {[REFIT_SUPPORTS] = "supports.h5"},
                                       .find = find,
                                       .distribute = distribute,
                                       .snapshot = snapshot,
                                       .save = save,
                                       .saves_together = 1};
  f->sweep.job = &f->job;
  TRY(job_open(&f->job, &type, f, inputs));
  return comm_agree(&f->job.run->comm, lines_alloc(f));
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

void refit_start_note(struct fit_start *start, const struct fit_inputs *inputs,
                      const struct refit_state *state)
{
  start->rounds = inputs->supports.rounds;
  start->top_s = inputs->supports.top_s > 0 ? inputs->supports.top_s : 0;
  start->rho = inputs->supports.rho;
  start->inputs = state->inputs;
}

int refit_identity_fill(struct identity_text *t, const struct fit_inputs *in,
                        const struct refit_state *state)
{
  char rho[32], rounds[32];
  snprintf(rho, sizeof rho, "%.17g", in->supports.rho);
  snprintf(rounds, sizeof rounds, "%d", in->supports.rounds);
  TRY(identity_text_contents(t, &state->inputs));
  TRY(identity_text_hash(t, "mean_hash", mean_hash(in->mean, state->p)));
  TRY(identity_text_input(t, "codes_sign", in->supports.nonnegative ? "nonnegative" : "any"));
  TRY(identity_text_input(t, "supports_rho", rho));
  return identity_text_input(t, "supports_rounds", rounds);
}

/* Open what the earlier run left, and see whether the two files name each other. */
static int previous_open(struct refit_previous *previous, const struct refit_files *files)
{
  const struct identity *wanted = &files->facts.contents;
  const struct supports_input *s = &previous->supports;
  TRY(dictionary_input_open(&previous->dictionary, files->job.place.shown));
  if (!files->has_supports) return OK;
  int status = supports_input_open(&previous->supports, files->job.more[REFIT_SUPPORTS].shown);
  if (status == ERR_INPUT) { /* it may be of a newer program, and is not replaced */
    char why[1024];
    status_take(why, sizeof why);
    FAIL(ERR_INPUT, "%s: remove it, and it is made again", why);
  }
  TRY(status);
  previous->has_supports =
      s->sweeps == files->facts.sweeps && s->inputs.rows == files->facts.start.inputs.rows &&
      s->inputs.dictionary == wanted->dictionary && s->contents.supports == wanted->supports &&
      s->contents.codes == wanted->codes;
  return OK;
}

static int contents_check(const char *file, const struct identity *wanted,
                          const struct identity *found)
{
  CHECK(found->dictionary == wanted->dictionary, ERR_INPUT,
        "'%s' is damaged: its atoms are not those that refit wrote", file);
  CHECK(!found->supports || (found->supports == wanted->supports && found->codes == wanted->codes),
        ERR_INPUT, "the supports beside '%s' are damaged: remove them, and they are made again",
        file);
  return OK;
}

int refit_resume(struct refit_previous *previous, const struct refit_files *files,
                 struct refit_state *state)
{
  struct comm *c = &files->job.run->comm;
  struct identity found;
  TRY(comm_agree(c, c->rank ? OK : refit_files_check(files)));
  TRY(inputs_agree(c, previous_open(previous, files)));
  TRY(comm_broadcast(c, &previous->has_supports, 1, sizeof previous->has_supports));
  if (files->has_supports && !previous->has_supports)
    log_warn("'%s' is not used: the supports of sweep %lld of '%s' are made again",
             files->job.more[REFIT_SUPPORTS].shown, (long long)files->facts.sweeps,
             files->job.place.shown);
  TRY(refit_state_replace(state, &previous->dictionary.source,
                          previous->has_supports ? &previous->supports.source : NULL, &found));
  return comm_agree(c, contents_check(files->job.place.shown, &files->facts.contents, &found));
}

void refit_previous_close(struct refit_previous *previous)
{
  dictionary_input_close(&previous->dictionary);
  supports_input_close(&previous->supports);
  *previous = (struct refit_previous){0};
}

int refit_contents_check(const struct refit_files *files, const struct refit_state *state)
{
  const struct identity *was = &files->facts.contents, *is = &state->contents;
  CHECK(was->supports == is->supports && was->codes == is->codes, ERR_INPUT,
        "the supports made again from '%s' are not those that it names: codes_hash %016llx, not "
        "%016llx",
        files->job.place.shown, (unsigned long long)is->codes, (unsigned long long)was->codes);
  return OK;
}

int refit_classes_check(struct refit_files *files, const struct classes *classes, const char *name)
{
  struct fit_start *start = &files->facts.start;
  uint64_t hash = classes_hash(classes->color, classes->k);
  if (start->reroute) return OK; /* they change from sweep to sweep */
  if (!files->facts.sweeps) start->inputs.classes = hash;
  CHECK(start->inputs.classes == hash, ERR_INPUT,
        "'%s' was begun with other classes than '%s': classes_hash %016llx, not %016llx; resume "
        "with the same%s",
        files->job.place.shown, name ? name : "(N.6)", (unsigned long long)start->inputs.classes,
        (unsigned long long)hash, sweep_files_advice(&files->sweep));
  return OK;
}
