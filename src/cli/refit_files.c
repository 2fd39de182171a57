/* SPDX-License-Identifier: BSD-3-Clause
 * Rank 0 finds and writes files, and broadcasts what it finds.  A resumed run loads the inputs like
 * a fresh one, and compares their hashes with those in dictionary.h5.  Then the frames of
 * dictionary.h5 replace those of the inputs.  supports.h5 is used if it names this dictionary and
 * has the contents that dictionary.h5 names.
 *
 * A sweep is published before the next one begins.  Exception: one rank whose GPU takes the steps
 * publishes in the background, if a copy of the state fits.  A sweep that ends meanwhile is left
 * out, unless it is the last, or --save-seconds have passed since publishing last began. */
#include "cli/refit_files.h"

#include <string.h>

#include "base/log.h"
#include "base/num.h"
#include "base/status.h"
#include "base/team.h"
#include "cli/refit_job.h"
#include "io/inputs.h"
#include "io/input_agreement.h"
#include "job/checkpoint.h"
#include "job/summary.h"
#include "refit/frames.h"
#include "refit/state_write.h"

/* Read the facts and lines of an earlier run of this job. */
static int before_find(struct refit_files *f, struct job *job)
{
  const char *path = job->place.file;
  job->is_resumed = input_is_there(path);
  if (!job->is_resumed) return OK;
  f->has_supports = input_is_there(job->more[REFIT_SUPPORTS].file);
  TRY(job_file_check(job, &job->place));
  TRY(fit_read(path, &f->arena, &f->facts, &f->lines));
  CHECK(f->facts.sweeps <= f->sweeps, ERR_USAGE,
        "'%s' has %lld sweeps, and '--sweeps' asks for %lld: resume with as many or more, or begin "
        "again with --force and not --resume",
        path, (long long)f->facts.sweeps, (long long)f->sweeps);
  return OK;
}

/* Without --resume, refuse to begin where a refit was stopped before its last sweep. */
static int stopped_check(struct refit_files *f, const char *path)
{
  struct fit_facts was;
  struct history_line *lines;
  if (!input_is_there(path)) return OK;
  int status = fit_read(path, &f->arena, &was, &lines);
  status_clear();
  return !status && was.sweeps < f->sweeps ? job_part_refuse(path) : OK;
}

/* Allocate lines for all sweeps to come, and copy the earlier ones. */
static int lines_alloc(struct refit_files *f)
{
  struct history_line *old = f->lines;
  gidx max = imax(f->sweeps, f->facts.sweeps);
  TRY(arena_alloc(&f->arena, &f->lines, max + 1, sizeof *f->lines));
  if (old) memcpy(f->lines, old, (size_t)(f->facts.sweeps + 1) * sizeof *old);
  return OK;
}

