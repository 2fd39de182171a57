/* SPDX-License-Identifier: BSD-3-Clause
 * From codes and labels of rows to how well single atoms, and small groups of atoms, predict the
 * labels (N.33).
 *
 * Floor: look.  Knows no files.  Not collective: one rank, all its threads. */
#ifndef LOOK_PROBING_H
#define LOOK_PROBING_H

#include "base/memory.h"
#include "model/probe.h"
#include "model/supports.h"

enum { PROBING_SIZES = 3 };
extern const int probing_sizes[PROBING_SIZES]; /* atoms of a logistic regression: 1, 2, 5 */

/* The positive codes of one half of the rows, by atom. */
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

/* Read all codes, and sort those of each atom.  Needs 8 bytes per code.  ERR_INPUT: frames, or
 * invalid codes, which are named; ERR_MEMORY. */
int probing_open(struct probing *p, const struct support_source *codes, int threads);
void probing_close(struct probing *p);

/* F1 on the second half, means over the probed labels; NaN if there are none. */
struct probing_result {
  idx labels;
  real threshold; /* one atom, "score >= threshold": the main figure */
  real fires;     /* one atom, "score > 0" */
  real logistic[PROBING_SIZES];
};
/* labels[n], each at least 0; row i is probed for the label of row i + shift. */
int probing_run(const struct probing *p, const gidx *labels, int shift,
                struct probing_result *result);

#endif
