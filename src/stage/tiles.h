/* SPDX-License-Identifier: BSD-3-Clause
 * A dictionary dealt to ranks: own tiles stay, single atoms travel to who needs them.
 *
 * Floor: stage.  Layout: model/dictionary.h.
 *
 * Codes need the atoms of a row's support wherever they live: tiles_fetch() brings them into a
 * table, where later rows find them while there is room.  A single rank holds all atoms: its tiles
 * are the table, if its device has room for them. */
#ifndef STAGE_TILES_H
#define STAGE_TILES_H

#include "base/memory.h"
#include "comm/comm.h"
#include "device/device.h"
#include "model/dictionary.h"

struct tiles {
  struct tiling tiling;
  idx rank, d, p;
  idx held;               /* own atoms */
  float *atoms;           /* [held][d][p] */
  struct buffer own;      /* a copy on the device, where it does not keep them so anyway */
  int from_host;          /* such a copy does not fit: wanted atoms come from the host */
  struct buffer outgoing; /* atoms that other ranks asked for */
  const struct atom_source *source; /* borrowed; of the reading */
  int normalize;
  gidx key; /* first atom of the tile that was read last */
  struct arena arena;
};

/* Atoms that were fetched; zeroed: none yet. */
struct atom_table {
  struct buffer atoms; /* float [used][d][p], on the device side */
  idx used;
  gidx room, most; /* most: what it may keep, though one fetch may want more */
  idx *place;      /* [k] of an atom in the table, -1: not there */
  idx *fetched;    /* [used] atoms in the table, in its order */
};

/* Entries from .. to - 1 of n rows of `stride`; those before have their slots already, which a
 * single rank may write anew. */
struct wanted {
  const idx *atoms; /* [n][stride] */
  idx *slot;        /* [n][stride] place of each in the table, written */
  idx n, stride, from, to;
};

/* A width that gives every worker the same number of tiles of at most TILE_MOST atoms. */
enum { TILE_MOST = 4096 };
idx tile_choose(idx k, int workers);

/* Read own tiles of the given width, scale (normalize) and check them, put them on the device.
 * Collective; a failure names the lowest atom. */
int tiles_load(struct tiles *t, struct comm *c, const struct atom_source *source, idx width,
               int normalize, struct device *device);
/* The same in three steps: what is to be read, and by how many ranks; the reading, which may be a
 * worker's job while the device is opened; its status made common and the tiles put.  The last one
 * is collective. */
void tiles_init(struct tiles *t, const struct comm *c, const struct atom_source *source, idx width,
                int normalize);
int tiles_read(void *tiles);
int tiles_put(struct tiles *t, struct comm *c, int status, struct device *device);
void tiles_free(struct tiles *t, struct device *device); /* while the device is open */

/* An empty table that may keep `most` atoms, with room for the places of all; not collective. */
int table_init(struct atom_table *table, const struct tiles *t, gidx most);
void table_free(struct atom_table *table, struct device *device); /* while the device is open */

/* Bring the atoms that are wanted and not in the table.  Collective. */
int tiles_fetch(struct tiles *t, struct atom_table *table, struct comm *c, struct device *device,
                const struct wanted *w);
/* *atoms <- what slots point to, on the device side, until the next call that takes memory or
 * routes; ERR_INTERNAL if such a call since the fetch has made the device forget them. */
int tiles_fetched(const struct tiles *t, const struct atom_table *table, struct device *device,
                  struct buffer *atoms);
/* The slots given so far are no longer needed.  The atoms stay, unless the fetches before the next
 * call, of at most `coming` atoms, may make them more than the table may keep; not collective. */
void table_leave(struct atom_table *table, const struct tiles *t, gidx coming);

/* Largest |cosine| of two different atoms: every atom is routed over all others (frames: the
 * largest norm of a vector's projection).  rows: how many to route at a time.  Collective; *cosine
 * is set on every rank, NaN for fewer than two atoms. */
int tiles_cosine(const struct tiles *t, struct comm *c, struct device *device, idx rows,
                 real *cosine);

#endif
