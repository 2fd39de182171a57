/* SPDX-License-Identifier: BSD-3-Clause
 * The life of a job that can be resumed.
 *
 * Floor: job.  Knows io, comm, model, base; no algorithm, no command.
 *
 *   job_open() --- nothing is left to do ---> job_complete()
 *       `--- job_begin() --- the algorithm, which polls job_stops() (stop.h) ---> job_finish()
 *
 * What job_finish() publishes is the result, or where the job was asked to stop what there is of
 * it, from which the same command goes on with --resume.  Functions are collective, with one status
 * on all ranks, unless a comment says otherwise.  After any failure what was published last is in
 * place. */
#ifndef JOB_JOB_H
#define JOB_JOB_H

#include "base/memory.h"
#include "base/worker.h"
#include "io/place.h"
#include "job/run.h"

struct job;
struct matrix_output;
enum { JOB_MORE = 2 };

/* What a command supplies; self is the job's.  Functions without a communicator run on rank 0;
 * those behind open() may be NULL. */
struct job_type {
  const char *unit;             /* of what is done, for the log: "rows"; NULL: it says so itself */
  const char *file;             /* where --output is a folder */
  const char *more[JOB_MORE];   /* other files of a job that has several, which wants a folder */
  const struct file_kind *part; /* of what a stopped job of one file leaves in its place */
  int has_rows;                 /* a part says in /part/rows how many units it has */
  /* Open what an earlier run left, of one file alone; job->done, total or is_complete say how far
   * that came.  ERR_INPUT: it is nothing of this kind. */
  int (*open)(void *self, const char *path);
  /* Then: is it of use?  Of several files: compare and read them where job->resume is 1, and say
   * is_resumed or is_complete; else refuse what a stopped job left, unless --force says so. */
  int (*find)(void *self, struct job *job);
  int (*distribute)(void *self, struct comm *c); /* what else it says goes to all ranks */
  /* Add the inputs to run->identity, as far as they are known. */
  int (*identify)(void *self, struct identity_text *identity);
  /* It is complete, and of this job as far as identify() says: look at it. */
  int (*complete)(void *self, struct comm *c);
  /* There is something to resume from: what all ranks do before begin(). */
  int (*prepare)(void *self, struct comm *c);
  int (*begin)(void *self); /* Begin the result with what there is. */
  /* Of what is published while the job goes on (checkpoint.h): copy what save() reads, on every
   * rank; and publish it. */
  int (*snapshot)(void *self);
  int (*save)(void *self);
  int saves_together; /* save() is collective where no thread calls it; else rank 0 calls it */
  /* In the place of find() and save(), of a job whose state is more[0] until its result is there,
   * rank 0: read and write that, or at the end the result. */
  int (*read)(void *self, const char *path, int is_end);
  int (*write)(void *self, const char *path, int is_end);
};

struct job {
  /* Set by the caller; pointers are borrowed. */
  struct run *run;
  const struct job_type *type;
  void *self;
  struct output_options output; /* as asked for, as is the next */
  int resume;
  gidx total;         /* units of all, 0: not known yet */
  const char *device; /* what computes, once it is known, and with so many threads: /run of what */
  int threads;        /* is published says so */
  /* After job_open(), on every rank: */
  gidx done;       /* units that the earlier run has done; 0: there was none, or nothing of use */
  int is_resumed;  /* there is something to go on with */
  int is_complete; /* it has done all: nothing is begun */
  int is_claimed;
  int writes_beside;    /* set by the caller: checkpoints are written beside the work */
  struct worker writer; /* then, on rank 0 */
  struct output_path place, more[JOB_MORE]; /* rank 0: of the result, and of type->more */
  /* Set by the caller, with `of`; NULL: always.  Between two steps: is there enough to go on from
   * that the job may end here, and is it time to ask what asks it to? */
  int (*may_stop)(void *of);
  /* What run.json says of the job so far, after each checkpoint; NULL: it is written at the end. */
  int (*summary)(const void *of, struct json *own);
  void *of;
  int saves;         /* a stop may also ask to save what there is, and go on (STOPS_SAVE) */
  real save_seconds; /* of --save-seconds, since a checkpoint: then the next is due, */
  real due;          /* at this time; 0: counted from the first poll on */
  int is_save_asked; /* on every rank: the algorithm ends for that alone */
  real poll_seconds; /* between two looks at what asks it to stop, which may be far away */
  real polled;       /* when that was done last; 0: never */
};

/* Of a job with several files: '--output' has to be a folder.  ERR_USAGE.  Not collective. */
int job_folder_check(const struct output_options *output);
/* Claim the places, where a command reads what is there before it can open the job.  Rank 0. */
int job_claim(struct job *job);

/* Claim the places, find what an earlier run left, and unless that is complete begin used.in and
 * run.log.  ERR_INPUT: an earlier run was another job; ERR_CREATE: there is something else. */
int job_open(struct job *job, const struct job_type *type, void *self,
             const struct run_inputs *inputs);
/* What rank 0 has found goes to all: a part of job_open(). */
int job_distribute(struct job *job);
/* Then an array [count] of rank 0, to which its struct has a pointer, goes to all, who have it from
 * the arena; NULL stays NULL. */
int job_array_send(struct comm *c, struct arena *arena, void *array, gidx count, size_t size);
/* *is_there <- is there a file in this place?  ERR_INPUT: it is not of this job, as far as inputs
 * are known.  Rank 0 alone. */
int job_file_check(const struct job *job, const struct output_path *place, int *is_there);
/* value[capacity] <- of an option of the run that left a result, once places are claimed; "": there
 * is none, or it is not to be gone on with.  Rank 0 alone. */
int job_earlier_value(const struct job *job, const char *key, char *value, size_t capacity);
int job_complete(struct job *job);
int job_begin(struct job *job);
/* Publish a file that is being written, with what /run says.  Rank 0 alone. */
int job_file_finish(const struct job *job, struct matrix_output *file);
/* Look at the inputs, then let rank 0 publish(self): the result, or what there is so far. */
int job_finish(struct job *job, int (*publish)(void *self), void *self);

/* Is the file what a stopped job left: a part of this kind, of fewer rows than `whole`, if that is
 * not 0?  0 where it cannot be read.  Then ERR_CREATE says what to do.  Not collective. */
int job_part_is_left(const char *path, const char *kind, gidx whole);
int job_part_refuse(const char *path);

#endif
