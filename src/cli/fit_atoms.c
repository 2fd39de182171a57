/* SPDX-License-Identifier: BSD-3-Clause
 * Each fit of another seed takes the next seed number, and its atoms are paired with those of the
 * first fit.  Detectors are made from the codes in the supports.h5 that was just written. */
#include "cli/fit_atoms.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/num.h"
#include "base/status.h"
#include "io/input_agreement.h"
#include "fit/quiet.h"
#include "job/checkpoint.h"
#include "io/supports_input.h"
#include "look/detect.h"
#include "look/pairs.h"

/* text[capacity] <- the options that say when a fit ends; with other values its atoms differ. */
static void extent_make(const struct fit_options *o, char *text, size_t capacity)
{
  snprintf(text, capacity, "sweeps %lld, tolerance %.17g, max-seconds %.17g",
           (long long)o->asked.sweeps, o->asked.tolerance, o->asked.max_seconds);
}

/* *found <- the results of other seeds in dictionary.h5.  found->done is set to 0 if the number of
 * seeds, the first of them or the options that end a fit differ from those of this job.  Rank 0. */
static int record_find(struct fit_job *j, struct seeds_record *found)
{
  const struct seeds_record *r = &j->seeds;
  struct h5_file f;
  TRY(h5_open(&f, j->files.job.place.file));
  TRY(h5_close_after(&f, seeds_read(&f, r->k, &j->arena, found)));
  int same =
      found->wanted == r->wanted && found->first == r->first && !strcmp(found->extent, r->extent);
  if (!same) found->done = 0;
  return OK;
}

static int record_open(struct fit_job *j)
{
  struct seeds_record *r = &j->seeds, found = {0};
  TRY(arena_alloc(&j->arena, &r->cosine, (gidx)r->wanted * r->k, sizeof *r->cosine));
  TRY(arena_alloc(&j->arena, &j->other, (gidx)r->k * j->rows.source.p, sizeof *j->other));
  TRY(arena_alloc(&j->arena, &j->mean_of_other, j->rows.source.p, sizeof *j->mean_of_other));
  TRY(arena_alloc(&j->arena, &j->stable.best, r->k, sizeof *j->stable.best));
  j->stable = (struct stability){
      .k = r->k, .seeds = r->wanted, .cosine = r->cosine, .best = j->stable.best};
  if (j->run->comm.rank) return OK;
  TRY(pairs_memory_check(r->k, r->k));
  if (!j->files.job.is_resumed) return OK;
  TRY(record_find(j, &found));
  r->done = found.done;
  if (r->done) memcpy(r->cosine, found.cosine, (size_t)r->done * (size_t)r->k * sizeof *r->cosine);
  return OK;
}

int fit_seeds_open(struct fit_job *j)
{
  const struct fit_options *o = j->o;
  struct comm *c = &j->run->comm;
  struct fit_task *t = &j->task;
  j->seeds = (struct seeds_record){.k = t->k, .wanted = o->seeds - 1, .first = o->asked.seed + 1};
  if (!j->seeds.wanted) return OK;
  extent_make(o, j->seeds.extent, sizeof j->seeds.extent);
  TRY(comm_agree(c, record_open(j)));
  TRY(comm_broadcast(c, &j->seeds.done, 1, sizeof j->seeds.done));
  if (!j->seeds.done) return OK;
  log_info("resume  after %d of %d other seeds", j->seeds.done, j->seeds.wanted);
  if (t->max_seconds > 0) t->sweeps = t->start->sweep; /* the first fit ended at that sweep */
  return OK;
}

