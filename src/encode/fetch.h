/* SPDX-License-Identifier: BSD-3-Clause
 * Single atoms, brought from the ranks that hold them to the ranks that need them.
 *
 * Floor: encode.
 *
 * The atoms of a row's support may be held by any rank.  table_fetch() brings them into a table.
 * They stay there for later rows while the table has room.  A single rank holds all atoms: its
 * tiles are the table, if its device has memory for them. */
#ifndef ENCODE_FETCH_H
#define ENCODE_FETCH_H

#include "encode/shard.h"

struct atom_table {
  struct buffer atoms; /* float [used][d][p], on the device side */
  idx used;
  gidx capacity, max;  /* max: atoms that it may keep; a single fetch may need more */
  gidx expected;       /* room for this many is taken at the first fetch; 0: room grows as atoms
                        * come */
  idx *place;          /* [k] position of each atom in the table; negative: it is not in the
                        * table */
  idx *fetched;        /* [used] the atoms in the table, in order */
  idx *counts;         /* [workers] number of atoms asked of each rank */
  idx *asked, *ones;   /* [workers] number of atoms that each rank asks for; ones */
  idx *names, *theirs; /* names of the atoms that this rank asks for; and of the atoms that all
                        * ranks ask it for */
};

/* Entries from .. to - 1 of each of n rows name the requested atoms.  Earlier entries already have
 * their slots, but a single rank may write them again. */
struct atom_request {
  const idx *atoms; /* [n][stride] */
  idx *slot;        /* [n][stride] <- the position of each in the table */
  idx n, stride, from, to;
};

/* Make an empty table that may keep max atoms; a fetch asks for at most `request`.  The arena,
 * which may be dry, holds the positions of all atoms.  Memory for the atoms is taken as they come.
 * Not collective. */
int table_init(struct atom_table *table, const struct shard *t, struct arena *arena, gidx max,
               gidx request);
void table_free(struct atom_table *table, struct device *device); /* while the device is open */

/* On a dry device: grow `count` tables and the buffer of outgoing atoms to the numbers of atoms
 * that they expect.  A table that expects none grows to table->max atoms.  If t->expected is 0, the
 * buffer grows to `asked` atoms.  If nothing is expected, this is the most memory that fetching
 * takes. */
int fetch_dry(struct shard *t, struct atom_table *tables, int count, const struct comm *c,
              struct device *device, gidx asked);

/* Bring the requested atoms that are not in the table.  Several ranks make three exchanges.  All
 * ranks of c call this in lockstep (comm/failure.h), also when a failure is PENDING.  A failure
 * here on one rank alone is left to the next agreement.  Collective. */
int table_fetch(struct shard *t, struct atom_table *table, struct comm *c, struct device *device,
                const struct atom_request *w);

/* *atoms <- the array on the device that slots index.  It is valid until the next call that takes
 * memory or routes.  ERR_INTERNAL if such a call came after the fetch. */
int table_atoms(const struct shard *t, const struct atom_table *table, struct device *device,
                struct buffer *atoms);

/* Release all slots given so far.  At most `coming` atoms are fetched until the next release.  The
 * atoms stay if the table can then have no more than table->max.  Not collective. */
void table_release(struct atom_table *table, const struct shard *t, gidx coming);

#endif
