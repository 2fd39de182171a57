/* SPDX-License-Identifier: BSD-3-Clause
 * Codes and a label for each row -> how well single atoms, and few of them, tell labels (N.33).
 *
 * Floor: look.  Knows no files.  Not collective: one rank, all its threads. */
#ifndef LOOK_PROBING_H
#define LOOK_PROBING_H

#include "base/memory.h"
#include "model/probe.h"
#include "model/supports.h"

enum { PROBING_SIZES = 3 };
extern const int probing_sizes[PROBING_SIZES]; /* 1, 2, 5 atoms of a logistic regression */

/* The positive codes of one half of the rows, atom by atom. */
struct probing_half {
  gidx *start; /* [k + 1] */
  struct probe_entry *entries;
};
struct probing {
  gidx n;
  idx k;
  int threads;
  struct probing_half half[2];
  struct arena arena;
};

/* Read all codes, and sort those of each atom.  Holds 8 bytes for each code.  ERR_INPUT: frames, or
 * what is wrong with the codes; ERR_MEMORY. */
int probing_open(struct probing *p, const struct support_source *codes, int threads);
void probing_close(struct probing *p);

/* Means of F1 on the second half over the labels that are probed; NaN where there are none. */
struct probing_result {
  idx labels;
  real threshold; /* "score >= threshold", one atom: the figure that counts */
  real fires;     /* "score > 0", one atom */
  real logistic[PROBING_SIZES];
};
/* labels[n], each at least 0; row i has that of row i + shift. */
int probing_run(const struct probing *p, const gidx *labels, int shift,
                struct probing_result *result);

#endif
