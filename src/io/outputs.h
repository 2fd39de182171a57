/* SPDX-License-Identifier: BSD-3-Clause
 * Result files: written under a temporary name, verified, then renamed, so that a file which exists
 * is complete; and /run, what each file says about its run.
 *
 * Floor: io.  Used by rank 0 alone; not collective. */
#ifndef IO_OUTPUTS_H
#define IO_OUTPUTS_H

#include "base/types.h"
#include "io/schema.h"
#include "io/temporary.h"

/* One attribute of /run: a text, or a number when text is NULL. */
struct run_fact {
  const char *name, *text;
  real number;
};

/* A result that is being written. */
struct result_file {
  struct h5_file h5;
  struct temporary file;
  const struct support_counts *counts; /* of entries of supports that were read again already, and
                                        * need no more; NULL: all are; borrowed */
};
/* Create the temporary file of a result of a kind (schema.h), with the root attributes format,
 * format_version and kind.  ERR_CREATE, also when the file system has less than `bytes` free. */
int result_create(struct result_file *r, const char *path, const struct file_kind *kind,
                  gidx bytes);
/* The same in two steps, of a result whose chunks ranks write past HDF5 before it is a file of
 * HDF5's.  The first makes the temporary file, empty, with room for `bytes` where the file system
 * can promise it.  The second gives what is there the attributes, and chunks the place between base
 * and end: all before it is made anew, and all behind it removed. */
int result_reserve(struct result_file *r, const char *path, gidx bytes);
/* The first step of a file that is there, and that other jobs may write too. */
int result_join(struct result_file *r, const char *path, const char *name, gidx bytes);
int result_convert(struct result_file *r, const struct file_kind *kind, gidx base, gidx end);
/* Let the run's failure leave the file, as temporary_keep(), and bring its name to the disk. */
int result_keep(struct result_file *r, const char *end);
/* Write /run and close; read the file again and verify every checksum and invariant; bring it to
 * the disk; rename it, then the run's used.in and run.log, whose failure is a warning
 * (sidecars.h), and bring the folder to the disk.  What a stopped job left of it is removed then.
 * ERR_INTERNAL: an input is open that was not compared among ranks, or not looked at since it was
 * last read (input_file.h). */
int result_publish(struct result_file *r, const struct run_fact *facts, int n_facts);
/* The run has failed: remove what it has not published, but for its log (temporary.h). */
void result_discard(void);

#endif
