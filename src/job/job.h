/* SPDX-License-Identifier: BSD-3-Clause
 * The life of a job that can be resumed.
 *
 * Floor: job.  Knows io, comm, model, base; no algorithm, no command.
 *
 *   job_open() -- is_complete --> job_complete()
 *       `-- A: job_begin() - the algorithm ------------------> job_finish()
 *       |-- B: the algorithm, job_publish() again and again -> job_publish(job, 1)
 *       `-- C: the algorithm, job_checkpoint() after each step -> job_settle()
 *
 * A  encode, route, solve, assemble: one file grows.  A stopped job publishes its part so far in
 *    the place of the result, and a later run copies it; or it leaves the file, with a journal.
 * B  train, fit --find features: state.h5 until the result is published, which replaces it.
 * C  fit, refit: several files; type->find() knows from which of them a later run resumes.
 *
 * B and C publish by checkpoint.h.  The algorithm asks job_stops() whether to stop; the
 * same command with --resume continues a stopped job.
 *
 * Functions are collective, with one status on all ranks, unless a comment says otherwise.  After
 * any failure what was published last is in place.  Existing files that cannot be resumed are
 * ERR_INPUT if options, inputs or the bits of the program's results differ.  They are ERR_CREATE if
 * they are no result of this command, or --resume or --force is missing. */
#ifndef JOB_JOB_H
#define JOB_JOB_H

#include "base/memory.h"
#include "base/worker.h"
#include "io/place.h"
#include "job/run.h"

struct job;
struct matrix_output;
enum { JOB_MORE = 2 };

/* What a command supplies; self is the job's.  Functions without a communicator run on rank 0.
 * Members whose kinds (A, B, C) do not include the job's may be NULL. */
struct job_type {
  const char *unit;           /* of the work done, for the log: "rows"; NULL: the job logs it */
  const char *file;           /* the result, if --output is a folder */
  const char *more[JOB_MORE]; /* B, C: other files; they need a folder */

  /* A: what a stopped job leaves in the place of its result; has_rows: it has /part/rows. */
  const struct file_kind *part;
  int has_rows;
  /* A: open what an earlier run left, and set job->done, total or is_complete.  ERR_INPUT: it is
   * nothing of this kind. */
  int (*open)(void *self, const char *path);
  /* A, once options are compared: is what was left of use?  C: with job->resume, compare and read
   * the files, and set is_resumed or is_complete; without resume and --force, refuse what a stopped
   * job left. */
  int (*find)(void *self, struct job *job);
  /* B: read and write the state; is_end: the result. */
  int (*read)(void *self, const char *path, int is_end);
  int (*write)(void *self, const char *path, int is_end);
  /* Broadcast from rank 0 what else was found. */
  int (*distribute)(void *self, struct comm *c);

  /* A: add the inputs to run->identity, as far as they are known. */
  int (*identify)(void *self, struct identity_text *identity);
  /* A: the result is complete, and of this job as far as identify() says: read what is needed. */
  int (*complete)(void *self, struct comm *c);
  /* A: begin the result with what was left; if there is something, all ranks prepare first. */
  int (*prepare)(void *self, struct comm *c);
  int (*begin)(void *self);

  /* C: copy what save() reads, on every rank; and publish it. */
  int (*snapshot)(void *self);
  int (*save)(void *self);
  int saves_together; /* save() is collective if no thread calls it; 0: rank 0 calls it */
};

struct job {
  /* Set by the command before job_open(); pointers are borrowed. */
  struct run *run;
  struct output_options output; /* as given, as resume is */
  int resume;
  gidx total; /* units in all, 0: not known yet */

  /* After job_open(), on every rank. */
  const struct job_type *type;
  void *self;
  gidx done;       /* units that the earlier run has done; 0: there was none, or nothing of use */
  int is_resumed;  /* there is something to resume from */
  int is_complete; /* the earlier run did all: nothing is begun */
  const char *advice; /* rank 0: to add if the result is of another job; NULL: none */
  char left[4096];    /* rank 0, A: the journal of a growing file (io/journal.h); "": none */
  struct output_path place, more[JOB_MORE]; /* rank 0: of the result, and of type->more */

  /* Set by the command after job_open(), before it publishes. */
  const char *device; /* for /run of what is published: what computes, */
  int threads;        /* and its number of threads */
  int writes_beside;  /* C: a thread of rank 0 writes checkpoints while the job computes */
  /* Set before the algorithm; the functions may be NULL, and get `of`. */
  int (*may_stop)(void *of); /* between two steps: is there enough to resume from? */
  /* The job's entries of run.json, after each checkpoint; NULL: it is written only at the end. */
  int (*summary)(const void *of, struct json *own);
  void *of;
  int stops_to_save; /* A, B: the algorithm is also stopped for a checkpoint, and then continues */
  real save_seconds; /* --save-seconds: time from a checkpoint until the next one is due */
  real poll_seconds; /* between two checks for the file STOP; its file system may be slow */

  /* Used by src/job only. */
  struct worker writer; /* rank 0: with writes_beside */
  real due;             /* when the next checkpoint is due; 0: counted from the first poll */
  real polled;          /* when the file STOP was last checked for; 0: never */
  int is_save_asked;    /* on every rank: the algorithm has stopped only for a checkpoint */
};

/* Claim the output paths, for a command that reads existing files before it opens the job;
 * job->type must be set.  Rank 0. */
int job_claim(struct job *job);

/* Claim the output paths, find what an earlier run left, and begin used.in and run.log unless that
 * is complete.  ERR_INPUT, ERR_CREATE: see above. */
int job_open(struct job *job, const struct job_type *type, void *self,
             const struct run_inputs *inputs);
/* Broadcast what rank 0 has found: for jobs that are opened without job_open(), which does it. */
int job_distribute(struct job *job);
/* ERR_INPUT: the existing file is not of this job, as far as inputs are known.  Rank 0. */
int job_file_check(const struct job *job, const struct output_path *place);
/* value[capacity] <- the value of an option in the run that left a result, once paths are claimed;
 * "": there is none, or it is not to be resumed.  Rank 0 alone. */
int job_earlier_value(const struct job *job, const char *key, char *value, size_t capacity);
/* The result is complete: nothing is left to do.  A compares the inputs. */
int job_complete(struct job *job);
/* A: compare the inputs, and begin the result with what an earlier run left. */
int job_begin(struct job *job);
/* Publish a file that is being written, with the facts of /run.  Rank 0 alone. */
int job_file_finish(const struct job *job, struct matrix_output *file);
/* A: check that no input has changed; then rank 0 calls publish(self) for what is done. */
int job_finish(struct job *job, int (*publish)(void *self), void *self);

/* Fail with ERR_CREATE: a stopped job left the file.  Not collective. */
int job_part_refuse(const char *path);

#endif
