/* SPDX-License-Identifier: BSD-3-Clause
 * A dictionary dealt to ranks: each holds its shard, and puts it on its device.
 *
 * Floor: encode.  Layout: model/dictionary.h.  fetch.h brings single atoms to the ranks that need
 * them. */
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
  struct buffer copy;     /* the same on the device, where it does not keep them so anyway */
  int from_host;          /* such a copy does not fit: fetched atoms come from the host */
  struct buffer outgoing; /* atoms that other ranks asked for */
  const struct atom_source *source; /* borrowed; of the reading */
  int normalize;
  const struct comm *like; /* borrowed: the ranks that hold the same tiles; NULL: no other does */
  int reads_all;  /* each of them reads all: that takes less time than to tell what others read */
  gidx key;       /* first atom of the piece that was read last */
  uint64_t terms; /* of the atoms as they were read (model/identity.h) */
  struct arena arena;
};

/* A width that gives every rank the same number of tiles of at most MAX_TILE atoms. */
enum { MAX_TILE = 4096 };
idx tile_width_default(idx k, int workers);

/* Read this rank's tiles of the given width, scale (normalize) and check them, and put them on the
 * device.  Collective; a failure names the lowest atom. */
int shard_load(struct shard *t, struct comm *c, const struct atom_source *source, idx width,
               int normalize, struct device *device);

/* The same in four steps, so that a worker can read while the device is opened: what is to be read,
 * and by how many ranks; memory for it, where a dry t->arena only counts; the reading; then its
 * status is made common to the ranks of c, those that hold the same tiles (t->like, set in between)
 * tell each other what they read, and the tiles are put.  Of the ranks that hold the same, each
 * reads a run of the slots, so that every atom is read once, and hashes these, unless t->reads_all,
 * which is the same on all of them.  The last one is collective; device
 * NULL: they are not put yet. */
void shard_init(struct shard *t, const struct comm *c, const struct atom_source *source, idx width,
                int normalize);
int shard_alloc(struct shard *t);
int shard_read(struct shard *t);
int shard_put(struct shard *t, struct comm *c, struct comm *like, int status,
              struct device *device);
/* Put these tiles on the device. */
int shard_upload(const struct shard *t, struct device *device);
void shard_free(struct shard *t, struct device *device); /* while the device is open */

/* The largest |cosine| of two different atoms, whatever the signs of codes: every atom is routed
 * over all others (for frames, the largest norm of a vector's projection).  rows: how many to route
 * at a time.  The ranks of a group have all tiles together; groups, of equal size and one after
 * another in c, share out the atoms to route.  Collective; *cosine is set on every rank, NaN for
 * fewer than two atoms. */
int shard_cosine(const struct shard *t, struct comm *c, struct comm *group, struct device *device,
                 idx rows, real *cosine);

#endif
