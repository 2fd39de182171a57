/* SPDX-License-Identifier: BSD-3-Clause
 * Does one atom tell a label?  Probes of single atoms, with a threshold each (N.33).
 *
 * Floor: model.  Knows arrays only: no MPI, no HDF5, no CUDA.
 *
 * A probe is chosen on the first half of the rows and scored on the second.  Every count is a whole
 * number and F1 is compared as a fraction, so that no order of atoms or threads matters. */
#ifndef MODEL_PROBE_H
#define MODEL_PROBE_H

#include "base/memory.h"
#include "base/types.h"

enum { PROBE_LABELS = 300, PROBE_ATOMS = 5 };

/* The labels that rows have, of which the most frequent are probed. */
struct probe_series {
  gidx n, half;   /* rows; those of the first half */
  idx m;          /* labels that are probed, PROBE_LABELS at most */
  gidx *label;    /* [m] the most frequent first, of equal ones the lower */
  gidx *count[2]; /* [m] rows of each half that have it */
  idx *of_row;    /* [n] number of the row's label among those m, or -1 */
};
/* Row i has the label labels[i + shift], which are at least 0; rows for which there is none have
 * no label. */
int probe_series_init(struct probe_series *s, const gidx *labels, gidx n, int shift,
                      struct arena *arena);

/* A row and the positive score of an atom in it. */
struct probe_entry {
  float score;
  idx row;
};
/* Sort: the larger score first, of equal ones the lower row. */
void probe_sort(struct probe_entry *entries, gidx count);

/* An atom and a threshold: its F1 is 2 hits / size, size = rows at or above it + rows that have the
 * label. */
struct probe {
  uint64_t hits, size;
  idx atom; /* -1: none */
  float threshold;
};

/* What is chosen for a label: the best atoms, best first, and the best one that "fires" wherever it
 * has a score. */
struct probe_choice {
  struct probe best[PROBE_ATOMS], fires;
};
void probe_choice_init(struct probe_choice *c);
/* Add the choices of other atoms. */
void probe_choice_merge(struct probe_choice *c, const struct probe_choice *other);

/* What an atom's walk needs: arrays of [m]. */
struct probe_work {
  uint64_t *hits;
  struct probe *best;
  idx *touched;
};
int probe_work_init(struct probe_work *w, idx m, struct arena *arena);

/* choices[m]: try an atom with all thresholds, by its sorted entries of the first half. */
void probe_atom(const struct probe_series *s, idx atom, const struct probe_entry *entries,
                gidx count, struct probe_work *w, struct probe_choice *choices);

/* F1 on the second half of an atom for a label: entries are those of that half, sorted.  Scores at
 * or above the threshold count. */
real probe_f1(const struct probe_series *s, idx label, float threshold,
              const struct probe_entry *entries, gidx count);

#endif
