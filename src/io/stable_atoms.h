/* SPDX-License-Identifier: BSD-3-Clause
 * Select the atoms of a dictionary that other fits found again.
 *
 * Floor: io.  Not collective. */
#ifndef IO_STABLE_ATOMS_H
#define IO_STABLE_ATOMS_H

#include "base/json.h"
#include "base/memory.h"
#include "model/dictionary.h"

struct stable_atoms {
  const float *atoms; /* [count][p] borrowed */
  idx *number;        /* [count] indices in the whole dictionary, ascending; in the arena */
  idx count, p;       /* count 0: no selection was asked for; all atoms are used */
};

/* best[k] <- for each of the atoms[k][p], the largest of its cosines with the atoms that are paired
 * with it in several comparison.h5, or 0 if none is above 0.  `comparisons` has one file name per
 * line.  ERR_INPUT: a file compares another dictionary, or the atoms are frames. */
int stable_atoms_compare(const struct atom_source *source, const float *atoms,
                         const char *comparisons, struct arena *arena, float *best);
/* Move the atoms[k][p] whose stability[k] is at least `least` to the front, and fill in s.
 * ERR_INPUT: there is no such atom. */
int stable_atoms_take(struct stable_atoms *s, const struct atom_source *source, float *atoms,
                      const float *stability, real least, struct arena *arena);
/* These atoms as a dictionary; *s must not move while the source is used. */
struct atom_source stable_atoms_source(struct stable_atoms *s, const struct atom_source *whole);
/* Add JSON entries that list these atoms.  Nothing is added if count is 0. */
void stable_atoms_json(const struct stable_atoms *s, struct json *j);

#endif
