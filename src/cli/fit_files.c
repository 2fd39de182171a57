/* SPDX-License-Identifier: BSD-3-Clause
 * Rank 0 reads and writes; what a resumed run goes on from is sent to all ranks. */
#include "cli/fit_files.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/num.h"
#include "base/status.h"
#include "job/numerics.h"
#include "job/job.h"
#include "io/inputs.h"
#include "io/part.h"

/* What one of the two files says. */
struct former {
  const char *path;
  int there;
  struct fit_record record;
  struct history_line *lines;
};

static int former_look(struct fit_files *f, const char *path, struct former *former)
{
  *former = (struct former){.path = path, .there = input_is_there(path)};
  return former->there ? fit_record_read(path, &f->arena, &former->record, &former->lines) : OK;
}

/* Are the lines of one file the first ones of the other, and the rows the same? */
static int pair_check(const struct former *dictionary, const struct former *state)
{
  const struct fit_record *d = &dictionary->record, *s = &state->record;
  gidx shorter = imin(d->sweeps, s->sweeps) + 1;
  int same = memcmp(dictionary->lines, state->lines, (size_t)shorter * sizeof *state->lines) == 0 &&
             d->held.rows == s->held.rows;
  CHECK(same, ERR_INPUT,
        "'%s' and '%s' are not of one fit: remove the latter to go on from the former",
        dictionary->path, state->path);
  return OK;
}

static int shape_check(const struct fit_files *f, const struct atom_source *atoms)
{
  CHECK(atoms->k == f->k && atoms->d == 1 && atoms->p == f->p, ERR_INPUT,
        "'%s' has %d atoms of %d columns, not %d of %d", atoms->name, atoms->k, atoms->p, f->k,
        f->p);
  return OK;
}

static int atoms_read(const struct fit_files *f, const char *path, float *atoms, real *mean,
                      int *has_mean)
{
  struct dictionary_input in = {0};
  int status = dictionary_input_open(&in, path);
  if (!status) status = shape_check(f, &in.source);
  if (!status) status = in.source.read(in.source.self, 0, f->k, atoms);
  *has_mean = in.mean != NULL;
  if (!status && in.mean) memcpy(mean, in.mean, (size_t)f->p * sizeof *mean);
  dictionary_input_close(&in);
  return status;
}

static struct fit_line line_of(const struct history_line *l)
{
  return (struct fit_line){.sweep = (gidx)l->sweep,
                           .fitted = l->explained_variance,
                           .held = l->held_out,
                           .dead = (gidx)l->dead,
                           .revived = (gidx)l->revived,
                           .accepted = (gidx)l->accepted,
                           .rejected = (gidx)l->rejected,
                           .escalated = (gidx)l->escalated};
}

/* What is read on rank 0; its sizes, before the arrays go to all ranks. */
struct found {
  int there, has_mean, has_sums;
  gidx sweep;
  uint64_t rows_hash, held_hash;
  struct fit_line *lines;
  float *atoms;
  real *mean;
  struct fit_sums sums;
};

/* Read what `from` holds; the best atoms are its own, or those of dictionary.h5. */
static int found_read(struct fit_files *f, const struct former *from,
                      const struct former *dictionary, struct found *out)
{
  gidx n = from->record.sweeps, best;
  int ignored;
  *out = (struct found){.there = 1,
                        .has_sums = f->has_parts,
                        .sweep = n,
                        .rows_hash = from->record.rows.rows,
                        .held_hash = from->record.held.rows,
                        .sums = {f->k, f->p, NULL, NULL, NULL}};
  TRY(arena_alloc(&f->arena, &out->lines, n + 1, sizeof *out->lines));
  TRY(arena_alloc(&f->arena, &out->atoms, (gidx)f->k * f->p, sizeof *out->atoms));
  TRY(arena_alloc(&f->arena, &out->mean, f->p, sizeof *out->mean));
  for (gidx i = 0; i <= n; i++) out->lines[i] = line_of(&from->lines[i]);
  best = fit_best(out->lines, n);
  TRY(atoms_read(f, from->path, out->atoms, out->mean, &out->has_mean));
  if (f->has_parts) TRY(fit_sums_read(from->path, &f->arena, &out->sums));
  if (best == n) {
    memcpy(f->best, out->atoms, (size_t)f->k * (size_t)f->p * sizeof *f->best);
    return OK;
  }
  CHECK(dictionary->record.best == best, ERR_INPUT,
        "'%s' has the atoms of sweep %lld, and those of sweep %lld were the best", dictionary->path,
        (long long)dictionary->record.best, (long long)best);
  return atoms_read(f, dictionary->path, f->best, out->mean, &ignored);
}

