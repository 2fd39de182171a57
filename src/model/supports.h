/* SPDX-License-Identifier: BSD-3-Clause
 * Supports that are read: a source, which is read piece by piece; and the supports of the rows that
 * a rank holds.
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
  int has_codes;    /* its values are codes; 0: they are scores */
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
  struct support_view view; /* view.start is 0 for the first row */
  gidx first;
  float *score, *codes; /* [entries], [entries][d]; NULL when not read */
  gidx longest;         /* largest number of atoms in a row */
  gidx *stamp;          /* [k] work space of checks: 1 + the last row that had each atom */
  struct arena arena;   /* holds the arrays */
};
void supports_free(struct supports *s);

/* supports_alloc_rows() allocates the arrays for n rows over k atoms.  supports_alloc_entries()
 * allocates the arrays for the entries, when their number is known.  supports_load() calls both;
 * with a dry arena they only count memory. */
int supports_alloc_rows(struct supports *s, gidx n, idx k);
int supports_alloc_entries(struct supports *s, gidx entries, idx d, int with_codes);

/* Read n rows; with_codes: with their codes and scores.  ERR_INPUT names the first bad row: its
 * offsets decrease or end beyond the entries, or it has an atom that is out of range or repeated,
 * or a value that is not finite. */
int supports_load(struct supports *s, const struct support_source *source, gidx first, gidx n,
                  int with_codes);

/* To read a source in blocks: *count <- the number of rows from `first` on, at most n, that
 * together have at most a few million entries; at least 1.  *begin <- their first entry. */
int supports_block(const struct support_source *s, gidx first, gidx n, gidx *count, gidx *begin);

/* ERR_INPUT names the first row that does not have `length` atoms.  length: the number of atoms of
 * the file's first row. */
int supports_check_length(const struct supports *s, gidx length, const char *name);

/* ERR_INPUT names the first row of a source without scores and with d = 1 whose atoms do not
 * ascend.  Without scores all atoms of a row count as equal, and of equal scores the lower atom
 * comes first (N.2). */
int supports_check_order(const struct supports *s, const struct support_source *source);

#endif
