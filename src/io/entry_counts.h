/* SPDX-License-Identifier: BSD-3-Clause
 * Count the rows that have each atom, and find rows that have an atom twice, while supports are
 * checked.  The entries of rows come in pieces.  Each thread counts a range of atoms, its share.
 *
 * Floor: io; included by the check of supports. */
#ifndef IO_ENTRY_COUNTS_H
#define IO_ENTRY_COUNTS_H

#include "base/memory.h"
#include "base/types.h"

enum { MAX_COUNTERS = 16 }; /* threads that count; each has a range of atoms */

/* Counts of one atom; both members are in one cache line. */
struct atom_count {
  gidx stamp; /* 1 + the last row that had it */
  gidx rows;
};

/* Entries first .. first + count - 1, where entry `first` belongs to row `row`. */
struct entry_piece {
  gidx first, count, row;
  const gidx *ends; /* the end of row `row`, of the next row, and so on */
  const idx *atoms; /* [count]; numbers outside 0 .. k - 1 are skipped */
};

struct entry_counts {
  gidx k, each; /* atoms, and atoms per share */
  int shares;
  struct atom_count *atoms; /* [k] */
  struct entry_piece piece; /* the piece to be counted next; count 0: none yet */
  struct entry_twice {      /* of each share: the first entry whose row has its atom twice */
    gidx entry, row;        /* entry -1: none */
    idx atom;
  } twice[MAX_COUNTERS];
};

/* The arena owns the arrays.  threads: how many will share the counting. */
int entry_counts_open(struct entry_counts *c, struct arena *arena, gidx k, int threads);
/* Count the piece for the atoms of share i.  Several threads may call this at once, each for
 * another share. */
void entry_counts_add(struct entry_counts *c, gidx i);
/* ERR_INPUT names the first row that was found to have an atom twice. */
int entry_counts_status(const struct entry_counts *c);

#endif
