/* SPDX-License-Identifier: BSD-3-Clause
 * Operations of a device for the update of all atoms at once (N.20), with the bits of
 * model/normal.h.
 *
 * Floor: device.
 *
 * Ranks divide the columns of the data and the atoms among them: a job has some columns of the
 * target C'X, and some rows of the Gram matrix C'C.  Buffers are read and written on the device
 * side.  Nothing here is collective.  ERR_DEVICE without fused multiply-add. */
#ifndef DEVICE_NORMAL_H
#define DEVICE_NORMAL_H

#include "device/device.h"
#include "model/normal.h"

/* The rows of the Gram matrix that this rank owns: `count` rows in blocks of NORMAL_BLOCK.  The
 * blocks begin at the atoms first, first + step, first + 2 step, ...  If step = NORMAL_BLOCK, the
 * rows are consecutive. */
struct normal_own {
  idx first, count, step;
};

/* Add n rows of data to the owned rows of the Gram matrix, and to the columns begin .. end - 1 of
 * the target.  Every entry continues its chain.  The atoms of a row must be distinct. */
struct normal_job {
  idx n, s, p, k;
  gidx row;                   /* the job's rows begin at this row of slots, codes and x */
  const struct buffer *slots; /* [..][s] idx */
  const struct buffer *codes; /* [..][s] float */
  const struct buffer *x;     /* [..][p] float */
  struct normal_own own;
  idx begin, end;
  struct buffer *gram;   /* [own.count][k] real */
  struct buffer *target; /* [k][end - begin] real */
  struct buffer *work;   /* device_normal_bytes(); with less, fewer rows are added at a time */
};
int device_normal_add(struct device *dev, const struct normal_job *job);

/* normal_decay() of values[at .. at + count - 1]. */
int device_normal_decay(struct device *dev, struct buffer *values, gidx at, gidx count, real beta);

/* `passes` passes of normal_descend() over the atoms first .. first + count - 1 of
 * atoms[k][columns], in place.  first is a multiple of NORMAL_BLOCK; so is count, unless the last
 * atom is among them. */
struct descend_job {
  idx k, columns, passes, first, count;
  const struct buffer *gram;   /* [count][k] real: rows of these atoms */
  const struct buffer *target; /* [k][columns] real */
  struct buffer *atoms;        /* [k][columns] real */
  struct buffer *diagonal;     /* [k] real: the entries of these atoms are copied from gram */
  struct buffer *work;         /* device_normal_bytes() */
};
int device_normal_descend(struct device *dev, const struct descend_job *job);

/* normal_energies() of n rows, for some columns of the atoms. */
struct energies_job {
  idx n, s, p;
  const struct buffer *slots, *codes, *x; /* as in struct normal_job */
  idx begin, end;
  const struct buffer *atoms; /* [k][end - begin] real */
  struct buffer *energy;      /* [n] real: every entry continues its chain */
};
int device_normal_energies(struct device *dev, const struct energies_job *job);

/* Forget the atoms a with forget[a] != 0: their entries of gram[own.count][k] and
 * target[k][columns] become 0. */
struct clear_job {
  idx k, columns;
  struct normal_own own;
  const struct buffer *forget; /* [k] unsigned char */
  struct buffer *gram, *target;
};
int device_normal_clear(struct device *dev, const struct clear_job *job);

/* Bytes of `work`, on the device side, for jobs of at most n rows of s atoms.  A dry device without
 * a backend answers as a CPU.  A CPU takes cpu_normal_beside() bytes more in a descent. */
gidx device_normal_bytes(const struct device *dev, idx n, idx s, idx k, idx columns);
gidx cpu_normal_beside(int threads, idx columns);

#endif
