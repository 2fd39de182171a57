/* SPDX-License-Identifier: BSD-3-Clause
 * A batch of atoms that are handled at the same time, each by its owner; and what ranks exchange
 * for it.
 *
 * Floor: refit.
 *
 * Atoms are dealt to owners round robin, in order of falling numbers of rows; if these are equal,
 * the smaller index comes first.  The atoms of a batch, its members, are numbered owner by owner.
 * A rank knows its own rows of every member; the owner gets the contributions of all rows, in
 * ascending order of global rows. */
#ifndef REFIT_ATOM_BATCH_H
#define REFIT_ATOM_BATCH_H

#include "refit/state.h"

/* The own rows of a member that lie in one sum block. */
struct segment {
  idx member, n;
  gidx block; /* global */
  gidx at;    /* position of its first row in rows of struct atom_batch */
};

struct atom_batch {
  /* The sizes, from which everything for a batch is allocated. */
  idx count, mine; /* numbers of members: all, and own members */
  gidx own_rows;   /* own rows of all members */
  gidx owner_rows; /* rows of own members on all ranks */
  gidx segments;
  idx mine_first;          /* the first own member */
  idx *atom;               /* [count] */
  idx *owned;              /* [size] members of each rank */
  gidx *start;             /* [count + 1] where each member's own rows begin in rows */
  idx *rows;               /* [own_rows] own rows, ascending for each member */
  gidx *entry;             /* [own_rows] the member's entry in each of these rows: row * s +
                            * position in the row */
  real *codes;             /* [own_rows][d] the codes of these entries */
  struct segment *segment; /* [segments] by member, then by sum block */
  gidx *whole;             /* [mine + 1] rows of own members on all ranks; prefix sums */
  idx *send, *receive;     /* [size] rows sent to, and received from, each rank */
  struct arena arena;
};

/* A dry batch: sizes that no batch of `count` atoms exceeds on the rank of f, and no arrays.  Only
 * sizes of f are used.  The rows of the atoms are not known yet, so bounds are taken: ROWS_OF_CLASS
 * for atoms that share no row, ROWS_SHARED for any atoms.  ROWS_NONE leaves out what grows with the
 * rows.  The arena counts the memory of the batch itself.  Not collective. */
enum batch_rows { ROWS_NONE, ROWS_OF_CLASS, ROWS_SHARED };
int atom_batch_bound(struct atom_batch *b, const struct refit_state *f, idx count,
                     enum batch_rows rows);

/* *max <- the largest number of atoms of a batch for which the memory that grows with the atoms is
 * at most 128 MiB; at least 1, at most k.  bytes_of() gives the bytes of a job for a dry batch.
 * Every rank computes the number for rank 0, so it is the same everywhere.  Not collective. */
typedef int batch_bytes_of(const struct refit_state *f, const struct atom_batch *b, idx q,
                           gidx *bytes);
int atom_batch_max(const struct refit_state *f, batch_bytes_of *bytes_of, idx q, idx *max);

/* Make a batch of count atoms, each of which some row uses.  Not collective. */
int atom_batch_make(struct atom_batch *b, const struct refit_state *f, const idx *atoms, idx count);
void atom_batch_free(struct atom_batch *b);

/* out[owner_rows][width] <- values[own_rows][width] of all ranks.  Collective. */
int atom_batch_rows_to_owner(const struct atom_batch *b, const struct refit_state *f,
                             const real *values, idx width, real *out);

/* atom_batch_rows_to_owner() with memory that is allocated before, for rows of `width` values.  A
 * single rank needs no memory. */
struct rows_received {
  struct arena arena;
  real *values; /* [owner_rows][width] received, rank by rank */
  gidx *next;   /* [mine] where each member's next row goes */
};
/* Not collective; ERR_MEMORY. */
int rows_received_open(struct rows_received *r, const struct atom_batch *b,
                       const struct refit_state *f, idx width);
void rows_received_close(struct rows_received *r);
int rows_received_take(struct rows_received *r, const struct atom_batch *b,
                       const struct refit_state *f, const real *values, idx width, real *out);

/* *bytes <- the peak memory of these functions, from a dry run of their allocations.  Not
 * collective. */
int atom_batch_rows_bytes(const struct atom_batch *b, const struct refit_state *f, idx width,
                          gidx *bytes);

/* all[count] <- mine[mine] of every owner, items of unit bytes.  Collective. */
int atom_batch_allgather(const struct atom_batch *b, struct comm *c, const void *mine, size_t unit,
                         void *all);

#endif
