/* SPDX-License-Identifier: BSD-3-Clause
 * A dictionary dealt to ranks: own tiles stay, single atoms travel to who needs them.
 *
 * Floor: stage.  Layout: model/dictionary.h.
 *
 * Codes need the atoms of a row's support wherever they live: tiles_fetch() brings them into a
 * table that lasts until tiles_forget().  A single rank holds all atoms: its tiles are the
 * table. */
#ifndef STAGE_TILES_H
#define STAGE_TILES_H

#include "base/memory.h"
#include "comm/comm.h"
#include "device/device.h"
#include "model/dictionary.h"

struct tiles {
  struct tiling tiling;
  idx rank, d, p;
  idx held;            /* own atoms */
  float *atoms;        /* [held][d][p] */
  struct buffer table; /* float [table_used][d][p] fetched atoms; one rank: around atoms */
  idx table_used;
  gidx table_room;
  idx *place;   /* [k] of an atom in the table, -1: not there; NULL for one rank */
  idx *fetched; /* [table_used] atoms in the table, in its order */
  gidx fetched_room;
  float *outgoing; /* atoms that others asked for */
  gidx outgoing_room;
  struct arena arena;
};

/* A width that gives every worker the same number of tiles of at most TILE_MOST atoms. */
enum { TILE_MOST = 4096 };
idx tile_choose(idx k, int workers);

/* Read own tiles of the given width, scale (normalize) and check them, put them on the device.
 * Collective; a failure names the lowest atom. */
int tiles_load(struct tiles *t, struct comm *c, const struct atom_source *source, idx width,
               int normalize, struct device *device);
void tiles_free(struct tiles *t, struct device *device); /* while the device is open */

/* slot[i] <- place of atoms[i] in the table, for count atoms; the table is on the device then.
 * Collective. */
int tiles_fetch(struct tiles *t, struct comm *c, struct device *device, const idx *atoms,
                gidx count, idx *slot);
void tiles_forget(struct tiles *t);

/* Largest |cosine| of two different atoms: every atom is routed over all others (frames: the
 * largest norm of a vector's projection).  rows: how many to route at a time.  Collective; *cosine
 * is set on every rank, NaN for fewer than two atoms. */
int tiles_cosine(const struct tiles *t, struct comm *c, struct device *device, idx rows,
                 real *cosine);

#endif
