/* SPDX-License-Identifier: BSD-3-Clause
 * Rank 0 reads and writes, and broadcasts the start of a resumed run.  The callbacks of fit_run()
 * are the last functions: a sweep is written while the next one computes (job/checkpoint.h). */
#include "cli/fit_files.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/num.h"
#include "base/status.h"
#include "cli/fit_job.h"
#include "io/inputs.h"
#include "io/part.h"
#include "io/input_agreement.h"
#include "job/checkpoint.h"

/* The contents of dictionary.h5 or state.h5. */
struct previous {
  const char *path;
  int there;
  struct fit_record record;
};

static int previous_read(struct fit_files *f, const char *path, struct previous *previous)
{
  *previous = (struct previous){.path = path, .there = input_is_there(path)};
  return previous->there ? fit_record_read(path, &f->arena, &previous->record) : OK;
}

/* Check that both files are of one fit, by the held-out rows and by the lines that both have. */
static int pair_check(const struct previous *dictionary, const struct previous *state)
{
  const struct fit_point *d = &dictionary->record.point, *s = &state->record.point;
  gidx shorter = imin(d->sweep, s->sweep) + 1;
  int same = memcmp(d->lines, s->lines, (size_t)shorter * sizeof *s->lines) == 0 &&
             d->held_out_hash == s->held_out_hash;
  CHECK(same, ERR_INPUT,
        "'%s' and '%s' are not of one fit: remove the second to resume from the first",
        dictionary->path, state->path);
  return OK;
}

/* f->reached <- the point, whose lines are copied; point->lines <- the copy. */
static int reached_set(struct fit_files *f, struct fit_point *point, gidx best)
{
  TRY(lines_copy(&f->arena, &f->lines, &f->lines_max, point->lines, point->sweep + 1,
                 sizeof *f->lines));
  point->lines = f->lines;
  f->reached = *point;
  f->reached.atoms = f->best;
  f->reached.gram = f->reached.target = f->reached.weight = NULL;
  f->reached.idle = NULL;
  f->reached_best = best;
  return OK;
}

/* Read the start from `from`.  If its sweep is not the best, dictionary.h5 has the best atoms. */
static int start_read(struct fit_files *f, const struct previous *from,
                      const struct previous *dictionary)
{
  struct fit_point *start = &f->start;
  float *atoms;
  f->job.is_resumed = 1;
  *start = from->record.point;
  TRY(arena_alloc(&f->arena, &atoms, (gidx)f->k * f->p, sizeof *atoms));
  TRY(dictionary_read_all(from->path, &f->arena, f->k, f->p, atoms, &start->mean));
  start->atoms = atoms;
  if (f->has_parts) TRY(fit_sums_read(from->path, &f->arena, f->k, f->p, f->is_conjugate, start));
  gidx best = fit_best(start->lines, start->sweep);
  TRY(reached_set(f, start, best));
  if (best == start->sweep) memcpy(f->best, atoms, (size_t)f->k * (size_t)f->p * sizeof *atoms);
  if (best == start->sweep) return OK;
  CHECK(dictionary->record.best == best, ERR_INPUT,
        "'%s' has the atoms of sweep %lld, and those of sweep %lld were the best", dictionary->path,
        (long long)dictionary->record.best, (long long)best);
  return dictionary_read_all(dictionary->path, &f->arena, f->k, f->p, f->best, NULL);
}

/* Rank 0: find what an earlier run left. */
static int resume_find(struct fit_files *f, const struct job *job)
{
  const struct output_path *places[] = {&job->place, &job->more[FIT_STATE]};
  struct previous d, s, *all[] = {&d, &s};
  for (int i = 0; i < LENGTH(all); i++) {
    TRY(previous_read(f, places[i]->file, all[i]));
    if (!d.there) return OK;
    if (all[i]->there) TRY(job_file_check(job, places[i]));
  }
  if (s.there) TRY(pair_check(&d, &s));
  f->written = d.record.point.sweep;
  if (s.there && s.record.point.sweep >= d.record.point.sweep) return start_read(f, &s, &d);
  CHECK(d.record.best == d.record.point.sweep && !f->has_parts, ERR_INPUT,
        "cannot resume: '%s' has the atoms of sweep %lld of %lld, '%s' is missing", d.path,
        (long long)d.record.best, (long long)d.record.point.sweep, s.path);
  return start_read(f, &d, &d);
}

static int paths_claim(struct fit_files *f, gidx *minibatch)
{
  struct previous previous = {0};
  char value[32];
  TRY(job_claim(&f->job));
  TRY(sweep_files_claim(&f->sweep));
  if (f->job.resume) TRY(previous_read(f, f->job.place.file, &previous));
  if (!previous.there) return OK;
  TRY(job_earlier_value(&f->job, "minibatch", value, sizeof value));
  CHECK(*value, ERR_INPUT, "'%s' was not written by fit, so it cannot be resumed", previous.path);
  *minibatch = strtoll(value, NULL, 10); /* "none" is 0 */
  return OK;
}

