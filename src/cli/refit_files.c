/* SPDX-License-Identifier: BSD-3-Clause
 * Rank 0 looks and writes; what it finds goes to all. */
#include "cli/refit_files.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/status.h"

static int is_file(const char *path)
{
  return access(path, F_OK) == 0;
}

/* Rank 0: the state that is there, and is it of a run with these options? */
static int resume_look(struct refit_files *f, const struct fit_facts *wanted)
{
  f->has_dictionary = is_file(f->dictionary.file);
  f->has_supports = f->has_dictionary && is_file(f->supports.file);
  if (!f->has_dictionary) return OK;
  TRY(fit_read(f->dictionary.file, &f->arena, &f->facts, &f->lines));
  CHECK(f->facts.directions == wanted->directions && f->facts.reroute == wanted->reroute, ERR_USAGE,
        "'%s' was made with '--directions %lld' and %s'--reroute': resume with the same",
        f->dictionary.file, (long long)f->facts.directions, f->facts.reroute ? "" : "without ");
  return OK;
}

static int places_look(struct refit_files *f, const struct output_options *output, int resume,
                       const struct fit_facts *wanted)
{
  const char *place = output->output;
  size_t length = place ? strlen(place) : 0;
  CHECK(length, ERR_USAGE, "'--output' is missing: a folder");
  CHECK(length < 3 || strcmp(place + length - 3, ".h5") != 0, ERR_USAGE,
        "'--output' is '%s', but two files are made: give a folder", place);
  TRY(output_place(&f->dictionary, place, "dictionary.h5", 1));
  TRY(output_place(&f->supports, place, "supports.h5", 1));
  if (resume) TRY(resume_look(f, wanted));
  if (f->has_dictionary) return OK;
  TRY(output_place(&f->dictionary, place, "dictionary.h5", output->force));
  return output_place(&f->supports, place, "supports.h5", output->force);
}

/* Lines for all sweeps to come, with those that there are. */
static int lines_room(struct refit_files *f, gidx sweeps)
{
  struct history_line *old = f->lines;
  gidx most = sweeps > f->facts.sweeps ? sweeps : f->facts.sweeps;
  TRY(arena_take(&f->arena, &f->lines, most + 1, sizeof *f->lines));
  if (old) memcpy(f->lines, old, (size_t)(f->facts.sweeps + 1) * sizeof *old);
  return OK;
}

int refit_files_open(struct refit_files *f, struct run *run, const struct output_options *output,
                     int resume, const struct fit_facts *wanted)
{
  struct comm *c = &run->comm;
  struct output_options forced = *output;
  struct output_place place;
  memset(f, 0, sizeof *f);
  f->facts = (struct fit_facts){0, wanted->directions, wanted->reroute};
  int status = c->rank ? OK : places_look(f, output, resume, wanted);
  if (!status) status = lines_room(f, wanted->sweeps);
  TRY(comm_agree(c, status));
  memcpy(f->dictionary_path, f->dictionary.file, sizeof f->dictionary_path);
  memcpy(f->supports_path, f->supports.file, sizeof f->supports_path);
  TRY(comm_broadcast(c, f->dictionary_path, sizeof f->dictionary_path, 1));
  TRY(comm_broadcast(c, f->supports_path, sizeof f->supports_path, 1));
  TRY(comm_broadcast(c, &f->has_dictionary, 1, sizeof f->has_dictionary));
  TRY(comm_broadcast(c, &f->has_supports, 1, sizeof f->has_supports));
  TRY(comm_broadcast(c, &f->facts, 1, sizeof f->facts));
  forced.force = 1;
  return run_begin(run, &forced, "dictionary.h5", &place);
}

void refit_files_free(struct refit_files *f)
{
  arena_free(&f->arena);
  memset(f, 0, sizeof *f);
}

static int run_facts_of(const struct run *run, const struct fit *fit, struct run_fact *facts)
{
  static char device[64];
  snprintf(device, sizeof device, "cpu %s", fit->device.variant);
  return run_facts(run, device, fit->task->threads, facts);
}

static int values_write(void *self, gidx first, gidx count, const float *values)
{
  return matrix_write(self, first, count, values);
}

/* The steps as arrays. */
static int atoms_split(struct arena *arena, const struct atom_step *steps, idx k,
                       struct fit_atoms *out)
{
  idx *accepted, *status, *retries;
  real *ridge, *log_det, *mantissa;
  gidx *exponent;
  TRY(arena_take(arena, &accepted, k, sizeof *accepted));
  TRY(arena_take(arena, &status, k, sizeof *status));
  TRY(arena_take(arena, &retries, k, sizeof *retries));
  TRY(arena_take(arena, &ridge, k, sizeof *ridge));
  TRY(arena_take(arena, &log_det, k, sizeof *log_det));
  TRY(arena_take(arena, &mantissa, k, sizeof *mantissa));
  TRY(arena_take(arena, &exponent, k, sizeof *exponent));
  for (idx a = 0; a < k; a++) {
    accepted[a] = steps[a].accepted;
    status[a] = steps[a].status;
    retries[a] = steps[a].retries;
    ridge[a] = steps[a].ridge;
    log_det[a] = steps[a].log_det;
    mantissa[a] = steps[a].pair.m;
    exponent[a] = steps[a].pair.e;
  }
  *out = (struct fit_atoms){k, accepted, status, retries, ridge, log_det, mantissa, exponent};
  return OK;
}

static int dictionary_write(struct refit_files *f, const struct run *run,
                            const struct refit_state *state)
{
  static struct matrix_file file; /* outlives a write that passed the deadline */
  const struct fit *fit = state->fit;
  struct run_fact facts[FACTS_MOST];
  struct arena arena = {0};
  struct fit_atoms atoms;
  gidx p = fit->p;
  TRY(atoms_split(&arena, state->steps, fit->k, &atoms));
  TRY(dictionary_create(&file, f->dictionary.file, fit->k, fit->d, fit->p));
  TRY(fit_frames_write(fit, &(const struct matrix_sink){&file, values_write}));
  if (state->inputs->mean) TRY(matrix_add(&file, "/mean", TYPE_F64, 1, &p, state->inputs->mean));
  TRY(fit_write(&file, &f->facts, f->lines, &atoms));
  TRY(matrix_finish(&file, facts, run_facts_of(run, fit, facts)));
  arena_free(&arena);
  return OK;
}

int refit_dictionary_write(struct refit_files *f, struct run *run, const struct refit_state *state)
{
  return comm_agree(&run->comm, run->comm.rank ? OK : dictionary_write(f, run, state));
}

int refit_supports_write(struct refit_files *f, struct run *run, const struct refit_state *state)
{
  static struct supports_file file;
  struct comm *c = &run->comm;
  const struct fit *fit = state->fit;
  struct run_fact facts[FACTS_MOST];
  struct supports_shape shape = {fit->total, fit->k, fit->s, fit->d, fit->p, 1};
  TRY(comm_agree(c, c->rank ? OK : supports_create(&file, f->supports.file, &shape)));
  TRY(fit_supports_write(fit, &file.sink));
  if (c->rank) return comm_agree(c, OK);
  struct supports_ending ending = {state->metrics, state->inputs->mean, fit->rho,
                                   state->inputs->supports.rounds, f->facts.sweeps};
  return comm_agree(c, supports_finish(&file, &ending, facts, run_facts_of(run, fit, facts)));
}
