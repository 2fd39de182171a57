/* SPDX-License-Identifier: BSD-3-Clause
 * Colouring by all ranks and threads, with the classes of classes_color() (N.6), bit for bit.
 *
 * Floor: refit.  Knows no files.
 *
 * Each rank has some of the rows.  Atoms are coloured in lots, runs of consecutive atoms of the
 * greedy order.  For every atom of a lot each rank finds two sets from its own rows: the classes of
 * earlier lots that are forbidden, and the earlier atoms of the lot that share a row with the atom.
 * Both are sets of bits, and are united over the ranks.  Then every rank colours the atoms of the
 * lot in order.  An atom gets the smallest class that is neither forbidden nor given to an atom in
 * its second set.  So it gets the class of the greedy rule, however rows, lots and threads are
 * divided. */
#ifndef REFIT_COLORING_H
#define REFIT_COLORING_H

#include "comm/comm.h"
#include "model/classes.h"

enum { COLOR_LOT = 512 }; /* largest number of atoms of a lot */

/* The sets of a lot's atoms, from own rows.  The mark of an atom is its bit in these sets; every
 * atom of the dictionary has one. */
struct color_conflicts {
  int begins;            /* 1 for the first lot */
  idx count;             /* atoms of the lot */
  const idx *atoms;      /* [count] */
  const uint32_t *marks; /* [k] */
  gidx words;            /* words of a set; a mark of 64 * words or more is in no set */
  uint64_t *sets;        /* [count][words], written: the marks of the atoms in the same rows, as
                          * bits */
};
/* Something other than the host that finds the sets, such as a GPU that has the rows. */
struct color_looker {
  void *self;
  int (*look)(void *self, const struct color_conflicts *look);
};

/* *out, on every rank <- the classes for all ranks' rows; own: this rank's rows.  Without a looker
 * (NULL) the host finds the sets.  ERR_MEMORY; ERR_INPUT beyond 2^30 atoms, or 2^32 entries on a
 * rank.  Collective; the same status on every rank. */
int coloring_run(struct comm *c, const struct support_view *own, int threads,
                 const struct color_looker *looker, struct classes *out);

/* *bytes <- the memory of coloring_run() on a rank with `entries` entries, with the result, from a
 * dry run of its allocations.  Fails like coloring_run().  Not collective. */
int coloring_bytes(idx k, gidx entries, gidx *bytes);

#endif