/* Rank 0: find what the earlier run left. */
static int resume_look(struct fit_files *f, struct found *out)
{
  struct former d, s;
  *out = (struct found){0};
  TRY(former_look(f, f->dictionary.file, &d));
  if (!d.there) return OK;
  TRY(identity_text_check(&f->sweep.run->identity, d.path, d.path));
  TRY(former_look(f, f->state.file, &s));
  if (s.there) {
    TRY(identity_text_check(&f->sweep.run->identity, s.path, s.path));
    TRY(pair_check(&d, &s));
  }
  if (s.there && s.record.sweeps >= d.record.sweeps) return found_read(f, &s, &d, out);
  CHECK(d.record.best == d.record.sweeps && !f->has_parts, ERR_INPUT,
        "'%s' has the atoms of sweep %lld of %lld, and '%s' is not there to go on from", d.path,
        (long long)d.record.best, (long long)d.record.sweeps, f->state.file);
  return found_read(f, &d, &d, out);
}

/* *minibatch <- of the run that left a file. */
static int minibatch_read(const char *path, gidx *minibatch)
{
  char *text, value[32];
  TRY(numerics_resume(path));
  TRY(identity_text_read(path, &text));
  int there = identity_text_find(text, "minibatch", value, sizeof value);
  free(text);
  CHECK(there, ERR_INPUT, "'%s' was not written by fit, so it cannot be resumed", path);
  *minibatch = strtoll(value, NULL, 10); /* "none" is 0 */
  return OK;
}

static int places_claim(struct fit_files *f, const struct output_options *output, int resume,
                        gidx *minibatch)
{
  const char *place = output->output;
  struct former former = {0};
  TRY(output_place(&f->dictionary, place, "dictionary.h5", 1));
  TRY(output_place(&f->supports, place, "supports.h5", 1));
  TRY(output_place(&f->state, place, "state.h5", 1));
  TRY(sweep_files_claim(&f->sweep, output, resume));
  if (resume) TRY(former_look(f, f->dictionary.file, &former));
  if (former.there) TRY(minibatch_read(f->dictionary.file, minibatch));
  return OK;
}

int fit_files_claim(struct fit_files *f, struct run *run, const struct output_options *output,
                    int resume, gidx *minibatch)
{
  struct comm *c = &run->comm;
  *minibatch = -1;
  f->sweep.run = run;
  f->sweep.shown = f->dictionary.shown;
  TRY(comm_agree(c, c->rank ? OK : places_claim(f, output, resume, minibatch)));
  TRY(sweep_files_tell(&f->sweep));
  return comm_broadcast(c, minibatch, 1, sizeof *minibatch);
}

/* Refuse to begin where a fit was stopped: it has no supports.h5, which is made at its end, or a
 * part of it. */
static int stopped_look(struct fit_files *f)
{
  struct former former;
  int is_part = job_part_is_left(f->supports.file, part_kind.name, 0);
  if (input_is_there(f->supports.file) && !is_part) return OK;
  int status = former_look(f, f->dictionary.file, &former);
  status_clear();
  return !status && former.there ? job_part_refuse(former.path) : OK;
}

static int places_find(struct fit_files *f, const struct output_options *output, int resume,
                       struct found *found)
{
  if (resume) TRY(resume_look(f, found));
  if (found->there) return OK;
  CHECK(!resume || output->force || !input_is_there(f->state.file), ERR_CREATE,
        "'%s' is there, but not '%s', from which --resume goes on: bring that one back, or begin "
        "again, with --force and not --resume",
        f->state.shown, f->dictionary.shown);
  if (!resume && !output->force) TRY(stopped_look(f));
  TRY(output_check_free(f->dictionary.file, output->force));
  TRY(output_check_free(f->state.file, output->force));
  return output_check_free(f->supports.file, output->force);
}

/* lines <- as the file has them; room for twice as many as are needed. */
static int lines_take(struct fit_files *f, const struct fit_sweep *s)
{
  gidx n = s->point.sweep + 1;
  if (n > f->lines_max) {
    f->lines_max = 2 * n;
    TRY(arena_alloc(&f->arena, &f->lines, f->lines_max, sizeof *f->lines));
  }
  for (gidx i = 0; i < n; i++) {
    const struct fit_line *l = &s->point.lines[i];
    f->lines[i] = (struct history_line){.sweep = (real)l->sweep,
                                        .explained_variance = l->fitted,
                                        .held_out = l->held,
                                        .dead = (real)l->dead,
                                        .revived = (real)l->revived,
                                        .accepted = (real)l->accepted,
                                        .rejected = (real)l->rejected,
                                        .escalated = (real)l->escalated};
  }
  f->record = (struct fit_record){.sweeps = s->point.sweep,
                                  .best = s->best,
                                  .rounds = f->rounds,
                                  .top_s = f->top_s,
                                  .rows.rows = s->point.rows_hash,
                                  .held.rows = s->point.held_hash};
  return OK;
}

