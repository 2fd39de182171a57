/* SPDX-License-Identifier: BSD-3-Clause
 * Where a run's outputs go: names are resolved, checked against all inputs, and locked, before any
 * work begins.
 *
 * Floor: io.  Used by rank 0 alone; not collective.
 *
 * A file's place is its folder, without links, and its name there.  A run claims every file that it
 * is going to write and holds them to its end, by a lock on `.NAME.lock` in the same folder. */
#ifndef IO_PLACE_H
#define IO_PLACE_H

/* folder[4096] <- the folder of a path as it is written, "." when it names none. */
void path_folder(const char *path, char *folder);

/* Where a command writes a result, the deck that repeats the run, its log and page.  --output is a
 * folder, or a file when it ends in ".h5". */
struct output_path {
  char file[4096], used[4096], log[4096];   /* resolved, as are the next */
  char used_failed[4096], log_failed[4096]; /* what used and log become of a run that fails */
  char page[4096];                          /* run.json */
  char shown[4096];                         /* file as it was asked for, for messages */
};
/* Find the names, create the folder when it is missing, and claim all six; name is that of the
 * result in a folder, as "supports.h5".  Results of one run may share all but the first.
 * ERR_CREATE: the result is there already and force is 0, another run is writing here, another
 * output of this run has the name, or the folder cannot be made or written to. */
int output_path(struct output_path *place, const char *output, const char *name, int force);
/* ERR_USAGE: it is NULL.  output_path() looks, too; a command may before it reads anything. */
int output_check_given(const char *output);
/* Claim one more file; resolved[4096] <- its name.  ERR_CREATE as above. */
int output_claim(const char *path, int force, char *resolved);
/* ERR_CREATE when a claimed file, or what a stopped job left of it, is there already and force is
 * 0; and of the latter alone. */
int output_check_free(const char *path, int force);
int output_check_left(const char *path, int force);
/* The journal that a stopped job left of a claimed file (journal.h), "": there was none when it was
 * claimed.  Remove it and its growing file: something else has been published, or recorded. */
const char *output_left(const char *path);
void output_left_discard(const char *path);

/* ERR_CREATE when any claimed file is one of the inputs, each FILE or FILE:/PATH or NULL, or the
 * deck, which may be used.in itself, since that is replaced by the deck that repeats this very run,
 * and only with its result; deck may be NULL. */
int outputs_check_inputs(const char *const *inputs, int count, const char *deck);

/* Warn of files that runs which were killed left behind of those that are claimed. */
void outputs_warn_leftovers(void);

/* Remove a result that another makes false; that it is not there is no failure. */
void output_remove(const char *path);

/* The job is done: what is not complete is removed, and the locks are given back.  Before any rank
 * may end. */
void outputs_release(void);

#endif
