/* SPDX-License-Identifier: BSD-3-Clause
 * Colouring by all ranks and threads: the classes of classes_color() (N.6), bit for bit.
 *
 * Floor: refit.  Knows no files.
 *
 * Each rank has some of the rows.  Atoms go in lots of consecutive places of the greedy order.  Of
 * every atom of a lot each rank finds, by its own rows, the classes of earlier lots that it cannot
 * have, and the earlier atoms of the lot that share a row with it.  Both are sets of bits, and the
 * ranks' are united.  Then every rank gives the lot its classes, in order: the smallest one that is
 * neither in the atom's set nor given to an atom that it meets.  So an atom gets what the greedy
 * rule gives it by all atoms before it, however rows, lots and threads are divided. */
#ifndef REFIT_COLORING_H
#define REFIT_COLORING_H

#include "comm/comm.h"
#include "model/classes.h"

enum { COLOR_LOT = 512 }; /* atoms of a lot, at most */

/* What the atoms of a lot meet in own rows.  Every atom has a mark. */
struct color_conflicts {
  int begins;            /* this is the first lot */
  idx count;             /* atoms of the lot */
  const idx *atoms;      /* [count] */
  const uint32_t *marks; /* [k] */
  gidx words;            /* of a set; a mark at or beyond 64 words is in none */
  uint64_t *sets;        /* [count][words], written: bits of the marks of the atoms of the rows */
};
/* Who finds that instead of the host, as a GPU that has the rows. */
struct color_looker {
  void *self;
  int (*look)(void *self, const struct color_conflicts *look);
};

/* *out <- the classes of all ranks' rows, of which `own` are this one's; on every rank.  Without a
 * looker (NULL) the host looks at them.  ERR_MEMORY; ERR_INPUT beyond 2^30 atoms, or 2^32 entries
 * on a rank.  Collective; the same status on every rank. */
int coloring_run(struct comm *c, const struct support_view *own, int threads,
                 const struct color_looker *looker, struct classes *out);

/* *bytes <- what that takes on a rank with so many entries in its rows, the result included: its
 * own allocation, run dry.  Fails as it would.  Not collective. */
int coloring_bytes(idx k, gidx entries, gidx *bytes);

#endif
