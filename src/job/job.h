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
 * A  encode, route, solve, assemble: one file grows.  A stopped job publishes the finished part in
 *    the place of the result, and a later run copies it; or it leaves the file and a journal.
 * B  train, fit --find features: the state is published as state.h5, until the result replaces it.
 * C  fit, refit: there are several files; type->find() chooses from which of them a run resumes.
 *
 * B and C publish by checkpoint.h.  The algorithm reads the requests of job_stops(); the same
 * command with --resume continues a stopped job.
 *
 * Functions are collective, with one status on all ranks, unless a comment says otherwise.  After a
 * failure the last published files are in place.  ERR_INPUT: options, inputs or NUMERICS differ
 * from those of existing files.  ERR_CREATE: existing files are not of this command, one of them is
 * missing, or neither --resume nor --force is given. */
#ifndef JOB_JOB_H
#define JOB_JOB_H

#include "base/memory.h"
#include "base/worker.h"
#include "io/place.h"
#include "job/run.h"

struct job;
struct matrix_output;
enum { JOB_MORE = 2 };

/* What a command supplies; `self` is job->self.  Functions without a communicator run on rank 0.  A
 * member whose comment begins with A, B or C may be NULL for jobs of the other kinds. */
struct job_type {
  const char *unit;           /* unit of work, in the log: "rows"; NULL: the job logs it */
  const char *file;           /* name of the result, if --output is a folder */
  const char *more[JOB_MORE]; /* B, C: names of other files in that folder */

  /* A: kind of the file that a stopped job leaves as its result; has_rows: it has /part/rows. */
  const struct file_kind *part;
  int has_rows;
  /* A: open the file that an earlier run left, and set job->done, total or is_complete, unless
   * find() does.  ERR_INPUT: the file is of another kind. */
  int (*open)(void *self, const char *path);
  /* A: can the opened file be continued?  Called after options were compared; ERR_CREATE: it
   * cannot.  C: with job->resume, compare and read the files, and set is_resumed or is_complete.
   * Without resume and --force, refuse the files of a stopped job. */
  int (*find)(void *self, struct job *job);
  /* B: read and write the state; with is_end the result. */
  int (*read)(void *self, const char *path, int is_end);
  int (*write)(void *self, const char *path, int is_end);
  /* Broadcast what else rank 0 has found; NULL: nothing. */
  int (*distribute)(void *self, struct comm *c);

  /* A: add the inputs to run->identity, as far as they are known. */
  int (*identify)(void *self, struct identity_text *identity);
  /* A: for a complete result: compare the contents of inputs, and read what is reported. */
  int (*complete)(void *self, struct comm *c);
  /* A: begin the result with the units that are done.  If there are any, prepare() runs first. */
  int (*prepare)(void *self, struct comm *c);
  int (*begin)(void *self);

  /* C: snapshot() copies what save() reads, on every rank; save() publishes it. */
  int (*snapshot)(void *self);
  int (*save)(void *self);
  int saves_together; /* 1: save() is collective, unless a thread calls it; 0: rank 0 calls it */
};

struct job {
  /* Set by the command before job_open(); pointers are borrowed. */
  struct run *run;
  struct output_options output; /* --output and --force */
  int resume;                   /* --resume */
  gidx total;                   /* units of the whole job; 0: not known yet */

  /* After job_open(), on every rank. */
  const struct job_type *type;
  void *self;
  gidx done;          /* units that an earlier run has done; 0: none that can be used */
  int is_resumed;     /* an earlier run left something to resume from */
  int is_complete;    /* the result is complete: no file is begun */
  const char *advice; /* rank 0: ends the message about a result of another job; NULL: none */
  char left[4096];    /* rank 0, A: the journal of a growing file (io/journal.h); "": none */
  struct output_path place, more[JOB_MORE]; /* rank 0: of the result and of the files type->more */

  /* Set by the command after job_open(), before it publishes. */
  const char *device; /* what computes, for /run of published files */
  int threads;        /* threads per rank, for /run */
  int writes_beside;  /* C: a thread of rank 0 writes checkpoints while the job computes */
  /* Set before the algorithm begins.  The functions may be NULL; their argument is `of`. */
  int (*may_stop)(void *of); /* between two steps: may the job stop there? */
  /* Adds the job's entries to run.json after each checkpoint.  NULL: only main writes run.json. */
  int (*summary)(const void *of, struct json *own);
  void *of;
  int stops_to_save; /* A, B: job_stops() also asks for checkpoints (STOPS_SAVE) */
  real save_seconds; /* --save-seconds: time from a checkpoint until the next one is due */
  real poll_seconds; /* seconds between two checks for the file STOP */

  /* Used by src/job; `due` and is_save_asked also by sweep_files.c and encode_saves.c. */
  struct worker writer; /* rank 0: the thread of writes_beside */
  real due;             /* when the next checkpoint is due; 0: set at the first poll */
  real polled;          /* when the file STOP was last checked for; 0: never */
  int is_save_asked;    /* on every rank: STOPS_SAVE was the only reason of the last stop */
};

/* Claim the output paths before job_open(), for a command that reads existing files first.
 * job->type must be set.  Rank 0. */
int job_claim(struct job *job);

/* Claim the output paths unless that is done, find what an earlier run left, and begin used.in and
 * run.log unless the result is complete.  ERR_INPUT, ERR_CREATE: see above. */
int job_open(struct job *job, const struct job_type *type, void *self,
             const struct run_inputs *inputs);
/* Broadcast what rank 0 has found: only for a job that is opened without job_open(). */
int job_distribute(struct job *job);
/* ERR_INPUT: the existing file is not of this job, as far as inputs are known.  Rank 0. */
int job_file_check(const struct job *job, const struct output_path *place);
/* value[capacity] <- the value of an option in the identity of the existing result; "": none, or
 * there is no --resume.  Call it when paths are claimed.  Rank 0 alone. */
int job_earlier_value(const struct job *job, const char *key, char *value, size_t capacity);
/* Call it if the result is complete: log that nothing is left to do.  Kind A compares inputs. */
int job_complete(struct job *job);
/* A: compare the inputs, and begin the result with the units that an earlier run has done. */
int job_begin(struct job *job);
/* Publish a file that is being written, with the facts of /run.  Rank 0 alone. */
int job_file_finish(const struct job *job, struct matrix_output *file);
/* A, and the end of B: check that no input has changed; then rank 0 calls publish(self). */
int job_finish(struct job *job, int (*publish)(void *self), void *self);

/* Fail with ERR_CREATE: a stopped job left the file.  Not collective. */
int job_part_refuse(const char *path);

#endif
