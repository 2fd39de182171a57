/* SPDX-License-Identifier: BSD-3-Clause
 * Operations of a device: the rows of the joint system and the assembly of its Schur complement S
 * (N.17, N.18).
 *
 * Floor: device.
 *
 * S and all sums have the bits of model/joint.h for any batch, thread count and variant.  Rows come
 * in batches: joint_batch() makes each row's Y, the threads sharing the rows; joint_add() adds the
 * batch to S, where a thread owns the columns of an atom and walks the rows that have the atom, in
 * ascending order.  Until the last batch the strict upper triangle of S holds E'E.  S stands on the
 * device's side of a buffer (device/dense.h); all other arrays are the host's, and a GPU leaves the
 * rows to the CPU beside it.  Not collective. */
#ifndef DEVICE_JOINT_H
#define DEVICE_JOINT_H

#include "device/dense.h"
#include "model/joint.h"

/* The batch that is being worked on. */
struct joint_work {
  struct device *device;     /* borrowed */
  const struct joint *joint; /* borrowed */
  idx longest;               /* atoms of the longest row */
  gidx capacity;             /* bytes that a batch may take */
  struct joint_state *state; /* owned; only the backend looks into it */
};

/* Rows have at most `longest` atoms; a batch takes at most `capacity` bytes.  ERR_MEMORY; ERR_USAGE
 * when not even one row fits.  joint_close is safe on a zeroed struct. */
int joint_open(struct joint_work *w, struct device *dev, const struct joint *j, idx longest,
               gidx capacity);
void joint_close(struct joint_work *w);

/* On a CPU device: bytes that joint_open() takes beside the batch, and those that one row of so
 * many atoms takes in a batch; known before there is one. */
gidx cpu_joint_bytes(const struct joint *j, int threads, idx longest);
gidx cpu_joint_row_bytes(const struct joint *j, idx longest);

/* Bytes that joint_open() takes on a GPU's side, known before there is one; 0 on a CPU, or for a
 * dry device of one. */
gidx device_joint_bytes(const struct device *dev, const struct joint *j, idx longest,
                        gidx capacity);

/* Rows of a batch, at most. */
enum { JOINT_MAX_BATCH = 8192 };

/* How many of n rows that begin at start[n + 1] fit a batch. */
idx cpu_joint_fit(const struct joint_work *w, const gidx *start, idx n);

/* Make the batch and add it to the sums. */
int joint_batch(struct joint_work *w, const struct joint_rows *rows, struct joint_sums *sums);

/* Before the first batch: S[border][stride] <- 0 below, E'E above the diagonal. */
int joint_begin(struct joint_work *w, struct dense *d, real *s, gidx stride);
/* Add the batch to S. */
int joint_add(struct joint_work *w, real *s, gidx stride);

/* Row i of the batch: its kept vectors and its borders. */
struct joint_size {
  idx vectors, width;
};
int joint_row_size(const struct joint_work *w, idx i, struct joint_size *size);

#endif
