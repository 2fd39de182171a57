/* SPDX-License-Identifier: BSD-3-Clause
 * Single atoms, brought from the ranks that hold them to those that need them.
 *
 * Floor: encode.
 *
 * Codes need the atoms of a row's support wherever they live: table_fetch() brings them into a
 * table, where later rows find them as long as the table may keep them.  A single rank holds all
 * atoms: its tiles are the table, if its device has memory for them. */
#ifndef ENCODE_FETCH_H
#define ENCODE_FETCH_H

#include "encode/shard.h"

struct atom_table {
  struct buffer atoms; /* float [used][d][p], on the device side */
  idx used;
  gidx capacity, max;  /* max: atoms that it may keep, though one fetch may ask for more */
  idx *place;          /* [k] of an atom in the table, negative: not there */
  idx *fetched;        /* [used] atoms in the table, in its order */
  idx *counts;         /* [workers] atoms asked of each rank, as are the next */
  idx *asked, *ones;   /* by each rank; 1 */
  idx *names, *theirs; /* names of atoms that are asked for, by this rank and by all */
};

/* Entries from .. to - 1 of n rows of `stride` name the atoms that are requested.  Entries before
 * those have their slots already, which a single rank may write anew. */
struct atom_request {
  const idx *atoms; /* [n][stride] */
  idx *slot;        /* [n][stride] place of each in the table, written */
  idx n, stride, from, to;
};

/* An empty table that may keep max atoms, where a fetch asks for `request` at most.  The arena,
 * which may be dry, holds the places of all atoms; the atoms themselves take memory as they come.
 * Not collective. */
int table_init(struct atom_table *table, const struct shard *t, struct arena *arena, gidx max,
               gidx request);
void table_free(struct atom_table *table, struct device *device); /* while the device is open */

/* On a dry device: let `count` tables grow to all that they may keep, and the atoms that others ask
 * for to `asked`.  This is the most that fetching takes. */
int fetch_dry(struct shard *t, struct atom_table *tables, int count, const struct comm *c,
              struct device *device, gidx asked);

/* Bring the atoms that are requested and not in the table.  It takes three exchanges among several
 * ranks, which come to it in lockstep (comm/failure.h), also those where a failure is PENDING; what
 * fails here on one alone is left to the next agreement.  Collective. */
int table_fetch(struct shard *t, struct atom_table *table, struct comm *c, struct device *device,
                const struct atom_request *w);

/* *atoms <- what slots point to, on the device side, until the next call that takes memory or
 * routes; ERR_INTERNAL if such a call since the fetch has made the device forget them. */
int table_atoms(const struct shard *t, const struct atom_table *table, struct device *device,
                struct buffer *atoms);

/* Release the slots given so far.  The atoms stay, unless the fetches before the next release, of
 * at most `coming` atoms, might make them more than the table may keep.  Not collective. */
void table_release(struct atom_table *table, const struct shard *t, gidx coming);

#endif
