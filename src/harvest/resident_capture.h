/* SPDX-License-Identifier: BSD-3-Clause
 * A capture on a GPU: all keys and values are on the GPU, in the form in which they are stored;
 * queries come in shares.
 *
 * Floor: harvest. */
#ifndef HARVEST_RESIDENT_CAPTURE_H
#define HARVEST_RESIDENT_CAPTURE_H

#include "device/device.h"
#include "model/capture.h"
#include "model/top.h"

struct resident_capture;

/* Should attention be computed in this way on this device? */
int resident_capture_wanted(const struct device *device);
/* ERR_DEVICE: the device does not take heads of these sizes, or so many cells of this type. */
int resident_capture_heads_check(const struct capture_source *capture, struct device *device,
                                 gidx cells, enum capture_type type);
/* ERR_MEMORY with the numbers if the device has no room for keys and values, and `beside` more
 * bytes; ERR_DEVICE for heads that it does not take. */
int resident_capture_check(const struct capture_source *capture, struct device *device,
                           gidx beside);
/* Copy the keys and values of a capture to the device.  The capture, the device and the arrays of
 * `partition` queries are borrowed: q[partition][heads][d], rows[partition][heads][dv],
 * lse[partition][heads].  Fails like resident_capture_check().  Call resident_capture_close() also
 * when this fails; it is safe on NULL.  Not collective. */
struct resident_capture_atoms {
  idx k;              /* 0: none, there will be no attribution */
  const float *atoms; /* [k][heads][dv] */
  gidx beside;        /* bytes that attribution needs on the device, for the atoms and the rest */
};
struct resident_capture_arrays {
  idx partition;
  float *q, *rows, *lse;
  struct resident_capture_atoms atoms;
};
int resident_capture_open(struct resident_capture **r, const struct capture_source *capture,
                          struct device *device, const struct resident_capture_arrays *arrays);
void resident_capture_close(struct resident_capture *r);
/* rows, lse <- the results of queries first .. first + count - 1 of all, which are in q.  The first
 * query is of this sequence. */
int resident_capture_run(struct resident_capture *r, gidx sequence, gidx first, idx count);
/* The same, but only the rows, and into device memory: to[count][heads][dv]. */
int resident_capture_make(struct resident_capture *r, gidx sequence, gidx first, idx count,
                          float *to);
/* top, sum <- the results for the pairs of the queries of the last resident_capture_run()
 * (N.28). */
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
