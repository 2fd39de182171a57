/* SPDX-License-Identifier: BSD-3-Clause
 * How well single atoms predict a label: probes of one atom with a threshold (N.33).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * A probe is chosen on the first half of the rows and evaluated on the second.  Counts are integers
 * and F1 is compared as a fraction, so the order of atoms and threads does not matter. */
#ifndef MODEL_PROBE_H
#define MODEL_PROBE_H

#include "base/memory.h"
#include "base/types.h"

enum { PROBE_LABELS = 300, PROBE_ATOMS = 5 };

/* The labels of rows; the most frequent labels are probed. */
struct probe_series {
  gidx n, half; /* number of rows; rows of the first half */
  idx m;        /* number of labels that are probed, at most PROBE_LABELS */
  /* [m] labels by falling frequency; of equal frequencies the lower label comes first */
  gidx *label;
  gidx *count[2]; /* [m] rows of each half that have the label */
  idx *of_row;    /* [n] index of the row's label in label[m], or -1 */
};
/* Row i of n has the label labels[i + shift].  Labels are >= 0.  A row has no label if i + shift is
 * not in 0 .. n - 1. */
int probe_series_init(struct probe_series *s, const gidx *labels, gidx n, int shift,
                      struct arena *arena);

/* A row and the positive score of an atom in it. */
struct probe_entry {
  float score;
  idx row;
};
/* Sort by falling score; of equal scores the lower row comes first. */
void probe_sort(struct probe_entry *entries, gidx count);

/* An atom and a threshold.  F1 is 2 hits / size; size is the number of rows at or above the
 * threshold plus the number of rows with the label. */
struct probe {
  uint64_t hits, size;
  idx atom; /* -1: none */
  float threshold;
};

/* The probes chosen for a label.  best: the best atoms with any threshold, best first.  fires: the
 * best atom if each atom fires in all rows of the first half in which its score is positive.  Its
 * threshold is then its smallest positive score in this half. */
struct probe_choice {
  struct probe best[PROBE_ATOMS], fires;
};
void probe_choice_init(struct probe_choice *c);
/* Merge the choices of other atoms into c. */
void probe_choice_merge(struct probe_choice *c, const struct probe_choice *other);

/* Work space for trying an atom: arrays of [m]. */
struct probe_work {
  uint64_t *hits;
  struct probe *best;
  idx *touched;
};
int probe_work_init(struct probe_work *w, idx m, struct arena *arena);

/* Try an atom with all thresholds for all labels, and update choices[m].  entries: the atom's
 * entries in rows of the first half, sorted. */
void probe_atom(const struct probe_series *s, idx atom, const struct probe_entry *entries,
                gidx count, struct probe_work *w, struct probe_choice *choices);

/* F1 of an atom for a label on the second half of the rows.  entries: the atom's entries in that
 * half, sorted.  The atom fires if its score is at least the threshold. */
real probe_f1(const struct probe_series *s, idx label, float threshold,
              const struct probe_entry *entries, gidx count);

#endif
