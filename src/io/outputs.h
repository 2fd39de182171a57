/* SPDX-License-Identifier: BSD-3-Clause
 * Result files.  Each is written under a temporary name, verified, then renamed, so that a file
 * under its final name is complete.  Also /run, what each file says about its run.
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
  const struct support_counts *counts; /* counts of the entries of supports if these were already
                                        * read again and checked; NULL: result_publish() checks
                                        * them; borrowed */
};
/* Create the temporary file of a result of a kind (schema.h), with the root attributes format,
 * format_version and kind.  ERR_CREATE, also when the file system has less than `bytes` free. */
int result_create(struct result_file *r, const char *path, const struct file_kind *kind,
                  gidx bytes);
/* These functions create a result in two steps, if ranks write its chunks before HDF5 has created
 * the file's structure.  result_reserve() makes the temporary file, and reserves `bytes` of disk
 * space for it if the file system supports that.  result_convert() turns it into an HDF5 file with
 * the attributes.  The chunks between bytes base and end stay; all before base is written anew, and
 * all after end is removed. */
int result_reserve(struct result_file *r, const char *path, gidx bytes);
/* As result_reserve(), for an existing file at `name` that other jobs may also write. */
int result_join(struct result_file *r, const char *path, const char *name, gidx bytes);
int result_convert(struct result_file *r, const struct file_kind *kind, gidx base, gidx end);
/* Keep the file even if the run fails, under a name that ends in `end` (temporary_keep()), and sync
 * its folder. */
int result_keep(struct result_file *r, const char *end);
/* Write /run and close; read the file again and verify every checksum and invariant, except those
 * of the entries that r->counts covers; sync it; rename it, then the run's used.in and run.log
 * (sidecars.h; a failure of these is a warning); sync the folder.  Then remove the journal and the
 * growing file that a stopped job left of this result (output_left_discard()).  ERR_INTERNAL: an
 * open input was not compared among ranks, or was read after its last check for changes
 * (input_file.h). */
int result_publish(struct result_file *r, const struct run_fact *facts, int n_facts);
/* Does the file system of a file have `bytes` bytes free?  1 if it cannot be asked. */
int output_has_room(const char *path, gidx bytes);
/* After a failure of the run: remove its unpublished files (temporary.h).  used.in and run.log are
 * renamed instead (sidecars.h), and files of result_keep() stay. */
void result_discard(void);

#endif
