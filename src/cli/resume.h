/* SPDX-License-Identifier: BSD-3-Clause
 * The place of a result where an earlier run may have left a part, from which --resume goes on.
 *
 * Floor: cli. */
#ifndef CLI_RESUME_H
#define CLI_RESUME_H

#include "cli/command.h"

/* Find and claim the place of a result; with resume, and where something is there, call
 * open(self, path), which answers ERR_INPUT where that is no part, and numerics_part(), and
 * *there <- 1.  ERR_CREATE: it is not gone on with, or something is there without resume and force.
 * Rank 0 alone. */
struct resume {
  int resume, force; /* as asked for */
  const char *kind;  /* of a part, as its file says */
  gidx whole;        /* one of so many rows is all that is wanted; 0: a part is never all */
  int (*open)(void *self, const char *path);
  void *self; /* borrowed */
};
int resume_place(const struct resume *r, const char *output, const char *name,
                 struct output_place *place, int *there);

/* Is the file what a job left that stopped: a part of this kind, of fewer rows than `whole`, if
 * that is not 0?  Of a file that cannot be read that is not known: 0. */
int resume_is_left(const char *path, const char *kind, gidx whole);

/* ERR_CREATE: a job that stopped left this file, and neither --resume nor --force is given. */
int resume_refuse(const char *path);

/* Begin used.in and run.log; with done > 0 the log says how far the earlier run came, of all so
 * many rows or so, and is appended to.  Collective. */
int resume_begin(struct run *run, const struct output_place *place, const struct run_inputs *inputs,
                 gidx done, gidx all, const char *unit);

#endif