/* Without --resume, refuse to begin where a fit was stopped: there is a dictionary.h5 of a fit, but
 * no supports.h5, or only a part of it. */
static int stopped_check(struct fit_files *f, const struct job *job)
{
  const char *supports = job->more[FIT_SUPPORTS].file;
  struct previous previous;
  if (input_is_there(supports) && !part_is_left(supports, part_kind.name, 0)) return OK;
  int status = previous_read(f, job->place.file, &previous);
  status_clear();
  return !status && previous.there ? job_part_refuse(previous.path) : OK;
}

static int find(void *self, struct job *job)
{
  if (job->resume) return resume_find(self, job);
  return job->output.force ? OK : stopped_check(self, job);
}

static int distribute(void *self, struct comm *c)
{
  struct fit_files *f = self;
  struct fit_point *s = &f->start;
  gidx k = f->k, p = f->p;
  if (!f->job.is_resumed) return OK;
  TRY(comm_broadcast(c, s, 1, sizeof *s));
  TRY(comm_broadcast(c, f->best, k, (size_t)p * sizeof *f->best));
  TRY(comm_array_send(c, &f->arena, &s->lines, s->sweep + 1, sizeof *s->lines));
  TRY(comm_array_send(c, &f->arena, &s->atoms, k, (size_t)p * sizeof *s->atoms));
  TRY(comm_array_send(c, &f->arena, &s->mean, p, sizeof *s->mean));
  if (c->rank) s->gram = s->target = NULL; /* only rank 0 has the sums */
  TRY(comm_array_send(c, &f->arena, &s->weight, k, sizeof *s->weight));
  return comm_array_send(c, &f->arena, &s->idle, k, sizeof *s->idle);
}

void fit_files_free(struct fit_files *f)
{
  arena_free(&f->arena);
  *f = (struct fit_files){0};
}

static int point_write(struct fit_files *f, const char *path, const struct fit_point *point)
{
  const struct fit_record record = {*point, f->reached_best, f->rounds, f->top_s};
  TRY(dictionary_output_create(&f->file, path, f->k, 1, f->p));
  TRY(nonnegative_write(&f->file.result.h5, f->nonnegative));
  TRY(matrix_output_write(&f->file, 0, f->k, point->atoms));
  if (f->mean) TRY(object_write_vector(&f->file.result.h5, "/mean", f->p, f->mean));
  TRY(fit_record_write(&f->file, &record, f->k, f->p));
  TRY(fit_extra_write(&f->file, f->extra));
  TRY(job_file_finish(&f->job, &f->file));
  if (path == f->job.place.file) f->written = f->reached.sweep;
  return OK;
}

static int sweep_write(struct fit_files *f)
{
  const struct fit_point *point = &f->sweep_now.point;
  const char *state = f->job.more[FIT_STATE].file;
  int is_best = f->sweep_now.best == point->sweep;
  if (!is_best || point->idle) TRY(point_write(f, state, point));
  if (is_best) TRY(point_write(f, f->job.place.file, &f->reached));
  if (is_best) output_remove(f->job.more[FIT_SUPPORTS].file);
  sweep_files_end(&f->sweep);
  if (is_best && !point->idle) output_remove(state);
  return OK;
}

static int save(void *self)
{
  struct fit_files *f = self;
  gidx k = f->k, p = f->p, sums = f->sweep_now.point.gram ? k * (k + p) * (gidx)sizeof(real) : 0;
  phase_begin(f->write);
  TRY(sweep_write(f));
  phase_end(f->write, (double)(sums + k * p * (gidx)sizeof(float)));
  return OK;
}

/* Copy the best atoms on every rank; on rank 0 copy what the writer thread reads.  The sums and
 * weights of a fit by parts are not copied, since such a fit waits for the thread. */
static int snapshot(void *self)
{
  struct fit_files *f = self;
  struct fit_sweep *s = &f->sweep_now;
  int is_best = s->best == s->point.sweep, rank = f->job.run->comm.rank;
  gidx count = (gidx)f->k * f->p;
  if (!is_best && rank) return OK;
  if (!is_best && !f->other) TRY(arena_alloc(&f->arena, &f->other, count, sizeof *f->other));
  float *copy = is_best ? f->best : f->other;
  memcpy(copy, s->point.atoms, (size_t)count * sizeof *copy);
  s->point.atoms = copy;
  return rank ? OK : reached_set(f, &s->point, s->best);
}

