/* SPDX-License-Identifier: BSD-3-Clause
 * The group /part of the file that a stopped `assemble` or `solve` leaves under the name of the
 * result: the first systems, or their solutions.  A complete result has only the mark, in /inputs,
 * or no mark if its run gave none.
 *
 * Floor: io.  Not collective. */
#ifndef IO_SYSTEMS_PART_H
#define IO_SYSTEMS_PART_H

#include "io/h5/h5.h"
#include "io/schema.h"

struct systems_part {
  gidx systems, total;  /* systems in the file, at least 1 and fewer than total; systems in all */
  uint64_t mark;        /* with /inputs it identifies the inputs and options of the run */
  uint64_t fingerprint; /* hash of the contents */
};

/* Are these all systems?  Then the file has no /part. */
int systems_part_is_whole(const struct systems_part *part);
/* Give the file this kind, and write /part; for a complete result write only the mark. */
int systems_part_write(const struct h5_file *f, const struct file_kind *kind,
                       const struct systems_part *part);
/* Read /part of a file of kind `kind`.  For a complete file (kind `whole`) *part has only the mark,
 * and 0 systems.  ERR_INPUT: the file is neither, is complete and has no mark, or its numbers are
 * out of range. */
int systems_part_read(const struct h5_file *f, const struct file_kind *kind,
                      const struct file_kind *whole, struct systems_part *part);
/* *is_part <- did Sagitta write the file, and is it of this kind? */
int systems_part_is(const struct h5_file *f, const struct file_kind *kind, int *is_part);

/* The check of a kind's /part, and its line in `inspect`. */
struct verify;
int systems_part_check(const struct verify *v, const struct file_kind *kind);
int systems_part_show(const struct h5_file *f, const struct file_kind *kind, FILE *out);

#endif
