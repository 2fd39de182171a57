/* SPDX-License-Identifier: BSD-3-Clause
 * The parts of file_verify: what a file says it is, and the invariants of each kind's contents.
 *
 * Floor: io; included by files_verify.c and verify_*.c only. */
#ifndef IO_VERIFY_H
#define IO_VERIFY_H

#include <stdio.h>

#include "io/h5.h"
#include "io/schema.h"

struct verify {
  const struct h5_file *file;
  FILE *out;     /* a line a check; or NULL */
  int is_ours;   /* written by Sagitta: types and all promises are checked */
  char kind[32]; /* of file; empty when foreign */
  struct dimensions dims;
};

/* A line of the report. */
void verify_note(const struct verify *v, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Is an attribute this text?  ERR_INPUT when not. */
int verify_text(const struct verify *v, const char *object, const char *name, const char *wanted);

/* Contents of an array, ERR_INPUT naming the first bad place: rows and mean finite, atoms finite
 * and (ours) of unit norm. */
int verify_rows(const struct verify *v);
int verify_atoms(const struct verify *v);
int verify_mean(const struct verify *v);

/* What one pass over /supports counts. */
struct support_counts {
  gidx n, nnz, nonzero; /* rows, entries, entries with a code that is not 0 */
  idx k;
  gidx *density; /* [k] owned by the arena of the caller */
};
/* Offsets, ranges, no atom twice in a row, finite values, order of selection; then the metrics. */
int verify_supports(struct verify *v);

/* Classes: every placed atom once, in the class that /color says; of ours ascending, none empty. */
int verify_classes(const struct verify *v);

/* Systems: offsets, sizes, atoms once, finite values, rows that rise.  Solutions: outcomes. */
int verify_systems(const struct verify *v);
int verify_solutions(const struct verify *v);

/* Log determinants, blocks and pairs of a terminal pass. */
int verify_terminal(const struct verify *v);

/* The attributes and arrays of /metrics against the counts. */
int verify_metrics(const struct verify *v, const struct support_counts *counts, int has_codes);

#endif
