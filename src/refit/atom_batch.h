/* SPDX-License-Identifier: BSD-3-Clause
 * A batch of atoms that are worked on side by side, each by its owner, and what travels for it.
 *
 * Floor: refit.
 *
 * Atoms go to owners round-robin in order of falling rows (ties: smaller index first).  Members are
 * numbered owner by owner; a rank knows its own rows of every member, an owner gets what they add,
 * in ascending order of global rows. */
#ifndef REFIT_ATOM_BATCH_H
#define REFIT_ATOM_BATCH_H

#include "refit/state.h"

/* Own rows of a member that lie in one sum block. */
struct segment {
  idx member, n;
  gidx block; /* global */
  gidx at;    /* of the first in rows */
};

struct atom_batch {
  /* The sizes, from which everything for a batch is allocated. */
  idx count, mine; /* members: all, own */
  gidx own_rows;   /* own rows of all members */
  gidx owner_rows; /* rows of own members over all ranks */
  gidx segments;
  idx mine_first;          /* of own members */
  idx *atom;               /* [count] */
  idx *owned;              /* [size] members of each rank */
  gidx *start;             /* [count + 1] where own rows of each member begin in rows */
  idx *rows;               /* [own_rows] own rows, ascending inside a member */
  gidx *entry;             /* [own_rows] the member's place in each: row s + place */
  real *codes;             /* [own_rows][d] codes there */
  struct segment *segment; /* [segments] in order of member, then block */
  gidx *whole;             /* [mine + 1] rows of own members over all ranks */
  idx *send, *receive;     /* [size] rows that go to, and come from, each rank */
  struct arena arena;
};

/* A dry batch: sizes that no batch of so many atoms exceeds on the rank of f, of which only sizes
 * are used, and no arrays.  Which rows the atoms have is not known yet, so the bound is that they
 * have all there are: ROWS_OF_CLASS of atoms that share no row, ROWS_SHARED of any atoms; ROWS_NONE
 * leaves out what grows with the rows, to tell what grows with the atoms.  The arena counts what
 * the batch itself takes.  Not collective. */
enum batch_rows { ROWS_NONE, ROWS_OF_CLASS, ROWS_SHARED };
int atom_batch_bound(struct atom_batch *b, const struct refit_state *f, idx count,
                     enum batch_rows rows);

/* How many atoms a batch may have so that what grows with them stays within some 128 MB; at least
 * 1, at most k.  bytes_of() gives the bytes of a job on a dry batch.  The answer is the same on
 * every rank: it is that for rank 0.  Not collective. */
typedef int batch_bytes_of(const struct refit_state *f, const struct atom_batch *b, idx q,
                           gidx *bytes);
int atom_batch_max(const struct refit_state *f, batch_bytes_of *bytes_of, idx q, idx *max);

/* Make a batch of count atoms (not dead).  Not collective. */
int atom_batch_make(struct atom_batch *b, const struct refit_state *f, const idx *atoms, idx count);
void atom_batch_free(struct atom_batch *b);

/* out[owner_rows][width] <- values[own_rows][width] of all ranks.  Collective. */
int atom_batch_rows_to_owner(const struct atom_batch *b, const struct refit_state *f,
                             const real *values, idx width, real *out);

/* The same with memory that is there before, of rows of `width`: what several ranks need. */
struct rows_received {
  struct arena arena;
  real *values; /* [owner_rows][width] what comes, rank after rank */
  gidx *next;   /* [mine] each member's place */
};
/* Not collective; ERR_MEMORY. */
int rows_received_open(struct rows_received *r, const struct atom_batch *b,
                       const struct refit_state *f, idx width);
void rows_received_close(struct rows_received *r);
int rows_received_take(struct rows_received *r, const struct atom_batch *b,
                       const struct refit_state *f, const real *values, idx width, real *out);

/* *bytes <- what that takes at most while it runs: its allocations, run dry.  Not collective. */
int atom_batch_rows_bytes(const struct atom_batch *b, const struct refit_state *f, idx width,
                          gidx *bytes);

/* all[count] <- mine[mine], items of unit bytes, of every owner.  Collective. */
int atom_batch_allgather(const struct atom_batch *b, struct comm *c, const void *mine, size_t unit,
                         void *all);

#endif
