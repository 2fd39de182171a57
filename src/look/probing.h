/* SPDX-License-Identifier: BSD-3-Clause
 * Measure how well the codes of single atoms, and of small groups of atoms, predict labels of rows
 * (N.33).
 *
 * Floor: look.  Knows no files.  Not collective: runs on one rank, with several threads. */
#ifndef LOOK_PROBING_H
#define LOOK_PROBING_H

#include "base/memory.h"
#include "model/probe.h"
#include "model/supports.h"

enum { PROBING_SIZES = 3 };
extern const int probing_sizes[PROBING_SIZES]; /* numbers of atoms of the logistic regressions */

/* The positive codes of one half of the rows, sorted by atom, then by falling code. */
struct probing_half {
  gidx *start; /* [k + 1] where the entries of each atom begin */
  struct probe_entry *entries;
};
struct probing {
  gidx n; /* rows */
  idx k;
  int threads;
  struct probing_half half[2];
  struct arena arena;
};

/* Read all codes, and sort the codes of each atom.  Takes 8 bytes per positive code.  ERR_INPUT:
 * codes are of frames or invalid, or there are 2^31 rows or more.  ERR_MEMORY. */
int probing_open(struct probing *p, const struct support_source *codes, int threads);
void probing_close(struct probing *p);

/* Means over the probed labels of F1 on the second half of the rows; NaN if no label is probed. */
struct probing_result {
  idx labels;     /* number of probed labels */
  real threshold; /* one atom, "code >= threshold": the main figure */
  real fires;     /* one atom, "code > 0" */
  /* Logistic regressions on the codes of probing_sizes[i] atoms. */
  real logistic[PROBING_SIZES];
};
/* labels[n] are at least 0.  Row i is probed for the label of row i + shift.  ERR_MEMORY. */
int probing_run(const struct probing *p, const gidx *labels, int shift,
                struct probing_result *result);

#endif
