/* SPDX-License-Identifier: BSD-3-Clause
 * Supports that are read: a source, which gives them piece by piece; and the rows that a rank
 * holds.
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA. */
#ifndef MODEL_SUPPORTS_H
#define MODEL_SUPPORTS_H

#include "base/memory.h"
#include "base/types.h"
#include "model/classes.h"

/* A CSR matrix of supports.  The io floor fills this struct for files. */
struct support_source {
  gidx n, entries;
  idx k;            /* atoms */
  idx d;            /* codes per entry; 1 if there are no codes */
  int has_codes;    /* values are codes, not scores */
  const char *name; /* borrowed: for messages, FILE:/PATH */
  void *self;       /* borrowed */
  /* out[count + 1] <- where the entries of rows first .. first + count begin.  Not collective. */
  int (*starts)(void *self, gidx first, gidx count, gidx *out);
  /* atoms[count], score[count], codes[count][d] <- entries first .. first + count - 1.  score and
   * codes may be NULL if they are not needed. */
  int (*read)(void *self, gidx first, gidx count, idx *atoms, float *score, float *codes);
  int is_unscored; /* there are no scores: read() does not write score */
};

/* Rows first .. first + view.n - 1 of a source. */
struct supports {
  struct support_view view; /* start counts from 0 at the first row that is held */
  gidx first;
  float *score, *codes; /* [entries], [entries][d]; NULL when not read */
  gidx longest;         /* largest number of atoms in a row */
  gidx *stamp;          /* [k] work space of checks: 1 + the last row that had each atom */
  struct arena arena;   /* holds the arrays */
};
void supports_free(struct supports *s);

/* Allocate the arrays for n rows over k atoms; then, when their number is known, those for the
 * entries.  supports_load() calls both; with a dry arena they only count memory. */
int supports_alloc_rows(struct supports *s, gidx n, idx k);
int supports_alloc_entries(struct supports *s, gidx entries, idx d, int with_codes);

/* Read n rows; with_codes: with their codes and scores.  ERR_INPUT names the first row whose
 * offsets decrease or end beyond the entries, that has an atom out of range or twice, or a value
 * that is not finite. */
int supports_load(struct supports *s, const struct support_source *source, gidx first, gidx n,
                  int with_codes);

/* To read a source in blocks: *count <- how many of the n rows from `first` on have at most a few
 * million entries together, but at least one row; *begin <- their first entry. */
int supports_block(const struct support_source *s, gidx first, gidx n, gidx *count, gidx *begin);

/* ERR_INPUT names the first row that does not have `length` atoms.  length is that of the file's
 * first row. */
int supports_check_length(const struct supports *s, gidx length, const char *name);

/* ERR_INPUT names the first row of a source without scores whose atoms do not ascend: without
 * scores all are equal, and of equal scores the smaller atom comes first (N.2). */
int supports_check_order(const struct supports *s, const struct support_source *source);

#endif
