/* SPDX-License-Identifier: BSD-3-Clause
 * A capture on a GPU: all keys and values are there as they are stored, queries come in shares.
 *
 * Floor: harvest. */
#ifndef HARVEST_RESIDENT_CAPTURE_H
#define HARVEST_RESIDENT_CAPTURE_H

#include "device/device.h"
#include "model/capture.h"
#include "model/top.h"

struct resident_capture;

/* Is attention to be computed so on this device? */
int resident_capture_wanted(const struct device *device);
/* ERR_DEVICE for heads, or so many cells of a type, beyond what the device takes. */
int resident_capture_heads_check(const struct capture_source *capture, struct device *device,
                                 gidx cells, enum capture_type type);
/* ERR_MEMORY with the numbers where the device has no room for keys and values, and so many bytes
 * beside; ERR_DEVICE for heads beyond what it takes. */
int resident_capture_check(const struct capture_source *capture, struct device *device,
                           gidx beside);
/* Take the keys and values of a capture, which is borrowed, as are the device and the arrays of
 * `partition` queries: q[partition][heads][d], rows[partition][heads][dv], lse[partition][heads].
 * Fails as resident_capture_check() does.  resident_capture_close() follows also when this fails;
 * it is safe on NULL.  Not collective. */
struct resident_capture_atoms {
  idx k;              /* 0: none, and no attribution is to come */
  const float *atoms; /* [k][heads][dv] */
  gidx beside;        /* bytes that they take, and what else attribution has on the device */
};
struct resident_capture_arrays {
  idx partition;
  float *q, *rows, *lse;
  struct resident_capture_atoms atoms;
};
int resident_capture_open(struct resident_capture **r, const struct capture_source *capture,
                          struct device *device, const struct resident_capture_arrays *arrays);
void resident_capture_close(struct resident_capture *r);
/* rows, lse <- those of queries first .. first + count - 1 of all, which are in q; the first one is
 * of this sequence. */
int resident_capture_run(struct resident_capture *r, gidx sequence, gidx first, idx count);
/* The rows alone, into memory of the device: to[count][heads][dv]. */
int resident_capture_make(struct resident_capture *r, gidx sequence, gidx first, idx count,
                          float *to);
/* top, sum <- of the pairs of the queries that resident_capture_run() had last (N.28). */
struct resident_capture_pairs {
  gidx count;
  const gidx *start;  /* [queries + 1] */
  const idx *atom_of; /* [count] */
  struct top_rows *top;
  real *sum; /* [count] */
};
int resident_capture_attribute(struct resident_capture *r,
                               const struct resident_capture_pairs *pairs);

#endif