int fit_files_end(struct fit_files *f)
{
  struct comm *c = &f->job.run->comm;
  int is_whole = f->reached.sweep == f->written && !fit_extra_is_there(f->extra);
  return comm_agree(
      c, c->rank || is_whole || !f->lines ? OK : point_write(f, f->job.place.file, &f->reached));
}

int fit_files_claim(struct fit_files *f, gidx *minibatch)
{
  static const struct job_type type = {
      .file = "dictionary.h5",
      .more = {[FIT_STATE] = "state.h5", [FIT_SUPPORTS] = "supports.h5"},
      .find = find,
      .distribute = distribute,
      .snapshot = snapshot,
      .save = save};
  struct comm *c = &f->job.run->comm;
  *minibatch = -1;
  f->job.type = &type;
  f->job.writes_beside = 1;
  f->sweep.job = &f->job;
  TRY(comm_agree(c, c->rank ? OK : paths_claim(f, minibatch)));
  TRY(sweep_files_broadcast(&f->sweep));
  return comm_broadcast(c, minibatch, 1, sizeof *minibatch);
}

int fit_files_open(struct fit_files *f, const struct run_inputs *inputs)
{
  struct comm *c = &f->job.run->comm;
  TRY(comm_agree(c, arena_alloc(&f->arena, &f->best, (gidx)f->k * f->p, sizeof *f->best)));
  return job_open(&f->job, f->job.type, f, inputs);
}

/* From here on the identity in published files names the rows.  A fit by parts has other rows in
 * each sweep, so only the held-out rows are named. */
static int inputs_name(struct fit_job *j, uint64_t rows, uint64_t held)
{
  struct identity_text *t = &j->run->identity;
  if (!j->files.has_parts) TRY(identity_text_hash(t, "rows_hash", rows));
  return identity_text_hash(t, "held_out_hash", held);
}

/* fit_run() calls this after each sweep.  While the writer thread publishes, no other thread may
 * use the list of inputs and the phase FIT_WRITE. */
static int sweep_take(void *self, const struct fit_sweep *s)
{
  struct fit_job *j = self;
  struct comm *c = &j->run->comm;
  if (c->rank == 0) fit_line_log(j, s);
  TRY(job_wait(&j->files.job));
  j->written = j->result.phases[FIT_WRITE];
  TRY(comm_agree(c, inputs_name(j, s->point.rows_hash, s->point.held_out_hash)));
  fit_point_note(j, &s->point, s->best);
  j->seconds = log_seconds() - j->begun;
  j->has_sweep = 1;
  j->files.sweep_now = *s;
  TRY(job_checkpoint(&j->files.job));
  return s->point.idle ? job_wait(&j->files.job) : OK; /* the sums are not copied */
}

static int stop_poll(void *self, int *stop)
{
  struct fit_job *j = self;
  return job_poll(&j->files.job, stop);
}

/* fit_run() calls within_begin() at the start of a savable sweep, and within_poll() inside it. */
static int within_begin(void *self, const struct fit_within *now, struct sweep_start *start)
{
  struct fit_job *j = self;
  struct sweep_files *files = &j->files.sweep;
  const struct sweep_facts facts = {
      .sweeps = now->sweep,
      .classes = now->classes,
      .start = {.inputs.rows = now->rows_hash, .held.rows = now->held_out_hash}};
  files->k = j->task.k;
  files->d = j->task.d;
  files->p = j->rows.source.p;
  files->there = files->there && j->files.job.is_resumed; /* a new fit does not use sweep.h5 */
  TRY(inputs_name(j, now->rows_hash, now->held_out_hash));
  return sweep_files_begin(files, &facts, now->atoms, start);
}

static int within_poll(void *self, const struct sweep_point *at, int *stop)
{
  struct fit_job *j = self;
  return sweep_files_poll(&j->files.sweep, at, stop);
}

/* May the job stop while rows are routed and coded?  Only with a file to resume from. */
static int may_stop(void *of)
{
  const struct fit_job *j = of;
  return j->files.job.is_resumed || j->has_sweep || j->files.sweep.times_saved;
}

void fit_files_sink(struct fit_job *j)
{
  const struct fit_point *start = j->task.start;
  struct job *job = &j->files.job;
  job->may_stop = may_stop;
  job->save_seconds = j->o->save_seconds;
  job->summary = fit_summary_json;
  job->of = j;
  j->sink = (struct fit_sink){j,           sweep_take,     stop_poll,      within_begin,
                              within_poll, job_stops(job), job_wishes(job)};
  if (start) fit_point_note(j, start, fit_best(start->lines, start->sweep));
}

int fit_files_settle(struct fit_job *j, int status)
{
  TRY(job_settle(&j->files.job, status, &j->result.phases[FIT_SHOW]));
  TRY(inputs_confirm(&j->run->comm));
  if (!j->run->stopped) sweep_files_over(&j->files.sweep, j->files.reached.sweep);
  return OK;
}
