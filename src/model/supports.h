/* SPDX-License-Identifier: BSD-3-Clause
 * Supports that are read: a source in pieces, and the part of them that one rank holds.
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA. */
#ifndef MODEL_SUPPORTS_H
#define MODEL_SUPPORTS_H

#include "base/memory.h"
#include "base/types.h"
#include "model/classes.h"

/* A CSR matrix of supports.  The io floor fills it for files. */
struct support_source {
  gidx n, entries;
  idx k;            /* atoms */
  idx d;            /* codes an entry; 1 where there are none */
  int has_codes;    /* values are codes, not scores */
  const char *name; /* borrowed: for messages, FILE:/PATH */
  void *self;       /* borrowed */
  /* out[count + 1] <- where rows first .. first + count begin.  Not collective. */
  int (*starts)(void *self, gidx first, gidx count, gidx *out);
  /* Entries first .. first + count - 1: atoms[count], score[count], codes[count][d].  score and
   * codes may be NULL: not wanted; a file without scores gives 0. */
  int (*read)(void *self, gidx first, gidx count, idx *atoms, float *score, float *codes);
};

/* Rows first .. first + view.n - 1 of a source. */
struct supports {
  struct support_view view; /* start counts from 0 at the first row held */
  gidx first;
  float *score, *codes; /* [entries], [entries][d]; NULL: not read */
  gidx longest;         /* most atoms in a row */
  struct arena arena;   /* holds the arrays */
};
void supports_free(struct supports *s);

/* Read n rows, codes and scores too when with_codes.  ERR_INPUT names the first row whose start
 * falls or that ends beyond the entries, whose atom is out of range or there twice, or whose value
 * is not finite. */
int supports_load(struct supports *s, const struct support_source *source, gidx first, gidx n,
                  int with_codes);

/* ERR_INPUT names the first row that has not as many atoms as the others, `length`. */
int supports_check_length(const struct supports *s, gidx length, const char *name);

#endif