/* An array of rank 0 to all, where the others allocate it; NULL stays NULL. */
static int array_send(struct fit_files *f, struct comm *c, void *array, gidx count, size_t size)
{
  void **at = array;
  int status = c->rank ? arena_alloc(&f->arena, at, count, size) : OK;
  TRY(comm_agree(c, status));
  return comm_broadcast(c, *at, count, size);
}

static int found_send(struct fit_files *f, struct comm *c, struct found *s)
{
  gidx k = f->k, p = f->p;
  TRY(array_send(f, c, &s->lines, s->sweep + 1, sizeof *s->lines));
  TRY(array_send(f, c, &s->atoms, k, (size_t)p * sizeof *s->atoms));
  TRY(array_send(f, c, &s->mean, p, sizeof *s->mean));
  TRY(comm_broadcast(c, f->best, k, (size_t)p * sizeof *f->best));
  f->start = (struct fit_point){.sweep = s->sweep,
                                .lines = s->lines,
                                .atoms = s->atoms,
                                .mean = s->has_mean ? s->mean : NULL,
                                .rows_hash = s->rows_hash,
                                .held_hash = s->held_hash};
  if (!s->has_sums) return OK;
  TRY(array_send(f, c, &s->sums.gram, k, (size_t)k * sizeof(real)));
  TRY(array_send(f, c, &s->sums.target, k, (size_t)p * sizeof(real)));
  TRY(array_send(f, c, &s->sums.idle, k, sizeof(idx)));
  f->start.gram = s->sums.gram;
  f->start.target = s->sums.target;
  f->start.idle = s->sums.idle;
  return OK;
}

int fit_files_open(struct fit_files *f, struct run *run, const struct output_options *output,
                   int resume)
{
  struct comm *c = &run->comm;
  struct found found = {0};
  int status = arena_alloc(&f->arena, &f->best, (gidx)f->k * f->p, sizeof *f->best);
  if (!status && c->rank == 0) status = places_find(f, output, resume, &found);
  TRY(comm_agree(c, status));
  /* Pointers among it are overwritten where they mean nothing. */
  TRY(comm_broadcast(c, &found, 1, sizeof found));
  f->has_start = found.there;
  if (!found.there) return OK;
  TRY(found_send(f, c, &found));
  struct fit_sweep former = {.point = f->start, .best = fit_best(found.lines, found.sweep)};
  return comm_agree(c, c->rank ? OK : lines_take(f, &former));
}

void fit_files_free(struct fit_files *f)
{
  sweep_files_free(&f->sweep);
  arena_free(&f->arena);
  *f = (struct fit_files){0};
}

/* Publish atoms with what is known now; sums: NULL for none. */
static int atoms_write(struct fit_files *f, const struct run *run, const char *path,
                       const float *atoms, const real *mean, const struct fit_sums *sums,
                       int threads)
{
  struct run_fact facts[MAX_FACTS];
  TRY(dictionary_output_create(&f->file, path, f->k, 1, f->p));
  TRY(nonnegative_write(&f->file.result.h5, f->nonnegative));
  TRY(matrix_output_write(&f->file, 0, f->k, atoms));
  if (mean) TRY(object_write_vector(&f->file.result.h5, "/mean", f->p, mean));
  TRY(fit_record_write(&f->file, &f->record, f->lines));
  if (sums) TRY(fit_sums_write(&f->file, sums));
  TRY(fit_extra_write(&f->file, f->extra));
  return matrix_output_finish(&f->file, facts, run_facts(run, f->device, threads, facts));
}

int fit_files_take(struct fit_files *f, const struct fit_sweep *s)
{
  if (s->best == s->point.sweep)
    memcpy(f->best, s->point.atoms, (size_t)f->k * (size_t)f->p * sizeof *f->best);
  return lines_take(f, s);
}

int fit_files_write(struct fit_files *f, const struct run *run, const struct fit_sweep *s,
                    int threads)
{
  const struct fit_point *point = &s->point;
  const struct fit_sums sums = {f->k, f->p, point->gram, point->target, point->idle};
  int is_best = s->best == point->sweep;
  if (!is_best || point->gram)
    TRY(atoms_write(f, run, f->state.file, point->atoms, point->mean, point->gram ? &sums : NULL,
                    threads));
  if (!is_best) sweep_files_end(&f->sweep);
  if (!is_best) return OK;
  TRY(atoms_write(f, run, f->dictionary.file, point->atoms, point->mean, NULL, threads));
  output_remove(f->supports.file);
  sweep_files_end(&f->sweep);
  if (!point->gram) output_remove(f->state.file);
  return OK;
}

int fit_files_end(struct fit_files *f, struct run *run, const real *mean, int threads)
{
  struct comm *c = &run->comm;
  int whole = f->record.best == f->record.sweeps && !fit_extra_is_there(f->extra);
  return comm_agree(c, whole || c->rank || !f->lines
                           ? OK
                           : atoms_write(f, run, f->dictionary.file, f->best, mean, NULL, threads));
}
