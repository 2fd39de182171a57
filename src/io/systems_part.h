/* SPDX-License-Identifier: BSD-3-Clause
 * What `assemble` or `solve` leaves when it is stopped, the first systems or their solutions in the
 * place of the result: its group /part.  A result that is whole has the mark alone, in /inputs.
 *
 * Floor: io.  Not collective. */
#ifndef IO_SYSTEMS_PART_H
#define IO_SYSTEMS_PART_H

#include "io/h5/h5.h"
#include "io/schema.h"

struct systems_part {
  gidx systems, total;  /* that are there, 1 or more and not all, and of all */
  uint64_t mark;        /* names what the run was begun with, beside /inputs */
  uint64_t fingerprint; /* of what is there */
};

/* Are these all?  Then there is no /part. */
int systems_part_is_whole(const struct systems_part *part);
/* The file becomes one of this kind, and has /part; of a whole it has the mark. */
int systems_part_write(const struct h5_file *f, const struct file_kind *kind,
                       const struct systems_part *part);
/* Read /part of a file of this kind; of a whole, a file of the other kind with a mark, *part has
 * the mark alone, and 0 systems.  ERR_INPUT: it is neither, or the numbers are out of range. */
int systems_part_read(const struct h5_file *f, const struct file_kind *kind,
                      const struct file_kind *whole, struct systems_part *part);
/* *is_part <- whether the file is ours and of this kind. */
int systems_part_is(const struct h5_file *f, const struct file_kind *kind, int *is_part);

/* The check and the line of `inspect` of a kind. */
struct verify;
int systems_part_check(const struct verify *v, const struct file_kind *kind);
int systems_part_show(const struct h5_file *f, const struct file_kind *kind, FILE *out);

#endif
