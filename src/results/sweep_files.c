/* SPDX-License-Identifier: BSD-3-Clause
 * Rank 0 reads and writes the file, and broadcasts what it reads. */
#include "results/sweep_files.h"

#include "base/log.h"
#include "base/status.h"
#include "io/inputs.h"
#include "io/input_agreement.h"
#include "job/checkpoint.h"

int sweep_files_claim(struct sweep_files *f)
{
  const struct job *job = f->job;
  TRY(output_path(&f->place, job->output.output, "sweep.h5", 1));
  if (!input_is_there(f->place.file)) return OK;
  if (!job->resume && !job->output.force) return job_part_refuse(f->place.file);
  f->there = job->resume;
  return job->resume ? sweep_facts_read(f->place.file, &f->found) : OK;
}

const char *sweep_files_advice(const struct sweep_files *f)
{
  if (!f->there || f->found.sweeps > 0) return "";
  return ", or remove it, and the supports.h5 of its run, to resume from 'sweep.h5', which a run "
         "left that was begun over it";
}

int sweep_files_broadcast(struct sweep_files *f)
{
  struct comm *c = &f->job->run->comm;
  TRY(comm_broadcast(c, &f->there, 1, sizeof f->there));
  return comm_broadcast(c, &f->found, 1, sizeof f->found);
}

static int sweep_take(void *self, real *frames, struct atom_step *steps)
{
  struct sweep_files *f = self;
  struct comm *c = &f->job->run->comm;
  TRY(comm_agree(c, c->rank ? OK : sweep_read(f->place.file, f->k, f->d, f->p, frames, steps)));
  return comm_broadcast(c, steps, f->k, sizeof *steps);
}

/* Check that the saved sweep has these classes, and began with the files beside it. */
static int state_check(const struct sweep_files *f, const struct sweep_facts *now,
                       const struct sweep_facts *then)
{
  const struct identity *is = &now->contents, *was = &then->contents;
  CHECK(now->classes == then->classes, ERR_INPUT,
        "'sweep.h5' beside '%s' is of a run with other classes: classes_hash %016llx, not "
        "%016llx; resume with the same classes, or remove it",
        f->job->place.shown, (unsigned long long)then->classes, (unsigned long long)now->classes);
  CHECK(
      is->dictionary == was->dictionary && is->supports == was->supports && is->codes == was->codes,
      ERR_INPUT,
      "'sweep.h5' beside '%s' is of another dictionary.h5 or supports.h5: dictionary_hash "
      "%016llx, not %016llx; restore those files, or remove it",
      f->job->place.shown, (unsigned long long)was->dictionary, (unsigned long long)is->dictionary);
  return OK;
}

int sweep_files_begin(struct sweep_files *f, const struct sweep_facts *now, const float *before,
                      struct sweep_start *start)
{
  const struct sweep_facts *then = &f->found;
  *start = (struct sweep_start){.atoms = 0};
  f->now = *now;
  job_save_later(f->job);
  f->saved_atoms = 0;
  if (!f->there) return OK;
  f->there = 0; /* a later save replaces a file of another sweep, or sweep_files_end() removes it */
  if (then->sweeps != now->sweeps) {
    log_info("resume  sweep.h5 is of sweep %lld, not %lld, and is not used",
             (long long)then->sweeps + 1, (long long)now->sweeps + 1);
    return OK;
  }
  if (f->job->run->comm.rank == 0)
    TRY(identity_text_check(&f->job->run->identity, f->place.file, "sweep.h5"));
  TRY(state_check(f, now, then));
  CHECK(then->atoms >= 0 && then->atoms <= f->k, ERR_INPUT, "'sweep.h5' says %lld of %d atoms",
        (long long)then->atoms, f->k);
  log_info("resumed inside sweep %lld, after %lld of its atoms", (long long)then->sweeps + 1,
           (long long)then->atoms);
  f->saved_atoms = then->atoms;
  *start = (struct sweep_start){then->atoms, before, sweep_take, f};
  return OK;
}

/* Rank 0: is a save due?  One is also due if all atoms are done and the rest takes long. */
static int is_due(const struct sweep_files *f, const struct sweep_point *at)
{
  static const double LONG = 0.1; /* a fraction of --save-seconds, since saving takes seconds */
  const struct job *job = f->job;
  if (job->save_seconds <= 0 || at->atoms == f->saved_atoms) return 0;
  return log_seconds() >= job->due || at->after >= LONG * job->save_seconds;
}

/* *asked <- the reasons of all ranks to save the sweep, or to stop, as bits; 0: none. */
static int asked_find(struct sweep_files *f, const struct sweep_point *at, uint64_t *asked)
{
  static const double SHORT = 1; /* seconds; if the sweep's end takes less, a stop waits for it */
  struct run *run = f->job->run;
  *asked = at->after > 0 && at->after < SHORT ? 0 : job_stop_asked(f->job);
  if (run->comm.rank == 0 && is_due(f, at)) *asked |= STOPS_SAVE;
  return comm_or(&run->comm, asked, 1);
}

static int sweep_write(struct sweep_files *f, const struct sweep_point *at)
{
  TRY(sweep_output_create(&f->file, f->place.file, f->k, f->d, f->p));
  TRY(sweep_output_write(&f->file, &f->now, at->frames, at->steps, f->k));
  return job_file_finish(f->job, &f->file);
}

int sweep_files_poll(struct sweep_files *f, const struct sweep_point *at, int *stop)
{
  struct run *run = f->job->run;
  uint64_t asked;
  TRY(asked_find(f, at, &asked));
  if (!asked) return OK;
  TRY(job_wait(f->job)); /* the writer thread uses the list of inputs and HDF5 until it ends */
  if (f->write) phase_begin(f->write);
  TRY(inputs_confirm(&run->comm));
  f->now.atoms = f->saved_atoms = at->atoms;
  TRY(comm_agree(&run->comm, run->comm.rank ? OK : sweep_write(f, at)));
  if (f->write) phase_end(f->write, 0);
  job_save_later(f->job);
  f->times_saved++;
  log_info("saved   %lld atoms of sweep %lld", (long long)at->atoms, (long long)f->now.sweeps + 1);
  asked &= ~STOPS_SAVE;
  *stop = asked != 0;
  if (asked) job_stopped(f->job, asked);
  return OK;
}

void sweep_files_end(struct sweep_files *f)
{
  if (f->job->run->comm.rank == 0) output_remove(f->place.file);
}

void sweep_files_over(struct sweep_files *f, gidx sweeps)
{
  const struct sweep_facts *then = &f->found;
  if (f->job->run->comm.rank || !f->there || then->sweeps >= sweeps) return;
  int is_other = job_file_check(f->job, &f->place);
  status_clear();
  if (is_other) return;
  log_info("removed '%s', of sweep %lld, which is done", f->place.shown,
           (long long)then->sweeps + 1);
  sweep_files_end(f);
}
