/* SPDX-License-Identifier: BSD-3-Clause
 * A dictionary dealt to ranks: each holds its shard, and puts it on its device.
 *
 * Floor: encode.  Layout: model/dictionary.h.  A shard is the tiles of one rank.  fetch.h brings
 * single atoms to the ranks that need them. */
#ifndef ENCODE_SHARD_H
#define ENCODE_SHARD_H

#include "base/memory.h"
#include "comm/comm.h"
#include "device/device.h"
#include "model/dictionary.h"

struct shard {
  struct tiling tiling;
  idx rank, d, p;
  idx held;               /* atoms of this rank */
  float *atoms;           /* [held][d][p] */
  struct buffer copy;     /* float [held][d][p] the same on the device; empty if the device itself
                           * keeps the atoms in this form */
  int from_host;          /* there is no memory for the copy: fetched atoms come from the host */
  struct buffer outgoing; /* atoms that other ranks asked for */
  gidx expected;          /* `outgoing` begins with room for this many; 0: it grows with the
                           * requests */
  const struct atom_source *source; /* borrowed; used while reading */
  int normalize;
  const struct comm *like; /* borrowed: the ranks that hold the same tiles; NULL: none does */
  int reads_all;  /* each rank of `like` reads all tiles, if that is faster than exchanging them */
  gidx key;       /* first atom of the piece that was read last */
  uint64_t terms; /* sum of the hash terms of the atoms as they were read (model/identity.h) */
  struct arena arena;
};

/* A tile width of at most MAX_TILE that gives every rank the same number of tiles. */
enum { MAX_TILE = 4096 };
idx tile_width_default(idx k, int workers);

/* Read this rank's tiles of the given width, scale (normalize) and check them, and put them on the
 * device.  Collective; a failure names the lowest atom. */
int shard_load(struct shard *t, struct comm *c, const struct atom_source *source, idx width,
               int normalize, struct device *device);

/* The same in four steps, so that a worker thread can read while the device is opened:
 *
 * - shard_init() decides what this rank reads;
 * - shard_alloc() takes memory for it, or counts it if t->arena is dry;
 * - shard_read() reads;
 * - shard_put() makes the status common to the ranks of c, exchanges tiles among the ranks of
 *   `like`, and puts them on the device unless `device` is NULL.  Collective.
 *
 * t->like, set before the reading, are the ranks that hold the same tiles.  Each of them reads and
 * hashes a run of the slots, so that every atom is read once.  With t->reads_all, which must be the
 * same on all ranks of `like`, each of them reads all slots. */
void shard_init(struct shard *t, const struct comm *c, const struct atom_source *source, idx width,
                int normalize);
int shard_alloc(struct shard *t);
int shard_read(struct shard *t);
int shard_put(struct shard *t, struct comm *c, struct comm *like, int status,
              struct device *device);
/* Put this rank's tiles on the device. */
int shard_upload(const struct shard *t, struct device *device);
void shard_free(struct shard *t, struct device *device); /* while the device is open */

/* The largest |cosine| of two different atoms, for codes of either sign: every atom is routed over
 * all others.  Frames: the largest norm of a vector's projection on another frame.  rows: vectors
 * to route at a time.  The ranks of a group hold all tiles together.  Groups have equal size,
 * follow one another in c, and divide the atoms among them.  Collective; *cosine is the same on
 * every rank, NaN if there are fewer than two atoms. */
int shard_cosine(const struct shard *t, struct comm *c, struct comm *group, struct device *device,
                 idx rows, real *cosine);

#endif
