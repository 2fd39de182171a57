/* SPDX-License-Identifier: BSD-3-Clause
 * Operations of a device for the update of all atoms at once (N.20), with the bits of
 * model/normal.h.
 *
 * Floor: device.
 *
 * Ranks share the work by columns of the data and by atoms: a job has some columns of the target,
 * and some rows of the Gram matrix.  Buffers are read and written on the device side.  Nothing here
 * is collective.  ERR_DEVICE without fused multiply-add. */
#ifndef DEVICE_NORMAL_H
#define DEVICE_NORMAL_H

#include "device/device.h"
#include "model/normal.h"

/* Own rows of the Gram matrix: `count` of them, in blocks of NORMAL_BLOCK, of which one begins at
 * atom `first` and one every `step` atoms on; NORMAL_BLOCK: they follow each other. */
struct normal_own {
  idx first, count, step;
};

/* Add n rows to own rows of the Gram matrix, and to the columns begin .. end - 1 of the target:
 * every chain goes on.  The atoms of a row differ from each other. */
struct normal_job {
  idx n, s, p, k;
  gidx row;                   /* the job's rows begin at this row of the next three */
  const struct buffer *slots; /* [..][s] idx */
  const struct buffer *codes; /* [..][s] float */
  const struct buffer *x;     /* [..][p] float */
  struct normal_own own;
  idx begin, end;
  struct buffer *gram;   /* [own.count][k] real */
  struct buffer *target; /* [k][end - begin] real */
  struct buffer *work; /* device_normal_bytes(); where it is less, fewer rows are done at a time */
};
int device_normal_add(struct device *dev, const struct normal_job *job);

/* normal_decay() of the reals at .. at + count - 1 of a buffer. */
int device_normal_decay(struct device *dev, struct buffer *values, gidx at, gidx count, real beta);

/* So many passes of normal_descend() over the atoms first .. first + count - 1 of
 * atoms[k][columns], in place; first is a multiple of NORMAL_BLOCK, and so is count unless they are
 * the last ones. */
struct descend_job {
  idx k, columns, passes, first, count;
  const struct buffer *gram;   /* [count][k] real, their rows */
  const struct buffer *target; /* [k][columns] real */
  struct buffer *atoms;        /* [k][columns] real */
  struct buffer *diagonal;     /* [k] real: of these atoms that of gram */
  struct buffer *work;         /* device_normal_bytes() */
};
int device_normal_descend(struct device *dev, const struct descend_job *job);

/* normal_energies() of n rows, by some columns of the atoms. */
struct energies_job {
  idx n, s, p;
  const struct buffer *slots, *codes, *x; /* as in struct normal_job */
  idx begin, end;
  const struct buffer *atoms; /* [k][end - begin] real */
  struct buffer *energy;      /* [n] real: every chain goes on */
};
int device_normal_energies(struct device *dev, const struct energies_job *job);

/* Nothing is known any more of the atoms with forget[k]: what gram[own.count][k] and
 * target[k][columns] have of them becomes 0. */
struct clear_job {
  idx k, columns;
  struct normal_own own;
  const struct buffer *forget; /* [k] unsigned char */
  struct buffer *gram, *target;
};
int device_normal_clear(struct device *dev, const struct clear_job *job);

/* Bytes to work in, on the device side, for jobs of at most n rows of s atoms; of a dry device
 * without a backend: those of the CPU, which takes cpu_normal_beside() more while it descends. */
gidx device_normal_bytes(const struct device *dev, idx n, idx s, idx k, idx columns);
gidx cpu_normal_beside(int threads, idx columns);

#endif
