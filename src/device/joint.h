/* SPDX-License-Identifier: BSD-3-Clause
 * Operations of a device: the rows of the joint system and the assembly of its Schur complement S
 * (N.17, N.18).
 *
 * Floor: device.
 *
 * S and all sums have the bits of model/joint.h for any batch, thread count and variant.  Rows come
 * in batches.  joint_batch() makes the matrix Y of each row; threads share the rows.  joint_add()
 * adds the batch to S.  There, a thread owns the columns of an atom, and takes the rows of this
 * atom in ascending order.  Until the last batch the strict upper triangle of S holds E'E.  S is on
 * the device's side of a buffer (device/dense.h); all other arrays are host memory.  With a GPU,
 * the CPU still makes the rows.  Not collective. */
#ifndef DEVICE_JOINT_H
#define DEVICE_JOINT_H

#include "device/dense.h"
#include "model/joint.h"

/* The state of the work, which holds one batch of rows. */
struct joint_work {
  struct device *device;     /* borrowed */
  const struct joint *joint; /* borrowed */
  idx longest;               /* atoms of the longest row */
  gidx capacity;             /* bytes that a batch may take */
  struct joint_state *state; /* owned; only the backend looks into it */
};

/* Rows have at most `longest` atoms; a batch takes at most `capacity` bytes.  ERR_MEMORY;
 * ERR_USAGE: `capacity` is too small for one row of `longest` atoms.  joint_close() is safe on a
 * zeroed struct. */
int joint_open(struct joint_work *w, struct device *dev, const struct joint *j, idx longest,
               gidx capacity);
void joint_close(struct joint_work *w);

/* For a CPU device, before it is opened: the bytes that joint_open() takes without the batch; the
 * bytes that one row of `longest` atoms takes in a batch. */
gidx cpu_joint_bytes(const struct joint *j, int threads, idx longest);
gidx cpu_joint_row_bytes(const struct joint *j, idx longest);

/* Bytes of GPU memory that joint_open() will take; 0 for a CPU.  A dry device answers for the
 * device that it stands for; without a backend, 0. */
gidx device_joint_bytes(const struct device *dev, const struct joint *j, idx longest,
                        gidx capacity);

/* Rows of a batch, at most. */
enum { JOINT_MAX_BATCH = 8192 };

/* How many of the next n rows fit in a batch; row i has start[i + 1] - start[i] atoms. */
idx cpu_joint_fit(const struct joint_work *w, const gidx *start, idx n);

/* Make the batch of these rows and add it to `sums`. */
int joint_batch(struct joint_work *w, const struct joint_rows *rows, struct joint_sums *sums);

/* Prepare S before the first batch: E'E above the diagonal, 0 elsewhere.  S has as many columns as
 * there are borders, `stride` numbers apart. */
int joint_begin(struct joint_work *w, struct dense *d, real *s, gidx stride);
/* Add the batch to S. */
int joint_add(struct joint_work *w, real *s, gidx stride);

/* Size of row i of the batch: the number of its kept vectors and of its borders. */
struct joint_size {
  idx vectors, width;
};
int joint_row_size(const struct joint_work *w, idx i, struct joint_size *size);

#endif
