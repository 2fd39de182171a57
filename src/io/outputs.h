/* SPDX-License-Identifier: BSD-3-Clause
 * Result files: written under a temporary name, verified, then renamed, so that a file which exists
 * is complete.  Also where a command's results go, and /run, what each file says about its run.
 *
 * Floor: io.  Used by rank 0 alone; not collective. */
#ifndef IO_OUTPUTS_H
#define IO_OUTPUTS_H

#include "base/types.h"
#include "io/schema.h"

/* Where a command writes its result, the deck that repeats the run, and its log.  --output is a
 * folder, or a file when it ends in ".h5". */
struct output_place {
  char file[4096], used[4096], log[4096];
};
/* Find the names, and create the folder when it is missing; name is that of the result in a folder,
 * as "supports.h5".  ERR_CREATE when the result is there already and force is 0, or the folder
 * cannot be made or written to. */
int output_place(struct output_place *place, const char *output, const char *name, int force);
/* ERR_CREATE when the result would replace this input. */
int output_check_input(const struct output_place *place, const char *input);

/* One attribute of /run: a text, or a number when text is NULL. */
struct run_fact {
  const char *name, *text;
  real number;
};

/* A result that is being written. */
struct result_file {
  struct h5_file h5;
  char path[4096], temporary[4096];
};
/* Create the temporary file of a kind (schema.h), with the root attributes format, format_version
 * and kind.  ERR_CREATE, also when the file system has less than `bytes` free. */
int result_create(struct result_file *r, const char *path, const struct file_kind *kind,
                  gidx bytes);
/* Write /run and close; read the file again and verify every checksum and invariant; bring it to
 * the disk, rename it, and bring the folder to the disk.  ERR_INTERNAL: an input is open that was
 * not compared among ranks, or not looked at since it was last read (input_file.h). */
int result_publish(struct result_file *r, const struct run_fact *facts, int n_facts);
/* Remove the temporary files of results that are being written.  Safe at any time, also in a signal
 * handler; exit() and the signals that end a job call it too. */
void result_discard(void);

#endif