int fit_atoms_pair(const struct fit_job *j, const struct atom_array *own, const char *name,
                   const struct atom_array *other, const char *other_name, float *cosine,
                   real *mean)
{
  const struct atom_source of[] = {atom_array_source(own, name),
                                   atom_array_source(other, other_name)};
  const struct compare_task task = {.atoms = {&of[0], &of[1]},
                                    .nonnegative = j->task.nonnegative,
                                    .threads = j->task.threads,
                                    .variant = j->task.variant};
  struct pairs p = {.k = own->k, .l = other->k, .cosine = cosine};
  struct arena arena = {0};
  idx *order = NULL;
  int status = arena_alloc(&arena, &p.match, p.k, sizeof *p.match);
  if (!status) status = arena_alloc(&arena, &order, p.k, sizeof *order);
  TRY(comm_agree(&j->run->comm, status));
  TRY(pairs_find(&j->run->comm, &task, &p));
  pairs_count(&p, order);
  *mean = p.mean;
  arena_free(&arena);
  return OK;
}

/* Set the cosines of the first fit's atoms and their pairs in the fit that has just ended; *mean <-
 * their mean.  Collective. */
static int seed_compare(struct fit_job *j, real *mean)
{
  const struct seeds_record *r = &j->seeds;
  const struct atom_array own = {j->files.best, r->k, 1, j->rows.source.p},
                          other = {j->other, r->k, 1, j->rows.source.p};
  return fit_atoms_pair(j, &own, "the fit", &other, "the fit of another seed",
                        r->cosine + (gidx)r->done * r->k, mean);
}

/* Fit the next seed, and compare its atoms, unless the job is stopped during the fit.
 * Collective. */
static int seed_run(struct fit_job *j)
{
  struct seeds_record *r = &j->seeds;
  struct fit_task task = j->task;
  char name[40];
  double begun = log_seconds();
  real mean = 0;
  task.seed = (uint64_t)r->first + (uint64_t)r->done;
  task.sweeps = j->o->asked.sweeps;
  task.start = NULL;
  task.no_advice = 1;
  snprintf(name, sizeof name, "seed %llu", (unsigned long long)task.seed);
  struct fit_quiet quiet = {
      .name = name, .atoms = j->other, .mean = j->mean_of_other, .stops = job_stops(&j->files.job)};
  TRY(fit_quiet_run(&task, &j->run->comm, &quiet));
  if (quiet.end == FIT_STOPPED) return OK;
  TRY(seed_compare(j, &mean));
  log_info("seed    %llu, %d of %d others: sweeps=%lld best=%lld unseen=%.6f pw_mcc=%.6f "
           "seconds=%.2f",
           (unsigned long long)task.seed, r->done + 1, r->wanted, (long long)quiet.sweeps,
           (long long)quiet.best.sweep, quiet.best.held, mean, log_seconds() - begun);
  r->done++;
  return OK;
}

/* From here on each write of dictionary.h5 includes the results of the other seeds so far. */
static void record_take(struct fit_job *j)
{
  struct seeds_record *r = &j->seeds;
  if (r->done && r->done == r->wanted) {
    stability_best(&j->stable);
    r->stability = j->stable.best;
  }
  j->extra.seeds = r->done ? r : NULL;
}

/* Write dictionary.h5 with the results so far.  Collective. */
static int record_write(struct fit_job *j)
{
  record_take(j);
  return fit_files_end(&j->files);
}

int fit_seeds_run(struct fit_job *j)
{
  struct seeds_record *r = &j->seeds;
  const struct fit_point *start = j->task.start;
  int is_other = !start || fit_best(start->lines, start->sweep) != j->result.best;
  if (is_other) r->done = 0; /* an earlier run compared the atoms of another sweep */
  record_take(j);
  if (!r->done) TRY(record_write(j));
  while (r->done < r->wanted && !j->run->stopped) {
    TRY(seed_run(j));
    if (j->run->stopped) break;
    TRY(inputs_confirm(&j->run->comm));
    TRY(record_write(j));
  }
  return OK;
}

int fit_seeds_count(struct fit_job *j)
{
  struct stability *s = &j->stable;
  idx *order, *match;
  if (!s->seeds) return OK;
  stability_best(s);
  TRY(arena_alloc(&j->arena, &order, s->k, sizeof *order));
  TRY(arena_alloc(&j->arena, &match, s->k, sizeof *match));
  s->density = j->encoded.density;
  stability_count(s, order, match);
  return OK;
}

