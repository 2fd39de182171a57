/* SPDX-License-Identifier: BSD-3-Clause
 * The output files of a run.  Before any work begins, their names are resolved, compared with all
 * inputs, and locked.
 *
 * Floor: io.  Used by rank 0 alone; not collective.
 *
 * A file's place is its folder, with symbolic links resolved, and its name there.  A run claims
 * every file that it is going to write.  For each result and for run.log it also holds a lock on
 * `.NAME.lock` in the same folder until it ends; a file system without locks is warned of. */
#ifndef IO_PLACE_H
#define IO_PLACE_H

/* folder[4096] <- the folder in the text of a path; "." if there is none. */
void path_folder(const char *path, char *folder);

/* The paths of a result and of the files beside it: the deck that repeats the run, the log, and
 * run.json.  --output is a file if it ends in ".h5", and a folder if it does not. */
struct output_path {
  char file[4096], used[4096], log[4096];   /* all resolved */
  char used_failed[4096], log_failed[4096]; /* new names of used and log if the run fails */
  char page[4096];                          /* run.json */
  char shown[4096];                         /* `file` as the user wrote it, for messages */
};
/* Find the names, create the folder if it is missing, and claim all paths but `shown`.  name: the
 * file name of the result in a folder, such as "supports.h5".  Several results of one run may share
 * all these paths except `file`.  ERR_USAGE: `output` is NULL, or has no valid name.  ERR_CREATE:
 * the result exists and force is 0, another run is writing here, another output of this run has the
 * name, or the folder cannot be made or written to. */
int output_path(struct output_path *place, const char *output, const char *name, int force);
/* ERR_USAGE: `output` is NULL.  output_path() checks this too; a command may call this earlier,
 * before it reads any input. */
int output_check_given(const char *output);
/* Claim one more file; resolved[4096] <- its name.  ERR_CREATE: as for output_path(). */
int output_claim(const char *path, int force, char *resolved);
/* Claim `path` together with other jobs (ranges.h): until this run ends, no run can claim it alone.
 * ERR_CREATE: another run has claimed `path` alone. */
int output_claim_shared(const char *path);
/* ERR_CREATE: the path is not a file; or force is 0, and the claimed file or a journal that a
 * stopped job left of it exists.  output_check_left() looks only for such a journal. */
int output_check_free(const char *path, int force);
int output_check_left(const char *path, int force);
/* output_left(): the journal that a stopped job left of a claimed file (journal.h); "": there was
 * none when the file was claimed.  output_left_discard(): remove that journal and its growing file,
 * once a result was published or another journal has a record. */
const char *output_left(const char *path);
void output_left_discard(const char *path);

/* ERR_CREATE: a claimed file is one of the inputs (each FILE, FILE:/PATH or NULL) or the deck (or
 * NULL).  The deck may be the run's own used.in: that file is replaced by an equivalent deck, and
 * only when the result is published. */
int outputs_check_inputs(const char *const *inputs, int count, const char *deck);

/* Warn of temporaries of the claimed files that killed runs left. */
void outputs_warn_leftovers(void);

/* Remove a result that another result has made invalid; a missing file is no failure. */
void output_remove(const char *path);

/* At the end of a job that has recorded nothing: remove its journal, and the growing file if this
 * job made it and no other job uses it (ranges.h). */
void outputs_give_up(void);
/* At the end of the job: remove incomplete files and release the locks.  Call it before any rank
 * ends. */
void outputs_release(void);

#endif