static int find(void *self, struct job *job)
{
  struct refit_files *f = self;
  TRY(sweep_files_claim(&f->sweep));
  job->advice = sweep_files_advice(&f->sweep);
  if (job->resume) TRY(before_find(f, job));
  if (!job->resume && !job->output.force) TRY(stopped_check(f, job->place.file));
  return lines_alloc(f);
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

void refit_files_free(struct refit_files *f)
{
  dictionary_input_close(&f->previous.dictionary);
  supports_input_close(&f->previous.supports);
  state_copy_free(&f->copy);
  arena_free(&f->arena);
  memset(f, 0, sizeof *f);
}

static int dictionary_write(struct refit_files *f)
{
  struct matrix_output *file = &f->dictionary_file;
  const struct refit_state *state = f->result.state;
  const struct refit_task *task = state->task;
  TRY(dictionary_output_create(file, f->job.place.file, state->k, state->d, state->p));
  TRY(nonnegative_write(&file->result.h5, task->nonnegative));
  TRY(refit_state_frames_write(state, &file->sink));
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

/* In the writer thread this function reads only copies, the communicator included. */
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
  return job_open(&f->job, &type, f, inputs);
}

/* Wait until the writer thread no longer reads the last result, then set the next one. */
static int result_set(struct refit_job *j)
{
  struct refit_files *f = &j->files;
  TRY(job_wait(&f->job));
  f->result = (struct refit_result){&j->state, &j->metrics, j->steps};
  f->facts.contents = j->state.contents;
  f->published = f->facts;
  summary_inputs_set(&f->facts.start.inputs);
  return OK;
}

/* Publish the supports of a dictionary.h5 that is published already. */
static int supports_publish(struct refit_job *j)
{
  struct refit_files *f = &j->files;
  TRY(result_set(j));
  phase_begin(f->write);
  TRY(inputs_confirm(&f->job.run->comm));
  TRY(supports_write(f));
  phase_end(f->write, 0);
  return OK;
}

int refit_identity_fill(struct identity_text *t, const struct fit_inputs *in,
                        const struct refit_state *state)
{
  TRY(identity_text_contents(t, &state->inputs));
  TRY(identity_text_hash(t, "mean_hash", mean_hash(in->mean, state->p)));
  TRY(identity_text_input(t, "codes_sign", in->supports.nonnegative ? "nonnegative" : "any"));
  TRY(identity_text_input(t, "supports_rho", "%.17g", in->supports.rho));
  return identity_text_input(t, "supports_rounds", "%d", in->supports.rounds);
}

/* Open the files of the earlier run, and check whether they name each other. */
static int previous_open(struct refit_files *f)
{
  const struct identity *wanted = &f->facts.contents;
  struct supports_input *s = &f->previous.supports;
  TRY(dictionary_input_open(&f->previous.dictionary, f->job.place.shown));
  if (!f->has_supports) return OK;
  int status = supports_input_open(s, f->job.more[REFIT_SUPPORTS].shown);
  if (status == ERR_INPUT) { /* a newer program may have written it: do not replace it */
    char why[1024];
    status_take(why, sizeof why);
    FAIL(ERR_INPUT, "%s: remove it, and it is made again", why);
  }
  TRY(status);
  f->previous.is_pair =
      s->sweeps == f->facts.sweeps && s->inputs.rows == f->facts.start.inputs.rows &&
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

static int previous_take(struct refit_files *f, struct refit_state *state)
{
  const char *file = f->job.place.shown;
  struct comm *c = &f->job.run->comm;
  struct identity found;
  TRY(comm_agree(c, c->rank ? OK : job_file_check(&f->job, &f->job.place)));
  TRY(inputs_agree(c, previous_open(f)));
  TRY(comm_broadcast(c, &f->previous.is_pair, 1, sizeof f->previous.is_pair));
  if (f->has_supports && !f->previous.is_pair)
    log_warn("'%s' is not used: the supports of sweep %lld of '%s' are made again",
             f->job.more[REFIT_SUPPORTS].shown, (long long)f->facts.sweeps, file);
  TRY(refit_state_replace(state, &f->previous.dictionary.source,
                          f->previous.is_pair ? &f->previous.supports.source : NULL, &found));
  return comm_agree(c, contents_check(file, &f->facts.contents, &found));
}

/* Check that the supports and codes that were made again have the hashes in dictionary.h5. */
static int made_again_check(const struct refit_files *files, const struct refit_state *state)
{
  const struct identity *was = &files->facts.contents, *is = &state->contents;
  CHECK(was->supports == is->supports && was->codes == is->codes, ERR_INPUT,
        "the supports that were made again from '%s' are not those that it names: codes_hash "
        "%016llx, not %016llx",
        files->job.place.shown, (unsigned long long)is->codes, (unsigned long long)was->codes);
  return OK;
}

int refit_classes_check(struct refit_files *files, const struct classes *classes, const char *name)
{
  struct fit_start *start = &files->facts.start;
  uint64_t hash = classes_hash(classes->color, classes->k);
  if (start->reroute) return OK; /* supports change from sweep to sweep */
  if (!files->facts.sweeps) start->inputs.classes = hash;
  CHECK(start->inputs.classes == hash, ERR_INPUT,
        "'%s' was begun with other classes than '%s': classes_hash %016llx, not %016llx; resume "
        "with the same%s",
        files->job.place.shown, name ? name : "(N.6)", (unsigned long long)start->inputs.classes,
        (unsigned long long)hash, sweep_files_advice(&files->sweep));
  return OK;
}

/* The job may stop once a resumed run has a file to start from.  --max-seconds counts only after
 * this run has made progress, so that each run gets further.  If the last sweep was left out, the
 * sweep in progress is finished, and replaces it. */
int refit_may_stop(void *of)
{
  struct refit_job *j = of;
  if (j->is_left_out) return 0;
  int has_more = j->files.facts.sweeps > j->resumed || j->files.sweep.times_saved;
  j->run->max_seconds = has_more ? j->o->max_seconds : 0;
  return has_more || j->files.job.is_resumed;
}

/* Publish a sweep's result, or start publishing it in the background. */
static int sweep_hand_over(struct refit_job *j)
{
  struct phase *wait = &j->phases[REFIT_WAIT];
  struct job *job = &j->files.job;
  int is_beside = job->writes_beside;
  if (is_beside) phase_begin(wait);
  TRY(result_set(j));
  TRY(job_checkpoint(job));
  if (is_beside) phase_end(wait, 0);
  j->is_left_out = 0;
  j->handed_over = log_seconds();
  return OK;
}

/* A later sweep replaces one left out, but a killed job must not lose more than --save-seconds. */
int refit_sweep_publish(struct refit_job *j)
{
  struct job *job = &j->files.job;
  int is_last = j->files.facts.sweeps >= j->o->sweeps;
  int is_late = job->save_seconds > 0 && log_seconds() - j->handed_over >= job->save_seconds;
  j->is_left_out = !is_last && !is_late && job_is_saving(job);
  if (!j->is_left_out) return sweep_hand_over(j);
  j->files.facts.contents = j->state.contents;
  return OK;
}

int refit_sweep_begin(struct refit_job *j)
{
  const struct fit_facts *facts = &j->files.facts;
  struct refit_state *f = &j->state;
  struct sweep_files *files = &j->files.sweep;
  files->k = f->k;
  files->d = f->d;
  files->p = f->p;
  files->write = &j->phases[REFIT_WRITE];
  struct sweep_facts now = {.sweeps = facts->sweeps, .start = facts->start};
  now.classes = classes_hash(j->classes.color, f->k);
  if (facts->sweeps) now.contents = facts->contents;
  TRY(identity_text_hash(&j->run->identity, "held_out_hash", facts->start.held.rows));
  if (j->resident.is_on) return OK; /* on a GPU reading sweep.h5 takes as long as a sweep */
  if (files->there) TRY(refit_frames_table(f));
  return sweep_files_begin(files, &now, f->table, &j->begun);
}

int refit_job_resume(struct refit_job *j)
{
  real is = 0;
  uint64_t hash = j->validation.hash, held = j->files.facts.start.held.rows;
  TRY(previous_take(&j->files, &j->state));
  log_info("resumed after sweep %lld", (long long)j->files.facts.sweeps);
  TRY(refit_held_out_evaluate(j));
  if (j->run->stopped) return OK;
  CHECK(hash == held, ERR_INPUT,
        "'%s' was judged by other held-out rows: held_out_hash %016llx, not %016llx; resume with "
        "the same '--holdout'",
        j->files.job.place.shown, (unsigned long long)held, (unsigned long long)hash);
  if (j->files.previous.is_pair)
    return refit_state_evaluate(j, j->files.job.more[REFIT_SUPPORTS].shown,
                                j->files.previous.supports.explained_variance, &is);
  TRY(refit_state_finish(j, j->o->reroute));
  if (j->run->stopped) return OK;
  TRY(comm_agree(j->c, made_again_check(&j->files, &j->state)));
  return supports_publish(j);
}

int refit_beside_begin(struct refit_job *j)
{
  struct phase *write = &j->phases[REFIT_WRITE];
  if (!j->resident.is_on || j->c->size > 1) return OK;
  TRY(state_copy_open(&j->files.copy, &j->state, &j->files.job.writes_beside));
  write->background = j->files.job.writes_beside;
  if (write->background) j->task.threads = team_beside(j->task.threads);
  return OK;
}

int refit_sweeps_settle(struct refit_job *j, int status)
{
  if (!status && j->is_left_out) status = sweep_hand_over(j);
  return job_settle(&j->files.job, status, &j->phases[REFIT_WAIT]);
}