void fit_seeds_log(const struct fit_job *j)
{
  const struct stability *s = &j->stable;
  if (!s->seeds) return;
  log_info("%-22s %.6g, of pairs above 0.7 %.4f, above 0.9 %.4f, by %d other seeds", "pw_mcc",
           s->pw_mcc, s->low, s->high, s->seeds);
  log_info("%-22s %.6g and %.6g, of the quarters of most and least frequent atoms", "", s->frequent,
           s->rare);
  log_info("%-22s %.4f of the atoms above 0.7, %.4f above 0.9", "stability", s->found_low,
           s->found_high);
}

static struct detect_task task_of(const struct fit_job *j, const struct atom_source *atoms,
                                  const struct support_source *codes)
{
  return (struct detect_task){.rows = &j->rows.source,
                              .atoms = atoms,
                              .codes = codes,
                              .mean = j->task.center ? j->mean : NULL,
                              .threads = j->task.threads};
}

/* The shapes of atoms and codes that do not exist yet. */
struct shapes {
  struct atom_source atoms;
  struct support_source codes;
};

static struct shapes shapes_of(const struct fit_job *j)
{
  gidx n = j->rows.source.n;
  idx k = j->task.k;
  return (struct shapes){
      {.k = k, .d = 1, .p = j->rows.source.p, .name = "the fit"},
      {.n = n, .k = k, .d = 1, .entries = n * j->files.top_s, .name = "the codes"}};
}

int fit_detectors_check(struct fit_job *j)
{
  const struct shapes s = shapes_of(j);
  const struct detect_task task = task_of(j, &s.atoms, &s.codes);
  if (!j->o->detectors) return OK;
  TRY(comm_agree(&j->run->comm, detect_check(&task)));
  return detect_memory_check(&task, &j->run->comm);
}

int fit_detectors_bytes(const struct fit_job *j, gidx *bytes)
{
  const struct shapes s = shapes_of(j);
  const struct detect_task task = task_of(j, &s.atoms, &s.codes);
  *bytes = 0;
  return j->o->detectors ? detect_memory(&task, &j->run->comm, bytes) : OK;
}

/* file[capacity] <- the path of supports.h5, on every rank. */
static int codes_path_find(struct fit_job *j, char *file, size_t capacity)
{
  if (j->run->comm.rank == 0) memcpy(file, j->files.job.more[FIT_SUPPORTS].file, capacity);
  return comm_broadcast(&j->run->comm, file, (gidx)capacity, 1);
}

static int detectors_find(struct fit_job *j, const struct support_source *codes,
                          struct detect_result *result)
{
  const struct detect_task task = task_of(j, &j->source, codes);
  double begun = log_seconds();
  TRY(detect_run(&task, &j->run->comm, result));
  log_info("detect  rows=%lld atoms=%d threshold_rows=%lld silent=%lld mean_f1=%.6g seconds=%.2f",
           (long long)task.rows->n, task.atoms->k, (long long)result->rows,
           (long long)result->silent, result->mean_f1, log_seconds() - begun);
  return OK;
}

int fit_detectors_run(struct fit_job *j)
{
  struct comm *c = &j->run->comm;
  struct supports_input codes = {0};
  char file[sizeof j->files.job.more[FIT_SUPPORTS].file] = {0};
  if (!j->o->detectors) return OK;
  TRY(codes_path_find(j, file, sizeof file));
  TRY(inputs_agree(c, supports_input_open(&codes, file)));
  TRY(detectors_find(j, &codes.source, &j->detected));
  TRY(inputs_confirm(c));
  supports_input_close(&codes);
  j->extra.detectors = (struct detectors){j->task.k, j->rows.source.p, j->detected.weights,
                                          j->detected.threshold, j->detected.firing};
  return fit_files_end(&j->files);
}
