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
 * A  encode, route, solve, assemble: one file grows.  A stopped job publishes the part that is
 *    there, in the place of the result, and a later run copies it; or it leaves the file, with a
 *    journal.
 * B  train, fit --find features: state.h5 until the result is there, which replaces it.
 * C  fit, refit: several files; type->find() knows which of them a later run goes on from.
 *
 * B and C publish by checkpoint.h.  The algorithm asks job_stops() (stop.h) whether to stop; a job
 * that did goes on with the same command and --resume.
 *
 * Functions are collective, with one status on all ranks, unless a comment says otherwise.  After
 * any failure what was published last is in place.  What is there, and cannot be resumed, is
 * ERR_INPUT where it is of a job with other options or inputs, or of a program with other bits, and
 * ERR_CREATE where it is no result of this command, or --resume or --force is missing. */
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
 * What is not named may be NULL. */
struct job_type {
  const char *unit;           /* of what is done, for the log: "rows"; NULL: it says so itself */
  const char *file;           /* the result, where --output is a folder */
  const char *more[JOB_MORE]; /* B, C: other files, which want a folder */

  /* A: what a stopped job leaves in the place of its result; has it /part/rows? */
  const struct file_kind *part;
  int has_rows;
  /* A: open what an earlier run left; job->done, total or is_complete say how far that came.
   * ERR_INPUT: it is nothing of this kind. */
  int (*open)(void *self, const char *path);
  /* A, once options are compared: is it of use?  C, with job->resume: compare and read what is
   * there, and set is_resumed or is_complete; without it, and without --force: refuse what a
   * stopped job left. */
  int (*find)(void *self, struct job *job);
  /* B: read and write the state; is_end: the result. */
  int (*read)(void *self, const char *path, int is_end);
  int (*write)(void *self, const char *path, int is_end);
  /* What else was found goes from rank 0 to all ranks. */
  int (*distribute)(void *self, struct comm *c);

  /* A: add the inputs to run->identity, as far as they are known. */
  int (*identify)(void *self, struct identity_text *identity);
  /* A: what is there is complete, and of this job as far as identify() says: look at it. */
  int (*complete)(void *self, struct comm *c);
  /* A: begin the result, with what there is; where there is something, all ranks prepare first. */
  int (*prepare)(void *self, struct comm *c);
  int (*begin)(void *self);

  /* C: copy what save() reads, on every rank; and publish it. */
  int (*snapshot)(void *self);
  int (*save)(void *self);
  int saves_together; /* save() is collective where no thread calls it; else rank 0 calls it */
};

struct job {
  /* Set by the command before job_open(); pointers are borrowed. */
  struct run *run;
  struct output_options output; /* as asked for, as is the next */
  int resume;
  gidx total; /* units of all, 0: not known yet */

  /* After job_open(), on every rank. */
  const struct job_type *type;
  void *self;
  gidx done;       /* units that the earlier run has done; 0: there was none, or nothing of use */
  int is_resumed;  /* there is something to go on with */
  int is_complete; /* it has done all: nothing is begun */
  int is_claimed;
  char left[4096]; /* rank 0, A: the journal of a file that grows (io/journal.h); "": none */
  struct output_path place, more[JOB_MORE]; /* rank 0: of the result, and of type->more */

  /* Set by the command after job_open(), before it publishes. */
  const char *device; /* /run of what is published says: what computes, */
  int threads;        /* with so many threads */
  int writes_beside;  /* C: checkpoints are written beside the work, by a thread of rank 0 */
  /* Before the algorithm; each of the next two may be NULL, and is called with `of`. */
  int (*may_stop)(void *of); /* between two steps: is there enough to resume from? */
  /* What run.json says of the job so far, after each checkpoint; NULL: it is written at the end. */
  int (*summary)(const void *of, struct json *own);
  void *of;
  int stops_to_save; /* A, B: the algorithm is also stopped for a checkpoint, and then goes on */
  real save_seconds; /* of --save-seconds: so long after a checkpoint the next one is due */
  real poll_seconds; /* between two looks for the file STOP, which may be far away */

  /* Its own. */
  struct worker writer; /* rank 0: of writes_beside */
  real due;             /* when the next checkpoint is; 0: counted from the first poll on */
  real polled;          /* when the file STOP was last looked for; 0: never */
  int is_save_asked;    /* on every rank: the algorithm has stopped for a checkpoint alone */
};

/* B, C: '--output' has to be a folder.  ERR_USAGE.  Not collective. */
int job_folder_check(const struct output_options *output);
/* Claim the places, where a command reads what is there before it can open the job, which has its
 * type.  Rank 0. */
int job_claim(struct job *job);

/* Claim the places, find what an earlier run left, and unless that is complete begin used.in and
 * run.log.  ERR_INPUT, ERR_CREATE: see above. */
int job_open(struct job *job, const struct job_type *type, void *self,
             const struct run_inputs *inputs);
/* What rank 0 has found goes to all ranks: a part of job_open(), and for who opens it otherwise. */
int job_distribute(struct job *job);
/* Then an array [count] of rank 0, to which its struct has a pointer, goes to all, who have it from
 * the arena; NULL stays NULL. */
int job_array_send(struct comm *c, struct arena *arena, void *array, gidx count, size_t size);
/* ERR_INPUT: the file that is there is not of this job, as far as inputs are known.  Rank 0. */
int job_file_check(const struct job *job, const struct output_path *place);
/* value[capacity] <- of an option of the run that left a result, once places are claimed; "": there
 * is none, or it is not to be gone on with.  Rank 0 alone. */
int job_earlier_value(const struct job *job, const char *key, char *value, size_t capacity);
/* Nothing is left to do: A compares the inputs. */
int job_complete(struct job *job);
/* A: compare the inputs, and begin the result with what there is. */
int job_begin(struct job *job);
/* Publish a file that is being written, with what /run says.  Rank 0 alone. */
int job_file_finish(const struct job *job, struct matrix_output *file);
/* A: has no input changed?  Then rank 0 calls publish(self), of the result or of what there is. */
int job_finish(struct job *job, int (*publish)(void *self), void *self);

/* Is the file what a stopped job left: a part of this kind, of fewer rows than `whole`, if that is
 * not 0?  0 where it cannot be read.  Then ERR_CREATE says what to do.  Not collective. */
int job_part_is_left(const char *path, const char *kind, gidx whole);
int job_part_refuse(const char *path);

#endif
