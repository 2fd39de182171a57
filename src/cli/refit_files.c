/* SPDX-License-Identifier: BSD-3-Clause
 * Rank 0 looks for files and writes them; what it finds goes to all ranks. */
#include "cli/refit_files.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "io/inputs.h"
#include "job/numerics.h"
#include "job/job.h"
#include "refit/state_write.h"

int refit_files_check(const struct refit_files *f)
{
  char why[1024];
  const char *mend = sweep_files_mend(&f->sweep);
  int status =
      identity_text_check(&f->sweep.run->identity, f->dictionary.file, f->dictionary.shown);
  if (status != ERR_INPUT || !*mend) return status;
  snprintf(why, sizeof why, "%s%s", status_message(), mend);
  return status_set(status, why);
}

/* Rank 0: read how far an earlier run of this job came. */
static int before_find(struct refit_files *f, gidx sweeps)
{
  f->has_dictionary = input_is_there(f->dictionary.file);
  f->has_supports = f->has_dictionary && input_is_there(f->supports.file);
  if (!f->has_dictionary) return OK;
  TRY(numerics_resume(f->dictionary.file));
  TRY(refit_files_check(f));
  TRY(fit_read(f->dictionary.file, &f->arena, &f->facts, &f->lines));
  CHECK(f->facts.sweeps <= sweeps, ERR_USAGE,
        "'%s' has %lld sweeps, and '--sweeps' asks for %lld: resume with as many or more, or begin "
        "again with --force and not --resume",
        f->dictionary.file, (long long)f->facts.sweeps, (long long)sweeps);
  return OK;
}

/* Refuse to begin where a refit was stopped before the sweeps that are wanted. */
static int stopped_look(struct refit_files *f, gidx sweeps)
{
  struct fit_facts was;
  struct history_line *lines;
  if (!input_is_there(f->dictionary.file)) return OK;
  int status = fit_read(f->dictionary.file, &f->arena, &was, &lines);
  status_clear();
  return !status && was.sweeps < sweeps ? job_part_refuse(f->dictionary.file) : OK;
}

static int places_look(struct refit_files *f, const struct output_options *output, int resume,
                       gidx sweeps)
{
  const char *place = output->output;
  size_t length = place ? strlen(place) : 0;
  CHECK(length, ERR_USAGE, "'--output' is missing: a folder");
  CHECK(length < 3 || strcmp(place + length - 3, ".h5") != 0, ERR_USAGE,
        "'--output' is '%s', but two files are made: give a folder", place);
  TRY(output_place(&f->dictionary, place, "dictionary.h5", 1));
  TRY(output_place(&f->supports, place, "supports.h5", 1));
  TRY(sweep_files_claim(&f->sweep, output, resume));
  if (resume) TRY(before_find(f, sweeps));
  if (f->has_dictionary) return OK;
  CHECK(!resume || output->force || !input_is_there(f->supports.file), ERR_CREATE,
        "'%s' is there, but not '%s', from which --resume goes on: bring that one back, or begin "
        "again, with --force and not --resume",
        f->supports.shown, f->dictionary.shown);
  if (!resume && !output->force) TRY(stopped_look(f, sweeps));
  TRY(output_check_free(f->dictionary.file, output->force));
  return output_check_free(f->supports.file, output->force);
}

/* Allocate lines for all sweeps to come, and copy those that there are. */
static int lines_alloc(struct refit_files *f, gidx sweeps)
{
  struct history_line *old = f->lines;
  gidx max = sweeps > f->facts.sweeps ? sweeps : f->facts.sweeps;
  TRY(arena_alloc(&f->arena, &f->lines, max + 1, sizeof *f->lines));
  if (old) memcpy(f->lines, old, (size_t)(f->facts.sweeps + 1) * sizeof *old);
  return OK;
}

