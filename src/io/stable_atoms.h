/* SPDX-License-Identifier: BSD-3-Clause
 * The atoms of a dictionary that other fits found again, and no others.
 *
 * Floor: io.  Not collective. */
#ifndef IO_STABLE_ATOMS_H
#define IO_STABLE_ATOMS_H

#include "base/json.h"
#include "base/memory.h"
#include "model/dictionary.h"

struct stable_atoms {
  const float *atoms; /* [count][p] borrowed */
  idx *number;        /* [count] in the whole dictionary, ascending; of the arena */
  idx count, p;       /* count 0: all were taken */
};

/* best[k] <- the largest cosine of each of the atoms[k][p] of a dictionary in files comparison.h5,
 * a name a line.  ERR_INPUT: a file compares another dictionary. */
int stable_atoms_compare(const struct atom_source *source, const float *atoms,
                         const char *comparisons, struct arena *arena, float *best);
/* Move the atoms[k][p] whose stability[k] is at least `least` to the front, and fill in s.
 * ERR_INPUT: there is no such atom. */
int stable_atoms_take(struct stable_atoms *s, const struct atom_source *source, float *atoms,
                      const float *stability, real least, struct arena *arena);
/* They alone as a dictionary; s stays where it is while it is read. */
struct atom_source stable_atoms_source(struct stable_atoms *s, const struct atom_source *whole);
/* Entries that say which they are; nothing where all were taken. */
void stable_atoms_json(const struct stable_atoms *s, struct json *j);

#endif
