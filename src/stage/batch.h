/* SPDX-License-Identifier: BSD-3-Clause
 * A batch of atoms that are worked on side by side, each by its owner, and what travels for it.
 *
 * Floor: stage.
 *
 * Atoms go to owners round-robin in order of falling rows (ties: smaller index first).  Members are
 * numbered owner by owner; a rank knows its own rows of every member, an owner gets what they add,
 * in ascending order of global rows. */
#ifndef STAGE_BATCH_H
#define STAGE_BATCH_H

#include "stage/fit.h"

/* Own rows of a member that lie in one row block. */
struct segment {
  idx member, n;
  gidx block; /* global */
  gidx at;    /* of the first in rows */
};

struct batch {
  idx count;
  idx *atom;               /* [count] */
  idx *owned;              /* [size] members of each rank */
  idx mine, mine_first;    /* own members */
  gidx *start;             /* [count + 1] own rows of each member in: */
  idx *rows;               /* own rows, ascending inside a member */
  gidx *entry;             /* the same in supports: row s + place */
  real *codes;             /* [..][d] codes there */
  struct segment *segment; /* in order of member, then block */
  gidx segments;
  gidx *whole;         /* [mine + 1] rows of own members over all ranks */
  idx *send, *receive; /* [size] rows that go to, and come from, each rank */
  struct arena arena;
};

/* Atoms that a batch may have where each takes `reals` reals on every rank, and sums of `width`
 * reals a row block; at least 1, the same on every rank. */
idx batch_most(const struct fit *f, gidx reals, gidx width);

/* Make a batch of count atoms (not dead).  Collective, as are the functions below. */
int batch_make(struct batch *b, const struct fit *f, const idx *atoms, idx count);
void batch_free(struct batch *b);

/* out[whole rows of own members][width] <- values[own rows][width] of all ranks. */
int batch_rows_to_owner(const struct batch *b, const struct fit *f, const real *values, idx width,
                        real *out);

/* out[mine][width] <- the sums by (N.0) of values[segments][width] of all ranks; members with
 * active[member] 0, which every rank knows, are left alone.  NULL: all are active. */
int batch_sums_to_owner(const struct batch *b, const struct fit *f, const real *values, idx width,
                        const idx *active, real *out);

/* all[count] <- mine[mine], items of unit bytes, of every owner. */
int batch_spread(const struct batch *b, struct comm *c, const void *mine, size_t unit, void *all);

#endif
