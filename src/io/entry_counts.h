/* SPDX-License-Identifier: BSD-3-Clause
 * How many rows have each atom, and whether one has an atom twice: counted while supports are
 * checked, piece after piece of their entries, by threads that share out the atoms.
 *
 * Floor: io; included by the check of supports. */
#ifndef IO_ENTRY_COUNTS_H
#define IO_ENTRY_COUNTS_H

#include "base/memory.h"
#include "base/types.h"

enum { MAX_COUNTERS = 16 }; /* threads that share out the atoms */

/* Of an atom, in one line of a cache. */
struct atom_count {
  gidx stamp; /* 1 + the last row that had it */
  gidx rows;
};

/* Entries first .. first + count - 1, the first of which is one of row `row`. */
struct entry_piece {
  gidx first, count, row;
  const gidx *ends; /* where row `row` ends, the next one, and so on */
  const idx *atoms; /* [count]; a number that no atom has is passed over */
};

struct entry_counts {
  gidx k, each; /* atoms, and those of a share */
  int shares;
  struct atom_count *atoms; /* [k] */
  struct entry_piece piece; /* that is to be counted; count 0: there is none yet */
  struct entry_twice {
    gidx entry, row; /* entry -1: none */
    idx atom;
  } twice[MAX_COUNTERS];
};

/* Arrays are the arena's.  threads: as many will share the counting. */
int entry_counts_open(struct entry_counts *c, struct arena *arena, gidx k, int threads);
/* Count the piece for the atoms of share i; any threads may do so at once. */
void entry_counts_add(struct entry_counts *c, gidx i);
/* ERR_INPUT names the first row that was found to have an atom twice. */
int entry_counts_status(const struct entry_counts *c);

#endif
