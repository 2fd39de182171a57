/* SPDX-License-Identifier: BSD-3-Clause
 * A capture on a GPU: all keys and values are there as they are stored, queries come in shares.
 *
 * Floor: harvest. */
#ifndef HARVEST_HELD_H
#define HARVEST_HELD_H

#include "device/device.h"
#include "model/capture.h"
#include "model/top.h"

struct held;

/* Is attention to be computed so on this device? */
int held_wanted(const struct device *device);
/* ERR_DEVICE for heads, or so many cells of a type, beyond what the device takes. */
int held_heads_check(const struct capture_source *capture, struct device *device, gidx cells,
                     enum capture_type type);
/* ERR_MEMORY with the numbers where the device has no room for keys and values, and so many bytes
 * beside; ERR_DEVICE for heads beyond what it takes. */
int held_check(const struct capture_source *capture, struct device *device, gidx beside);
/* Take the keys and values of a capture, which is borrowed, as are the device and the arrays of
 * `share` queries: q[share][heads][d], rows[share][heads][dv], lse[share][heads].  Fails as
 * held_check() does.  held_close() follows also when this fails; it is safe on NULL.  Not
 * collective. */
struct held_atoms {
  idx k;              /* 0: none, and no attribution is to come */
  const float *atoms; /* [k][heads][dv] */
  gidx beside;        /* bytes that they take, and what else attribution has on the device */
};
struct held_share {
  idx share;
  float *q, *rows, *lse;
  struct held_atoms atoms;
};
int held_open(struct held **r, const struct capture_source *capture, struct device *device,
              const struct held_share *arrays);
void held_close(struct held *r);
/* rows, lse <- those of queries first .. first + count - 1 of all, which are in q; the first one is
 * of this sequence. */
int held_run(struct held *r, gidx sequence, gidx first, idx count);
/* The rows alone, into memory of the device: to[count][heads][dv]. */
int held_make(struct held *r, gidx sequence, gidx first, idx count, float *to);
/* top, sum <- of the pairs of the queries that held_run() had last (N.28). */
struct held_pairs {
  gidx count;
  const gidx *start;  /* [queries + 1] */
  const idx *atom_of; /* [count] */
  struct top_rows *top;
  real *sum; /* [count] */
};
int held_attribute(struct held *r, const struct held_pairs *pairs);

#endif