int refit_files_open(struct refit_files *f, struct run *run, const struct output_options *output,
                     int resume, gidx sweeps, const struct fit_start *wanted)
{
  struct comm *c = &run->comm;
  memset(f, 0, sizeof *f);
  f->facts.start = *wanted;
  f->sweep.run = run;
  f->sweep.shown = f->dictionary.shown;
  int status = c->rank ? OK : places_look(f, output, resume, sweeps);
  if (!status) status = lines_alloc(f, sweeps);
  TRY(comm_agree(c, status));
  TRY(comm_broadcast(c, &f->dictionary, 1, sizeof f->dictionary));
  TRY(comm_broadcast(c, &f->supports, 1, sizeof f->supports));
  TRY(comm_broadcast(c, &f->has_dictionary, 1, sizeof f->has_dictionary));
  TRY(comm_broadcast(c, &f->has_supports, 1, sizeof f->has_supports));
  TRY(comm_broadcast(c, &f->facts, 1, sizeof f->facts));
  return sweep_files_tell(&f->sweep);
}

void refit_files_free(struct refit_files *f)
{
  sweep_files_free(&f->sweep);
  arena_free(&f->arena);
  memset(f, 0, sizeof *f);
}

/* The facts of a run; device[64] <- the name of the device that the state was computed on. */
static int run_facts_of(const struct run *run, const struct refit_state *state, char *device,
                        struct run_fact *facts)
{
  snprintf(device, 64, "cpu %s", state->device.variant);
  return run_facts(run, device, state->task->threads, facts);
}

static int values_write(void *self, gidx first, gidx count, const float *values)
{
  return matrix_output_write(self, first, count, values);
}

static int dictionary_write(struct refit_files *f, const struct run *run,
                            const struct refit_result *result)
{
  struct matrix_output *file = &f->dictionary_file;
  const struct refit_state *state = result->state;
  struct run_fact facts[MAX_FACTS];
  char device[64];
  gidx p = state->p;
  TRY(dictionary_output_create(file, f->dictionary.file, state->k, state->d, state->p));
  TRY(nonnegative_write(&file->result.h5, state->task->nonnegative));
  f->frames_sink = (struct matrix_sink){file, values_write};
  TRY(refit_state_frames_write(state, &f->frames_sink));
  if (result->inputs->mean)
    TRY(object_write_vector(&file->result.h5, "/mean", p, result->inputs->mean));
  f->facts.contents = state->contents;
  TRY(fit_write(file, &f->facts, f->lines, result->steps, state->k));
  return matrix_output_finish(file, facts, run_facts_of(run, state, device, facts));
}

int refit_dictionary_write(struct refit_files *f, struct run *run,
                           const struct refit_result *result)
{
  return comm_agree(&run->comm, run->comm.rank ? OK : dictionary_write(f, run, result));
}

int refit_supports_write(struct refit_files *f, struct run *run, const struct refit_result *result)
{
  struct supports_output *file = &f->supports_file;
  struct comm *c = &run->comm;
  const struct refit_state *state = result->state;
  struct run_fact facts[MAX_FACTS];
  char device[64];
  struct supports_shape shape = {.n = state->total,
                                 .k = state->k,
                                 .s = state->s,
                                 .d = state->d,
                                 .p = state->p,
                                 .has_codes = 1,
                                 .nonnegative = state->task->nonnegative};
  TRY(comm_agree(c, c->rank ? OK : supports_output_create(file, f->supports.file, &shape)));
  TRY(refit_state_supports_write(state, &file->sink));
  if (c->rank) return comm_agree(c, OK);
  const struct identity *contents = &state->contents;
  struct supports_ending ending = {
      .metrics = result->metrics,
      .mean = result->inputs->mean,
      .rho = state->rho,
      .rounds = result->inputs->supports.rounds,
      .sweeps = f->facts.sweeps,
      .inputs = {.rows = state->inputs.rows, .dictionary = contents->dictionary},
      .contents = {.supports = contents->supports, .codes = contents->codes}};
  return comm_agree(
      c, supports_output_finish(file, &ending, facts, run_facts_of(run, state, device, facts)));
}
