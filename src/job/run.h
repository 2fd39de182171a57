/* SPDX-License-Identifier: BSD-3-Clause
 * One run of a command: what main knows about it, and how its result and the files beside it begin.
 *
 * Floor: job. */
#ifndef JOB_RUN_H
#define JOB_RUN_H

#include "base/cores.h"
#include "base/options.h"
#include "base/types.h"
#include "comm/comm.h"
#include "io/outputs.h"
#include "io/place.h"
#include "job/identity.h"

struct run; /* below */

struct command {
  const char *name, *summary;
  const struct option_set *options;
  size_t options_bytes; /* of the command's options struct */
  int parallel;         /* uses MPI */
  /* Do the job.  options points to the command's options struct; arguments are followed by NULL. */
  int (*run)(struct run *run, const void *options, const char **arguments);
};

/* Which program this is. */
struct json;
struct program {
  const char *name, *version, *revision;
  void (*log)(void);                   /* logs a line about the program */
  void (*libraries)(struct json *out); /* writes an entry: the linked libraries */
  const char *(*job)(void);            /* number of the batch job; NULL: none */
};

/* What main gives to a command.
 *
 * A command keeps the state of its job in one struct on the heap (struct_alloc() of base/memory.h),
 * and so do the jobs that it calls.  The struct is freed after success.  It is not freed after a
 * failure: if another rank fails, a worker thread may use the struct until main has ended the
 * program.  So such state is never on the stack of a function that returns an error. */
struct run {
  const struct program *program;
  const struct command *command;
  const void *options; /* owned, as are the arguments */
  int argc;
  char **argv;
  const char **arguments; /* arguments that are no options, then NULL; owned */
  const char *deck;       /* NULL: none */
  struct comm comm;       /* size 1 and not open for commands that are not parallel */
  struct cores *cores;    /* [comm.size] of every rank's machine; NULL when not parallel; owned */
  gidx *threads;          /* [comm.size] of every rank, after threads_report(); owned */
  struct identity_text identity; /* of a job that can be resumed; published files have it */
  char started[32];              /* UTC, ISO 8601 */
  char title[48];                /* "sagitta encode" */
  int unread;                    /* 1: stdout is a pipe without a reader */
  int stopped;                   /* the job was asked to stop, and stopped at a safe point */
  real max_seconds; /* seconds since the start after which safe points stop the job; 0: no limit */
  int wants_json;   /* --json */
  char summary[4096]; /* rank 0, after run_begin_at(): path of run.json (summary.h) */
  char result[4096];  /* path of the result, as given */
  char used[4096];    /* path of used.in, as a user types it; "": too long */
};

struct output_options {
  const char *output;
  int force;
};

/* The files that a run reads, each FILE or FILE:/PATH, or NULL. */
enum { MAX_INPUTS = 5 };
struct rows_input;
struct run_inputs {
  const char *name[MAX_INPUTS];
  const struct rows_input *rows, *holdout; /* for the names of their files; NULL: none */
};
/* Begin a result called `name`.  Rank 0 accepts or refuses the path, checks that no output of the
 * run is one of its inputs, and begins used.in and run.log.  *place is set on rank 0.
 * Collective. */
int run_begin(struct run *run, const struct output_options *output, const char *name,
              const struct run_inputs *inputs, struct output_path *place);
/* The same for a path that rank 0 has claimed.  appends: the log of the resumed run is continued.
 * Collective. */
int run_begin_at(struct run *run, const struct output_path *place, const struct run_inputs *inputs,
                 int appends);

#endif
