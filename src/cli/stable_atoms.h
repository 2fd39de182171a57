/* SPDX-License-Identifier: BSD-3-Clause
 * The atoms of a dictionary that other fits found again, and no others.
 *
 * Floor: cli.  Not collective. */
#ifndef CLI_STABLE_ATOMS_H
#define CLI_STABLE_ATOMS_H

#include "base/json.h"
#include "base/memory.h"
#include "model/dictionary.h"

struct stable_atoms {
  const float *atoms; /* [count][p] borrowed */
  idx *number;        /* [count] in the whole dictionary, ascending; of the arena */
  idx count, p;       /* count 0: all were taken */
};

/* Move the atoms[k][p] of a dictionary whose largest cosine in files comparison.h5, a name a line,
 * is at least `least` to the front, and fill in s.  ERR_INPUT: a file compares another dictionary,
 * or there is no such atom. */
int stable_atoms_take(struct stable_atoms *s, const struct atom_source *source, float *atoms,
                      const char *comparisons, real least, struct arena *arena);
/* They alone as a dictionary; s stays where it is while it is read. */
struct atom_source stable_atoms_source(struct stable_atoms *s, const struct atom_source *whole);
/* Entries that say which they are; nothing where all were taken. */
void stable_atoms_json(const struct stable_atoms *s, struct json *j);

#endif
